//! Decisions as plain functions: queue, cause, selection, progress, retry, plan; and the Invoke trait.
