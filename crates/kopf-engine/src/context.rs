//! What all parts of a running engine share, without any tasks.
//!
//! [`runtime::Runtime`] exists from the start of an operator to its end, [`shared::Shared`] while it
//! is connected to a cluster.

pub(crate) mod background_tasks;
pub(crate) mod memos;
pub(crate) mod notice;
pub(crate) mod runtime;
pub(crate) mod shared;
pub(crate) mod timer_queue;
pub(crate) mod tuning;
