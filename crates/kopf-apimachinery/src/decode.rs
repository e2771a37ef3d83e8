//! Decodes request bodies into trees, according to their media types.
//!
//! Responsible for the media types of requests and the messages of decoding errors. Does not use
//! schemas.

use crate::StatusError;
use crate::schema::decode::{json, yaml};

pub use crate::schema::decode::Decoded;

/// Decodes the body of a create or update by its `Content-Type`.
pub fn body(content_type: &str, bytes: &[u8], kind: &str) -> Result<Decoded, StatusError> {
    let unrecognized = |problem: String| {
        let shown = summary(bytes);
        StatusError::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): couldn't get \
             version/kind; json parse error: {problem} ({shown})"
        ))
    };
    match media_type(content_type) {
        _ if !has_valid_parameters(content_type) => Err(unsupported()),
        "" | "application/json" => json(bytes).map_err(|error| unrecognized(error.0)),
        "application/yaml" => yaml(bytes).map_err(|error| {
            let shown = summary(bytes);
            StatusError::bad_request(format!(
                "the object provided is unrecognized (must be of type {kind}): {error} ({shown})"
            ))
        }),
        "application/vnd.kubernetes.protobuf" => crate::protobuf::decode(bytes)
            .map(|value| Decoded { value, duplicates: Vec::new() })
            .map_err(|problem| {
                StatusError::bad_request(format!(
                    "the object provided is unrecognized (must be of type {kind}): {problem}"
                ))
            }),
        _ => Err(unsupported()),
    }
}

fn unsupported() -> StatusError {
    StatusError::new(
        415,
        "UnsupportedMediaType",
        "the body of the request was in an unknown format - accepted media types include: \
         application/json, application/yaml, application/vnd.kubernetes.protobuf",
    )
}

/// Whether Go can parse the parameters of a media type; a trailing semicolon is allowed.
fn has_valid_parameters(content_type: &str) -> bool {
    let is_token = |text: &str| {
        let is_special = |byte: u8| b"()<>@,;:\\\"/[]?=".contains(&byte);
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic() && !is_special(byte))
    };
    let is_value = |text: &str| {
        let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
        is_token(text) || inner.is_some_and(|inner| !inner.contains('"'))
    };
    let mut parameters: Vec<&str> = content_type.split(';').skip(1).map(str::trim).collect();
    if parameters.last().is_some_and(|last| last.is_empty()) {
        parameters.pop();
    }
    parameters.iter().all(|parameter| {
        let pair = parameter.split_once('=');
        pair.is_some_and(|(name, value)| is_token(name.trim()) && is_value(value.trim()))
    })
}

/// How many bytes of a body are shown in errors.
const SHOWN_BYTES_MAX: usize = 30;

/// The start of a body, in hexadecimal unless it looks like JSON.
pub fn summary(bytes: &[u8]) -> String {
    let start = &bytes[..bytes.len().min(SHOWN_BYTES_MAX)];
    let rest = if bytes.len() > SHOWN_BYTES_MAX { " ..." } else { "" };
    match bytes.first() {
        None => "<empty>".to_owned(),
        Some(b'{') => format!("{}{rest}", String::from_utf8_lossy(start)),
        Some(_) => {
            let digits: String = start.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("{digits}{rest}")
        }
    }
}

/// The media type without its parameters.
pub fn media_type(content_type: &str) -> &str {
    content_type.split(';').next().unwrap_or_default().trim()
}

#[cfg(test)]
mod tests;
