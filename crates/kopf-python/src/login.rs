//! Credentials from Python: the fields of Kopf's `ConnectionInfo`.

use kopf_client::ConnectionInfo;
use serde_json::Value;

/// Why credentials cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InvalidCredentials {
    #[error("the credentials have no server")]
    Serverless,
    #[error("the expiration of the credentials is not understood: {0}")]
    Expiration(#[from] jiff::Error),
}

/// Reads credentials by the names of their fields.
pub(crate) fn connection_info(fields: &Value) -> Result<ConnectionInfo, InvalidCredentials> {
    let text = |name: &str| fields.get(name).and_then(Value::as_str).map(str::to_owned);
    let flag = |name: &str| fields.get(name).and_then(Value::as_bool).unwrap_or(false);
    let expiration = match fields.get("expiration").and_then(Value::as_f64) {
        None => None,
        Some(seconds) => Some(jiff::Timestamp::from_microsecond((seconds * 1e6) as i64)?),
    };
    Ok(ConnectionInfo {
        server: text("server").ok_or(InvalidCredentials::Serverless)?,
        ca_path: text("ca_path"),
        ca_data: text("ca_data"),
        insecure: flag("insecure"),
        username: text("username"),
        password: text("password"),
        scheme: text("scheme"),
        token: text("token"),
        certificate_path: text("certificate_path"),
        certificate_data: text("certificate_data"),
        private_key_path: text("private_key_path"),
        private_key_data: text("private_key_data"),
        default_namespace: text("default_namespace"),
        proxy_url: text("proxy_url"),
        trust_env: flag("trust_env"),
        priority: fields.get("priority").and_then(Value::as_i64).unwrap_or(0),
        expiration,
    })
}
