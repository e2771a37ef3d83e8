//! The admission steps that every write shares.

use serde_json::Value;

use super::Call;
use crate::admission::Operation;
use crate::apply::{ManagedFields, Owned};
use crate::{Cause, StatusError};

/// Whether any plugin could look at this write; if not, there is no need for admission.
pub(super) fn concerns(call: &Call) -> bool {
    call.inner.admission.concerns(&call.local(), &call.resource)
}

/// Runs mutating admission over `object`.
pub(super) async fn mutate(
    call: &mut Call,
    operation: Operation,
    object: &mut Value,
    managed: &mut ManagedFields,
    old: Option<Owned<'_>>,
) -> Result<(), StatusError> {
    let client = call.local();
    let chain = std::sync::Arc::clone(&call.inner.admission);
    let mut request = call.admission(operation);
    managed.put_into(object);
    request.object = Some(std::mem::take(object));
    request.old_object = old.map(Owned::whole);
    let outcome = Box::pin(chain.mutate(&client, &mut request)).await;
    *object = request.object.take().unwrap_or_default();
    let warnings = std::mem::take(&mut request.warnings);
    let annotations = std::mem::take(&mut request.annotations);
    call.warnings.extend(warnings);
    call.annotations.extend(annotations);
    // What plugins added needs its defaults, like everything that clients send.
    super::object::finish(call, object);
    match managed.retake_from(object) {
        Ok(taken) => *managed = taken,
        Err(problem) => call.warnings.push(format!(
            ".metadata.managedFields was in an invalid state after admission; this could be \
             caused by an outdated mutating admission controller; please fix your requests: \
             {problem}"
        )),
    }
    outcome
}

/// Runs validating admission; `object` is none for deletions.
pub(super) async fn validate(
    call: &mut Call,
    operation: Operation,
    object: Option<Owned<'_>>,
    old: Option<Owned<'_>>,
) -> Result<(), StatusError> {
    let client = call.local();
    let chain = std::sync::Arc::clone(&call.inner.admission);
    let mut request = call.admission(operation);
    request.object = object.map(Owned::whole);
    request.old_object = old.map(Owned::whole);
    let outcome = Box::pin(chain.validate(&client, &mut request)).await;
    let warnings = std::mem::take(&mut request.warnings);
    let annotations = std::mem::take(&mut request.annotations);
    call.warnings.extend(warnings);
    call.annotations.extend(annotations);
    outcome
}

/// Refuses creations in namespaces that are missing or terminating.
pub(super) fn check_namespace(call: &mut Call) -> Result<(), StatusError> {
    if !call.resource.namespaced {
        return Ok(());
    }
    // The newest state: nothing may be created after the beginning of the deletion.
    let (stored, batch) = call.inner.store.head("namespaces", "", &call.info.namespace);
    call.observe(batch);
    let namespace = &call.info.namespace;
    let Some(stored) = stored else {
        return Err(StatusError::not_found("", "namespaces", namespace));
    };
    if !crate::meta::is_deleting(stored.content()) {
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
