//! Answers in their HTTP form.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderValue, RETRY_AFTER, VARY};
use http::{Response, StatusCode};
use serde_json::Value;

use crate::StatusError;
use crate::body::Body;
use crate::discovery::Aggregated;
use crate::openapi::Document;

/// An answer with a body and a media type.
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

/// A JSON answer.
pub(crate) fn json_response(status: StatusCode, value: &Value) -> Response<Body> {
    bytes_response(status, "application/json", value.to_string())
}

/// A plain-text answer.
pub(crate) fn text_response(status: StatusCode, text: &'static str) -> Response<Body> {
    bytes_response(status, "text/plain; charset=utf-8", text)
}

/// A failure as a `Status`.
pub(crate) fn error_response(error: &StatusError) -> Response<Body> {
    let status = StatusCode::from_u16(error.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = json_response(status, &error.to_value());
    let retry_after = error.details.as_ref().map_or(0, |details| details.retry_after_seconds);
    if retry_after > 0 {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(retry_after));
    }
    response
}

/// An aggregated discovery document, or 304 if the client has it.
pub(super) fn aggregated(document: &Aggregated, if_none_match: &str) -> Response<Body> {
    tagged(&document.content_type, &document.etag, &document.body, if_none_match)
}

/// An OpenAPI document, or 304 if the client has it.
pub(super) fn document(document: &Document, if_none_match: &str) -> Response<Body> {
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

/// Adds `Warning` headers.
pub(super) fn add_warnings(response: &mut Response<Body>, warnings: &[String]) {
    for warning in warnings {
        let escaped = warning.replace('\\', "\\\\").replace('"', "\\\"");
        let text = format!("299 - \"{escaped}\"");
        if let Ok(value) = HeaderValue::from_str(&text) {
            response.headers_mut().append(http::header::WARNING, value);
        }
    }
}
