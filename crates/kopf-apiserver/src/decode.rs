//! Request bodies to trees, by their media types.
//!
//! Owns media types of requests and the texts of decoding errors. Refuses to know schemas.

use crate::StatusError;
use crate::schema::decode::{json, yaml};

pub(crate) use crate::schema::decode::Decoded;

/// Decodes the body of a create or update by its `Content-Type`.
pub(crate) fn body(content_type: &str, bytes: &[u8], kind: &str) -> Result<Decoded, StatusError> {
    let unrecognized = |problem: String| {
        let shown = if bytes.is_empty() {
            "<empty>".to_owned()
        } else {
            let text = String::from_utf8_lossy(bytes);
            text.chars().take(SHOWN_BODY_MAX).collect()
        };
        StatusError::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): couldn't get \
             version/kind; json parse error: {problem} ({shown})"
        ))
    };
    match media_type(content_type) {
        "" | "application/json" => json(bytes).map_err(|error| unrecognized(error.0)),
        "application/yaml" => yaml(bytes).map_err(|error| {
            // Upstream shows the start of the body in hexadecimal digits.
            let shown: String =
                bytes.iter().take(SHOWN_YAML_MAX).map(|byte| format!("{byte:02x}")).collect();
            let rest = if bytes.len() > SHOWN_YAML_MAX { " ..." } else { "" };
            StatusError::bad_request(format!(
                "the object provided is unrecognized (must be of type {kind}): {error} \
                 ({shown}{rest})"
            ))
        }),
        "application/vnd.kubernetes.protobuf" => crate::protobuf::decode(bytes)
            .map(|value| Decoded { value, duplicates: Vec::new() })
            .map_err(|problem| {
                StatusError::bad_request(format!(
                    "the object provided is unrecognized (must be of type {kind}): {problem}"
                ))
            }),
        _ => Err(StatusError::new(
            415,
            "UnsupportedMediaType",
            "the body of the request was in an unknown format - accepted media types include: \
             application/json, application/yaml, application/vnd.kubernetes.protobuf",
        )),
    }
}

const SHOWN_BODY_MAX: usize = 1024;
const SHOWN_YAML_MAX: usize = 30;

/// The media type without its parameters.
pub(crate) fn media_type(content_type: &str) -> &str {
    content_type.split(';').next().unwrap_or_default().trim()
}

#[cfg(test)]
mod tests;
