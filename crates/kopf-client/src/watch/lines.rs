//! Parses the bytes of lists and watches: envelopes, items, versions and errors.

use std::time::Duration;

use kopf_model::Object;

use super::{ChangeKind, INITIAL_END};
use crate::error::{Failure, RequestError};
use crate::outgoing::Outgoing;

/// Whether a bookmark means that everything that exists has been sent.
pub(super) fn is_end_of_initial(bookmark: &Object) -> bool {
    bookmark.value()["metadata"]["annotations"][INITIAL_END] == "true"
}

/// An event as all servers write it: the type first, the object last. Anything else is parsed
/// generally.
pub(super) fn usual_envelope(line: &[u8]) -> Option<(ChangeKind, &[u8])> {
    let rest = line.trim_ascii().strip_prefix(b"{\"type\":\"")?.strip_suffix(b"}")?;
    [
        (ChangeKind::Added, &b"ADDED"[..]),
        (ChangeKind::Modified, b"MODIFIED"),
        (ChangeKind::Deleted, b"DELETED"),
    ]
    .into_iter()
    .find_map(|(kind, name)| Some((kind, rest.strip_prefix(name)?)))
    .and_then(|(kind, rest)| Some((kind, rest.strip_prefix(b"\",\"object\":")?)))
}

pub(super) fn advance(version: &mut String, newer: &str) {
    if !newer.is_empty() {
        newer.clone_into(version);
    }
}

/// Items of built-in kinds have no `apiVersion` and `kind`; both are taken from the list.
pub(super) fn completed(
    object: Object,
    api_version: &str,
    kind: &str,
) -> Result<Object, kopf_model::ParseError> {
    if !object.kind().is_empty() || kind.is_empty() {
        return Ok(object);
    }
    let raw = object.raw();
    let inner = raw.strip_prefix(b"{").unwrap_or(raw);
    let comma = if inner.trim_ascii() == b"}" { "" } else { "," };
    let mut completed = Vec::with_capacity(raw.len() + 64);
    completed.extend_from_slice(b"{\"apiVersion\":");
    completed.extend_from_slice(&serde_json::to_vec(api_version).unwrap_or_default());
    completed.extend_from_slice(b",\"kind\":");
    completed.extend_from_slice(&serde_json::to_vec(kind).unwrap_or_default());
    completed.extend_from_slice(comma.as_bytes());
    completed.extend_from_slice(inner);
    Object::parse(completed)
}

pub(super) fn malformed(
    path: &str,
    message: &str,
    source: impl std::error::Error + Send + Sync + 'static,
) -> RequestError {
    let mut failed =
        RequestError::local(Failure::Malformed, &http::Method::GET, path, message.to_owned());
    failed.source = Some(Box::new(source));
    failed
}

pub(super) fn timed_out(outgoing: &Outgoing, limit: Duration) -> RequestError {
    let message = format!("no answer within {limit:?}");
    RequestError::local(Failure::Timeout, &outgoing.method, &outgoing.path, message)
}
