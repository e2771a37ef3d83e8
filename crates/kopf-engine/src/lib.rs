//! Runs the decisions: stores, workers, timers, daemons, indexes, probes and shutdown.
