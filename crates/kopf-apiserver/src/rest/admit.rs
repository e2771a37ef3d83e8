//! The admission steps common to all writes.

use serde_json::Value;

use super::{Call, Change, Made, update_with};
use crate::admission::{self, Charge, Operation};
use crate::apply::{ManagedFields, Owned};
use crate::quantity::Quantity;
use crate::request::{RequestInfo, Verb};
use crate::{Cause, StatusError};

/// Whether any plugin handles this write; if not, admission is skipped.
pub(super) fn concerns(call: &Call) -> bool {
    admission::concerns(&call.inner, &call.resource)
}

/// Runs mutating admission over `object`.
pub(super) async fn mutate(
    call: &mut Call,
    operation: Operation,
    object: &mut Value,
    managed: &mut ManagedFields,
    old: Option<Owned<'_>>,
) -> Result<(), StatusError> {
    let inner = std::sync::Arc::clone(&call.inner);
    let mut request = call.admission(operation);
    managed.put_into(object);
    request.object = Some(std::mem::take(object));
    request.old_object = old.map(Owned::whole);
    let outcome = Box::pin(admission::mutate(&inner, &mut request)).await;
    *object = request.object.take().unwrap_or_default();
    let warnings = std::mem::take(&mut request.warnings);
    let annotations = std::mem::take(&mut request.annotations);
    call.warnings.extend(warnings);
    call.annotations.extend(annotations);
    // Fields added by plugins need defaults, like everything that clients send.
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

/// Runs validating admission; `object` is `None` for deletions.
pub(super) async fn validate(
    call: &mut Call,
    operation: Operation,
    object: Option<Owned<'_>>,
    old: Option<Owned<'_>>,
) -> Result<(), StatusError> {
    let inner = std::sync::Arc::clone(&call.inner);
    let mut request = call.admission(operation);
    request.object = object.map(Owned::whole);
    request.old_object = old.map(Owned::whole);
    let outcome = Box::pin(admission::validate(&inner, &mut request)).await;
    let warnings = std::mem::take(&mut request.warnings);
    let annotations = std::mem::take(&mut request.annotations);
    call.warnings.extend(warnings);
    call.annotations.extend(annotations);
    for charge in outcome? {
        if !call.options.dry_run {
            Box::pin(self::charge(call, &charge)).await?;
        }
    }
    Ok(())
}

/// Adds to the usage that a quota reports, as the server itself.
async fn charge(call: &Call, charge: &Charge) -> Result<(), StatusError> {
    let resource = call.inner.resource_of_table("resourcequotas")?;
    let info = RequestInfo {
        verb: Verb::Update,
        group: resource.group.clone(),
        version: resource.version.clone(),
        resource: resource.resource.clone(),
        subresource: "status".to_owned(),
        namespace: call.info.namespace.clone(),
        name: charge.quota.clone(),
    };
    let mut write = Call::internal(&call.inner, &resource, info, "kube-apiserver");
    let outcome = update_with(&mut write, Change::Patch, |_, present| {
        let mut quota = present.object.clone();
        for (name, more) in &charge.amounts {
            // Resources that have not been counted yet are left to the controller.
            let used = quota.pointer_mut("/status/used").and_then(|used| used.get_mut(name));
            if let Some(used) = used
                && let Some(present) = used.as_str().and_then(Quantity::parse)
            {
                *used = present.plus(*more).canonical().into();
            }
        }
        Ok(Made::from(quota))
    });
    match outcome.await {
        Err(error) if error.code == 404 => Ok(()),
        outcome => outcome.map(|_| ()),
    }
}

/// Rejects creations in namespaces that are missing or terminating.
pub(super) fn check_namespace(call: &mut Call) -> Result<(), StatusError> {
    if !call.resource.namespaced {
        return Ok(());
    }
    // The newest state: nothing may be created after the deletion has started.
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
