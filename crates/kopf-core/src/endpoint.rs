//! What the cluster is told of the endpoint where an operator answers reviews.
//!
//! Pure. Used by the engine, which knows its address and certificate, and for manifests, which have
//! to agree with it before it runs.

use serde_json::{Value, json};

/// The port of the service that leads to the endpoint, whatever port the operator itself has.
pub const SERVICE_PORT: u16 = 443;

/// The service that leads to the endpoint.
#[must_use]
pub fn service(namespace: &str, name: &str) -> Value {
    json!({"namespace": namespace, "name": name, "port": SERVICE_PORT})
}
