//! The operator's own ports: probes, metrics, and what the debug endpoint shows.

pub mod debug;
pub(crate) mod metrics;
pub(crate) mod ports;
pub(crate) mod probes;
pub(crate) mod protected;
pub(crate) mod tls;
