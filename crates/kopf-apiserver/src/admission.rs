//! Admission: plugins that may change or refuse a write.
//!
//! Owns the plugins and their order: built-in plugins, mutating policies, mutating webhooks,
//! validation (elsewhere), validating policies, validating webhooks. The REST code calls `mutate`
//! after defaulting and before validation, `validate` after validation; both outside the store's
//! lock.
//!
//! `webhook` reads configurations, `matching` decides whether one is called, `review` speaks the
//! AdmissionReview format, `dispatch` runs the webhooks, `policy` evaluates admission policies,
//! `plugins` holds what upstream compiles in.

mod dispatch;
mod matching;
mod plugins;
mod policy;
mod review;
mod webhook;

use serde_json::Value;

use crate::resource::ResourceInfo;
use crate::state::Inner;
use crate::store::Snapshot;
use crate::{StatusError, User};
use policy::mutations;

pub(crate) use plugins::Charge;

/// Table of the configurations of mutating webhooks.
const MUTATING: &str = "mutatingwebhookconfigurations.admissionregistration.k8s.io";
/// Table of the configurations of validating webhooks.
const VALIDATING: &str = "validatingwebhookconfigurations.admissionregistration.k8s.io";

/// What is about to happen to the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    /// A creation.
    Create,
    /// A replacement or a patch.
    Update,
    /// A deletion.
    Delete,
}

impl Operation {
    /// As in rules and reviews.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }
}

/// One write on its way to the store.
pub(crate) struct AdmissionRequest<'a> {
    /// What is about to happen.
    pub(crate) operation: Operation,
    /// The resource in the requested version.
    pub(crate) resource: &'a ResourceInfo,
    /// The subresource, empty for the main resource.
    pub(crate) subresource: &'a str,
    /// The namespace, empty for cluster scope.
    pub(crate) namespace: &'a str,
    /// The name, empty when it is yet to be generated.
    pub(crate) name: &'a str,
    /// Who asks.
    pub(crate) user: &'a User,
    /// The new object in the requested version; none for deletions.
    pub(crate) object: Option<Value>,
    /// The present object in the requested version; none for creations.
    pub(crate) old_object: Option<Value>,
    /// Whether nothing will be stored.
    pub(crate) dry_run: bool,
    /// The options object of the request (`CreateOptions`, `UpdateOptions`, ...).
    pub(crate) options: Value,
    /// Warnings for the client, filled by plugins.
    pub(crate) warnings: Vec<String>,
    /// Notes for the audit log, filled by plugins.
    pub(crate) annotations: Vec<(String, String)>,
}

/// Lets every mutating plugin change `request.object` or refuse the request.
pub(crate) async fn mutate(
    inner: &Inner,
    request: &mut AdmissionRequest<'_>,
) -> Result<(), StatusError> {
    let snapshot = inner.store.snapshot();
    plugins::mutate(&snapshot, request)?;
    let policies = match has_any(&snapshot, mutations::BINDINGS) {
        true => Some(Box::pin(mutations::mutate(inner, &snapshot, request)).await?),
        false => None,
    };
    if has_any(&snapshot, MUTATING) {
        dispatch::mutate(inner, &snapshot, request).await?;
    }
    match policies {
        Some(pass) => Box::pin(mutations::mutate_again(inner, &snapshot, request, pass)).await,
        None => Ok(()),
    }
}

/// Lets every validating plugin refuse the request; returns what it needs of quotas.
pub(crate) async fn validate(
    inner: &Inner,
    request: &mut AdmissionRequest<'_>,
) -> Result<Vec<Charge>, StatusError> {
    let snapshot = inner.store.snapshot();
    plugins::validate(&snapshot, request)?;
    if has_any(&snapshot, policy::BINDINGS) {
        policy::validate(inner, &snapshot, request).await?;
    }
    if has_any(&snapshot, VALIDATING) {
        dispatch::validate(inner, &snapshot, request).await?;
    }
    plugins::check_quota(&snapshot, request)
}

/// Whether any plugin could look at a write of this resource; false lets the pipeline skip copies.
pub(crate) fn concerns(inner: &Inner, resource: &ResourceInfo) -> bool {
    let snapshot = inner.store.snapshot();
    if plugins::concern(resource, &snapshot) {
        return true;
    }
    [MUTATING, VALIDATING, policy::BINDINGS, mutations::BINDINGS]
        .iter()
        .any(|table| has_any(&snapshot, table))
}

fn has_any(snapshot: &Snapshot, table: &str) -> bool {
    snapshot.table(table).is_some_and(|table| !table.is_empty())
}
