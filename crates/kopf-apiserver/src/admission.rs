//! Admission: plugins that may change or reject a write.
//!
//! Responsible for the plugins and their order: built-in plugins, mutating policies, mutating
//! webhooks, validation (elsewhere), validating policies, validating webhooks. The REST code calls
//! `mutate` after defaulting and before validation, and `validate` after validation; both without
//! holding the store's lock.
//!
//! `webhook` reads configurations, `matching` decides whether a webhook is called, `review`
//! implements the AdmissionReview format, `dispatch` runs the webhooks, `policy` evaluates
//! admission policies, and `plugins` contains upstream's built-in plugins.

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

/// The operation on the object.
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
    /// The name in rules and reviews.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }
}

/// A write that has not been stored yet.
pub(crate) struct AdmissionRequest<'a> {
    /// The operation.
    pub(crate) operation: Operation,
    /// The resource in the requested version.
    pub(crate) resource: &'a ResourceInfo,
    /// The subresource, empty for the main resource.
    pub(crate) subresource: &'a str,
    /// The namespace, empty for cluster scope.
    pub(crate) namespace: &'a str,
    /// The name; empty if it will be generated.
    pub(crate) name: &'a str,
    /// The requesting user.
    pub(crate) user: &'a User,
    /// The new object in the requested version; `None` for deletions.
    pub(crate) object: Option<Value>,
    /// The current object in the requested version; `None` for creations.
    pub(crate) old_object: Option<Value>,
    /// Whether this is a dry run.
    pub(crate) dry_run: bool,
    /// The options object of the request (`CreateOptions`, `UpdateOptions`, ...).
    pub(crate) options: Value,
    /// Warnings for the client, filled by plugins.
    pub(crate) warnings: Vec<String>,
    /// Annotations for the audit log, filled by plugins.
    pub(crate) annotations: Vec<(String, String)>,
}

/// Lets every mutating plugin change `request.object` or reject the request.
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

/// Lets every validating plugin reject the request; returns its charges to quotas.
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

/// Whether any plugin handles writes of this resource; if not, the pipeline can skip copies.
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
