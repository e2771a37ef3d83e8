//! Admission: plugins that may change or refuse a write.
//!
//! Owns the chain and its order: built-in plugins, mutating webhooks, validation (elsewhere),
//! validating webhooks. The REST code calls `mutate` after defaulting and before validation,
//! `validate` after validation; both outside the store's lock.
//!
//! `webhook` reads configurations, `matching` decides whether one is called, `review` speaks the
//! AdmissionReview format, `call` carries it over HTTPS or to a function in the process,
//! `dispatch` runs the webhooks, `policy` evaluates admission policies, `plugins` holds what
//! upstream compiles in.

mod call;
mod dispatch;
mod matching;
mod plugins;
mod policy;
mod resolver;
mod review;
mod webhook;

use serde_json::Value;

use crate::local::LocalClient;
use crate::resource::ResourceInfo;
use crate::store::Snapshot;
use crate::{StatusError, User};

pub(crate) use plugins::quota_usage;
pub use resolver::{FallibleWebhookFunction, WebhookFunction, WebhookTarget};

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

/// The ordered plugins of one server.
#[derive(Default)]
pub(crate) struct Chain {
    /// Where webhooks that are named by services or given as functions live.
    pub(crate) targets: resolver::Targets,
    caller: call::Caller,
}

impl Chain {
    /// The same webhooks for another server, which may get others later.
    pub(crate) fn fork(&self) -> Self {
        Self { targets: self.targets.fork(), caller: call::Caller::default() }
    }

    /// Lets every mutating plugin change `request.object` or refuse the request.
    pub(crate) async fn mutate(
        &self,
        client: &LocalClient,
        request: &mut AdmissionRequest<'_>,
    ) -> Result<(), StatusError> {
        let snapshot = client.snapshot();
        plugins::mutate(&snapshot, request)?;
        if has_any(&snapshot, MUTATING) {
            dispatch::mutate(self, client, &snapshot, request).await?;
        }
        Ok(())
    }

    /// Lets every validating plugin refuse the request.
    pub(crate) async fn validate(
        &self,
        client: &LocalClient,
        request: &mut AdmissionRequest<'_>,
    ) -> Result<(), StatusError> {
        let snapshot = client.snapshot();
        plugins::validate(&snapshot, request)?;
        if has_any(&snapshot, policy::BINDINGS) {
            policy::validate(client, &snapshot, request).await?;
        }
        if has_any(&snapshot, VALIDATING) {
            dispatch::validate(self, client, &snapshot, request).await?;
        }
        plugins::check_quota(&snapshot, request)
    }

    /// Asks a webhook that is none of admission's, such as one that converts.
    ///
    /// The error tells why there is no answer, in the words of Go's HTTP client.
    pub(crate) async fn ask(
        &self,
        client_config: &Value,
        timeout_seconds: u64,
        review: &Value,
    ) -> Result<Value, String> {
        self.caller.call(client_config, &self.targets, timeout_seconds, review).await
    }

    /// Whether any plugin could look at this write; false lets the pipeline skip copies.
    pub(crate) fn concerns(&self, client: &LocalClient, resource: &ResourceInfo) -> bool {
        let snapshot = client.snapshot();
        if plugins::concern(resource, &snapshot) {
            return true;
        }
        [MUTATING, VALIDATING, policy::BINDINGS].iter().any(|table| has_any(&snapshot, table))
    }
}

fn has_any(snapshot: &Snapshot, table: &str) -> bool {
    snapshot.table(table).is_some_and(|table| !table.is_empty())
}
