//! What the engine records about itself for others: its status, the history of objects, log lines
//! as events. Written by all parts; knows none of them.

pub mod journal;
pub mod lines;
pub(crate) mod log_sink;
pub(crate) mod poster;
pub(crate) mod status;
