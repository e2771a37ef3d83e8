//! What the operator tells others: probes, metrics, its status and the recent history of objects.

pub mod debug;
pub mod journal;
pub(crate) mod metrics;
pub(crate) mod ports;
pub(crate) mod probes;
pub(crate) mod status;
