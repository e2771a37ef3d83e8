//! The endpoint where an operator serves reviews, in the form that the cluster is configured with.
//!
//! Pure. Used by the engine, which knows its address and certificate, and for manifests, which must
//! match it before it runs.

use serde_json::{Value, json};

/// The port of the service of the endpoint; the operator itself may listen on another port.
pub const SERVICE_PORT: u16 = 443;
/// The path of all conversions; the name of the definition follows it.
pub const CONVERSIONS: &str = "convert";

/// The reference to the service of the endpoint, for client configurations.
#[must_use]
pub fn service(namespace: &str, name: &str) -> Value {
    json!({"namespace": namespace, "name": name, "port": SERVICE_PORT})
}

/// The conversion stanza of a definition for an endpoint.
#[must_use]
pub fn conversion(client_config: &Value, definition: &str) -> Value {
    let client_config = addressed(client_config, &format!("{CONVERSIONS}/{definition}"));
    let webhook = json!({"clientConfig": client_config, "conversionReviewVersions": ["v1"]});
    json!({"strategy": "Webhook", "webhook": webhook})
}

/// The client configuration of one part of the endpoint, such as a handler: its id ends the path.
#[must_use]
pub fn addressed(client_config: &Value, id: &str) -> Value {
    let mut config = client_config.clone();
    let mut quoted = String::new();
    for byte in id.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => {
                quoted.push(char::from(byte));
            }
            _ => quoted.push_str(&format!("%{byte:02X}")),
        }
    }
    let extend = |path: &str| format!("{}/{quoted}", path.trim_end_matches('/'));
    if let Some(url) = config.get("url").and_then(Value::as_str).map(extend) {
        config["url"] = url.into();
    }
    if let Some(service) = config.get_mut("service").and_then(Value::as_object_mut) {
        let path = service.get("path").and_then(Value::as_str).unwrap_or_default();
        let path = extend(path);
        service.insert("path".into(), path.into());
    }
    config
}

#[cfg(test)]
mod tests;
