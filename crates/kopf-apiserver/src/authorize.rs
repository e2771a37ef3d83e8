//! Authorizes requests.

use crate::access::{Attributes, Decision};
use crate::http_request::Request;
use crate::query::Query;
use crate::request::{RequestInfo, Verb};
use crate::state::Inner;
use crate::{StatusError, User};

/// Rejects a resource request that the user may not make.
pub(crate) fn authorize(
    inner: &Inner,
    user: &User,
    info: &RequestInfo,
    query: &Query,
) -> Result<(), StatusError> {
    if inner.allows_all {
        return Ok(());
    }
    check(inner, user, &attributes_of(info, info.verb.as_str(), query))
}

/// The authorizer attributes of a request.
pub(crate) fn attributes_of(info: &RequestInfo, verb: &str, query: &Query) -> Attributes {
    Attributes {
        verb: verb.to_owned(),
        group: info.group.clone(),
        version: info.version.clone(),
        resource: info.resource.clone(),
        subresource: info.subresource.clone(),
        namespace: info.namespace.clone(),
        name: authorized_name(info, query),
        path: String::new(),
    }
}

/// The name of the only object that a request can affect. A collection request that selects one
/// name is authorized for that object, as in upstream.
fn authorized_name(info: &RequestInfo, query: &Query) -> String {
    let is_collection = matches!(info.verb, Verb::List | Verb::Watch | Verb::DeleteCollection);
    if !info.name.is_empty() || !is_collection {
        return info.name.clone();
    }
    let exact = |term: &str| {
        let value = term.trim().strip_prefix("metadata.name=")?;
        let name = value.strip_prefix('=').unwrap_or(value);
        let is_segment = !matches!(name, "." | "..") && !name.contains(['/', '%']);
        is_segment.then(|| name.to_owned())
    };
    query.text("fieldSelector").split(',').find_map(exact).unwrap_or_default()
}

/// Rejects a non-resource request that the user may not make.
pub(crate) fn authorize_path(
    inner: &Inner,
    user: &User,
    request: &Request,
) -> Result<(), StatusError> {
    if inner.allows_all {
        return Ok(());
    }
    let attributes = Attributes {
        verb: request.method.as_str().to_lowercase(),
        path: request.path.clone(),
        ..Attributes::default()
    };
    check(inner, user, &attributes)
}

/// Upstream's message for a rejected request.
pub(crate) fn forbidden(user: &User, attributes: &Attributes, reason: &str) -> StatusError {
    let Attributes { verb, group, resource, subresource, namespace, name, path, .. } = attributes;
    let tail = if reason.is_empty() { String::new() } else { format!(": {reason}") };
    if resource.is_empty() {
        let message = format!("forbidden: User {:?} cannot {verb} path {path:?}{tail}", user.name);
        return StatusError::new(403, "Forbidden", message).about("", "", "");
    }
    let full =
        if subresource.is_empty() { resource.clone() } else { format!("{resource}/{subresource}") };
    let scope = if namespace.is_empty() {
        " at the cluster scope".to_owned()
    } else {
        format!(" in the namespace {namespace:?}")
    };
    let problem = format!(
        "User {:?} cannot {verb} resource {full:?} in API group {group:?}{scope}{tail}",
        user.name
    );
    StatusError::forbidden(group, resource, name, &problem)
}

/// Rejects requests that the authorizer denies.
pub(crate) fn check(
    inner: &Inner,
    user: &User,
    attributes: &Attributes,
) -> Result<(), StatusError> {
    let snapshot = inner.store.snapshot();
    match inner.authorizer.authorize(&snapshot, user, attributes) {
        Decision::Allow(_) => Ok(()),
        Decision::Deny(reason) => Err(forbidden(user, attributes, &reason)),
    }
}
