//! The admission steps that every write shares.

use std::borrow::Cow;

use serde_json::Value;

use super::Call;
use crate::admission::Operation;
use crate::store::Snapshot;
use crate::{Cause, StatusError};

/// Runs mutating admission over `object`; free when no plugin is interested.
pub(super) async fn mutate(
    call: &mut Call,
    operation: Operation,
    object: &mut Value,
    old: Option<&Value>,
) -> Result<(), StatusError> {
    let client = call.local();
    if !call.inner.admission.concerns(&client, &call.resource) {
        return Ok(());
    }
    let chain = std::sync::Arc::clone(&call.inner.admission);
    let mut request = call.admission(operation);
    request.object = Some(std::mem::take(object));
    request.old_object = old.cloned();
    let outcome = chain.mutate(&client, &mut request).await;
    *object = request.object.take().unwrap_or_default();
    let warnings = std::mem::take(&mut request.warnings);
    call.warnings.extend(warnings);
    // What plugins added needs its defaults, like everything that clients send.
    super::object::finish(call, object);
    outcome
}

/// Runs validating admission; `object` is none for deletions.
pub(super) async fn validate(
    call: &mut Call,
    operation: Operation,
    object: Option<&Value>,
    old: Option<Cow<'_, Value>>,
) -> Result<(), StatusError> {
    let client = call.local();
    if !call.inner.admission.concerns(&client, &call.resource) {
        return Ok(());
    }
    let chain = std::sync::Arc::clone(&call.inner.admission);
    let mut request = call.admission(operation);
    request.object = object.cloned();
    request.old_object = old.map(Cow::into_owned);
    let outcome = chain.validate(&client, &mut request).await;
    let warnings = std::mem::take(&mut request.warnings);
    call.warnings.extend(warnings);
    outcome
}

/// Refuses creations in namespaces that are missing or terminating.
pub(super) fn check_namespace(call: &Call, snapshot: &Snapshot) -> Result<(), StatusError> {
    if !call.resource.namespaced {
        return Ok(());
    }
    let namespace = &call.info.namespace;
    let Some(stored) = snapshot.get("namespaces", "", namespace) else {
        return Err(StatusError::not_found("", "namespaces", namespace));
    };
    if !crate::meta::is_deleting(stored.value()) {
        return Ok(());
    }
    let resource = &call.resource;
    let problem = format!(
        "unable to create new content in namespace {namespace} because it is being terminated"
    );
    let cause = Cause {
        reason: "NamespaceTerminating".to_owned(),
        message: format!("namespace {namespace} is being terminated"),
        field: "metadata.namespace".to_owned(),
    };
    let forbidden =
        StatusError::forbidden(&resource.group, &resource.resource, &call.info.name, &problem);
    Err(forbidden.with_cause(cause))
}
