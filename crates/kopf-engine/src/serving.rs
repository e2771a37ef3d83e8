//! The operator's own ports: probes, metrics, and the debug endpoint.

pub mod debug;
pub(crate) mod metrics;
pub(crate) mod ports;
pub(crate) mod probes;
pub(crate) mod protected;
pub(crate) mod tls;
