//! HTTP responses.

use std::collections::HashSet;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderValue, RETRY_AFTER, VARY};
use http::{Response, StatusCode};
use serde_json::Value;

use crate::StatusError;
use crate::body::Body;
use crate::discovery::Aggregated;
use crate::encode::encode_value;
use crate::negotiate::{Syntax, negotiate};
use crate::openapi::Document;

/// A response with a body and a media type.
pub(crate) fn bytes_response(
    status: StatusCode,
    content_type: &str,
    body: impl Into<Bytes>,
) -> Response<Body> {
    let mut response = Response::new(Body::full(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    if let Ok(value) = HeaderValue::from_str(content_type) {
        headers.insert(CONTENT_TYPE, value);
    }
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

/// A JSON response.
pub(crate) fn json_response(status: StatusCode, value: &Value) -> Response<Body> {
    bytes_response(status, "application/json", value.to_string())
}

/// A plain-text response.
pub(crate) fn text_response(status: StatusCode, text: &'static str) -> Response<Body> {
    bytes_response(status, "text/plain; charset=utf-8", text)
}

/// An error as a `Status`.
pub(crate) fn error_response(error: &StatusError) -> Response<Body> {
    let status = StatusCode::from_u16(error.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = json_response(status, &error.to_value());
    let retry_after = error.details.as_ref().map_or(0, |details| details.retry_after_seconds);
    if retry_after > 0 {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(retry_after));
    }
    response
}

/// An error in a syntax that the client accepts; indented JSON if there is none.
pub(crate) fn acceptable_error(error: &StatusError, accept: &str) -> Response<Body> {
    let mut response = error_response(error);
    // Errors are never converted to tables or metadata.
    let plain: Vec<&str> = accept.split(',').filter(|clause| !clause.contains("as=")).collect();
    let is_plain = accept.is_empty() || !plain.is_empty();
    let (content_type, body) = match negotiate(&plain.join(",")) {
        Ok(wanted) if is_plain && wanted.syntax == Syntax::Json => return response,
        Ok(wanted) if is_plain => {
            (wanted.content_type(), encode_value(&error.to_value(), wanted.syntax))
        }
        _ => {
            let text = serde_json::to_vec_pretty(&error.to_value());
            ("application/json", text.expect("a JSON tree always encodes").into())
        }
    };
    *response.body_mut() = Body::full(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// An aggregated discovery document, or 304 if the client has the current one.
pub(crate) fn aggregated(document: &Aggregated, if_none_match: &str) -> Response<Body> {
    tagged(&document.content_type, &document.etag, &document.body, if_none_match)
}

/// An OpenAPI document, or 304 if the client has the current one.
pub(crate) fn document(document: &Document, if_none_match: &str) -> Response<Body> {
    tagged(document.content_type, &document.etag, &document.body, if_none_match)
}

fn tagged(content_type: &str, etag: &str, body: &Bytes, if_none_match: &str) -> Response<Body> {
    let known = if_none_match.split(',').any(|tag| tag.trim() == etag);
    let mut response = if known {
        bytes_response(StatusCode::NOT_MODIFIED, content_type, Bytes::new())
    } else {
        bytes_response(StatusCode::OK, content_type, body.clone())
    };
    let headers = response.headers_mut();
    if let Ok(value) = HeaderValue::from_str(etag) {
        headers.insert(ETAG, value);
    }
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("public"));
    headers.insert(VARY, HeaderValue::from_static("Accept"));
    response
}

/// The maximum total length of the warnings of a response, as in upstream: clients reject responses
/// with large headers.
const WARNINGS_LENGTH_MAX: usize = 4096;

/// The length to which each warning is truncated if the total is too long.
const CUT_WARNING_LENGTH_MAX: usize = 256;

/// Adds `Warning` headers, without duplicates.
pub(crate) fn add_warnings(response: &mut Response<Body>, warnings: &[String]) {
    let mut known = HashSet::new();
    let warnings: Vec<&String> = warnings.iter().filter(|warning| known.insert(*warning)).collect();
    let length: usize = warnings.iter().map(|warning| warning.chars().count()).sum();
    let kept_max =
        if length > WARNINGS_LENGTH_MAX { CUT_WARNING_LENGTH_MAX } else { WARNINGS_LENGTH_MAX };
    let mut written = 0;
    for warning in warnings {
        if written >= WARNINGS_LENGTH_MAX {
            break;
        }
        let kept: String = warning.chars().take(kept_max).collect();
        written += kept.chars().count();
        let escaped = kept.replace('\\', "\\\\").replace('"', "\\\"");
        let text = format!("299 - \"{escaped}\"");
        if let Ok(value) = HeaderValue::from_bytes(text.as_bytes()) {
            response.headers_mut().append(http::header::WARNING, value);
        }
    }
}
