//! Decides whether a webhook is to be asked about a write, and under which name of the resource.
//!
//! Pure apart from reading namespaces from the snapshot. Same rules as upstream: selectors, rules
//! with wildcards, scope and subresources, equivalent versions, match conditions in CEL.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;

use super::webhook::{FailurePolicy, Webhook};
use super::{AdmissionRequest, Operation};
use crate::controllers::fields::{at, items, text, texts};
use crate::controllers::selector::matches_or_everything;
use crate::resource::ResourceInfo;
use crate::schema::cel::{self, Condition, Variables};
use crate::store::Snapshot;
use crate::{LocalClient, StatusError, convert};

/// The version of the resource under which a webhook wants to see a write.
pub(super) enum Seen {
    /// As it was requested.
    AsRequested,
    /// As an equivalent version.
    As(Arc<ResourceInfo>),
}

/// A write as one webhook sees it.
pub(super) struct View<'a> {
    /// The resource in the version that the webhook asked for.
    pub(super) resource: &'a ResourceInfo,
    /// The new object in that version.
    pub(super) object: Option<Cow<'a, Value>>,
    /// The present object in that version.
    pub(super) old_object: Option<Cow<'a, Value>>,
}

impl<'a> View<'a> {
    /// The write as it was requested.
    pub(super) fn as_requested(request: &'a AdmissionRequest<'_>) -> Self {
        let (object, old_object) = (request.object.as_ref(), request.old_object.as_ref());
        let (object, old_object) = (object.map(Cow::Borrowed), old_object.map(Cow::Borrowed));
        Self { resource: request.resource, object, old_object }
    }

    /// The write in the version that a webhook asked for.
    ///
    /// Objects of custom resources are converted; of built-in ones, only the apiVersion differs.
    pub(super) async fn of(
        client: &LocalClient,
        request: &'a AdmissionRequest<'_>,
        seen: &'a Seen,
    ) -> Result<Self, StatusError> {
        let Seen::As(resource) = seen else { return Ok(Self::as_requested(request)) };
        let mut objects = [None, None];
        let requested = [request.object.as_ref(), request.old_object.as_ref()];
        for (place, object) in objects.iter_mut().zip(requested) {
            if let Some(object) = object {
                *place = Some(Cow::Owned(in_version(client, resource, object.clone()).await?));
            }
        }
        let [object, old_object] = objects;
        Ok(Self { resource, object, old_object })
    }
}

/// An object in the version of a resource; a failure is the server's own.
pub(super) async fn in_version(
    client: &LocalClient,
    resource: &ResourceInfo,
    object: Value,
) -> Result<Value, StatusError> {
    let converted = convert::seen_as(client.inner(), resource, object).await;
    converted.map_err(convert::ConversionError::into_internal)
}

/// Whether the rules and selectors of a webhook fit a write.
pub(super) fn find(
    webhook: &Webhook,
    client: &LocalClient,
    snapshot: &Snapshot,
    request: &AdmissionRequest<'_>,
) -> Option<Seen> {
    // Webhooks could otherwise make their own configurations unchangeable.
    if request.resource.group == "admissionregistration.k8s.io" {
        return None;
    }
    let seen = find_version(webhook, client, request)?;
    let is_selected = matches_namespace(webhook.namespace_selector(), snapshot, request)
        && matches_object(webhook.object_selector(), request);
    is_selected.then_some(seen)
}

/// Whether the `matchConstraints` of a policy, or the `matchResources` of its binding, fit a write.
pub(super) fn constrains(
    constraints: &Value,
    snapshot: &Snapshot,
    request: &AdmissionRequest<'_>,
) -> bool {
    if request.resource.group == "admissionregistration.k8s.io" {
        return false;
    }
    let fits = |list: &str| {
        let mut rules = items(constraints, &[list]).iter();
        let is_named = |rule: &Value| {
            let names = texts(rule, &["resourceNames"]);
            names.is_empty() || names.contains(&request.name)
        };
        rules.any(|rule| is_named(rule) && matches_rule(rule, request.resource, request))
    };
    let has_rules = !items(constraints, &["resourceRules"]).is_empty();
    (!has_rules || fits("resourceRules"))
        && !fits("excludeResourceRules")
        && matches_namespace(constraints.get("namespaceSelector"), snapshot, request)
        && matches_object(constraints.get("objectSelector"), request)
}

fn find_version(
    webhook: &Webhook,
    client: &LocalClient,
    request: &AdmissionRequest<'_>,
) -> Option<Seen> {
    if webhook.rules().iter().any(|rule| matches_rule(rule, request.resource, request)) {
        return Some(Seen::AsRequested);
    }
    if !webhook.matches_equivalents() {
        return None;
    }
    client
        .resources()
        .into_iter()
        .filter(|other| {
            other.group == request.resource.group
                && other.resource == request.resource.resource
                && other.version != request.resource.version
        })
        .find(|other| webhook.rules().iter().any(|rule| matches_rule(rule, other, request)))
        .map(Seen::As)
}

/// Whether one rule fits a write, seen as a version of the resource.
fn matches_rule(rule: &Value, resource: &ResourceInfo, request: &AdmissionRequest<'_>) -> bool {
    let has = |list: &str, wanted: &str| {
        texts(rule, &[list]).iter().any(|entry| *entry == "*" || *entry == wanted)
    };
    let is_resource = texts(rule, &["resources"]).iter().any(|entry| {
        let (name, subresource) = entry.split_once('/').unwrap_or((entry, ""));
        (name == "*" || name == resource.resource)
            && (subresource == "*" || subresource == request.subresource)
    });
    let is_namespace = resource.group.is_empty() && resource.resource == "namespaces";
    let is_in_scope = match text(rule, &["scope"]) {
        "Namespaced" => resource.namespaced && !request.namespace.is_empty(),
        "Cluster" => is_namespace || !resource.namespaced,
        _ => true,
    };
    has("operations", request.operation.as_str())
        && has("apiGroups", &resource.group)
        && has("apiVersions", &resource.version)
        && is_resource
        && is_in_scope
}

fn is_empty(selector: Option<&Value>) -> bool {
    selector.is_none_or(|selector| {
        selector.is_null() || selector.as_object().is_some_and(serde_json::Map::is_empty)
    })
}

fn matches_namespace(
    selector: Option<&Value>,
    snapshot: &Snapshot,
    request: &AdmissionRequest<'_>,
) -> bool {
    if is_empty(selector) {
        return true;
    }
    let is_namespace =
        request.resource.group.is_empty() && request.resource.resource == "namespaces";
    if !request.resource.namespaced && !is_namespace {
        return true;
    }
    let is_own_labels = is_namespace
        && request.subresource.is_empty()
        && matches!(request.operation, Operation::Create | Operation::Update);
    if is_own_labels {
        let labels = request.object.as_ref().and_then(|object| at(object, &["metadata", "labels"]));
        return matches_or_everything(selector, labels);
    }
    let name = if is_namespace { request.name } else { request.namespace };
    let namespace = snapshot.get("namespaces", "", name);
    let labels =
        namespace.as_ref().and_then(|namespace| at(namespace.content(), &["metadata", "labels"]));
    matches_or_everything(selector, labels)
}

fn matches_object(selector: Option<&Value>, request: &AdmissionRequest<'_>) -> bool {
    is_empty(selector)
        || [&request.object, &request.old_object]
            .into_iter()
            .flatten()
            .any(|object| matches_or_everything(selector, at(object, &["metadata", "labels"])))
}

/// Whether all match conditions hold; an error decides by the failure policy.
pub(super) fn holds(
    webhook: &Webhook,
    request: &AdmissionRequest<'_>,
    view: &View<'_>,
    review_request: &Value,
) -> Result<bool, StatusError> {
    let variables = Variables {
        object: view.object.as_deref().unwrap_or(&Value::Null),
        old_object: view.old_object.as_deref().unwrap_or(&Value::Null),
        request: review_request,
    };
    let mut problems = Vec::new();
    cel::start_budget();
    for (_, expression) in webhook.match_conditions() {
        let answer = Condition::parse(expression).and_then(|found| found.holds(variables));
        match answer {
            Ok(true) => {}
            // One false condition decides, whatever else went wrong.
            Ok(false) => return Ok(false),
            Err(problem) => {
                problems.push(format!("expression '{expression}' resulted in error: {problem}"));
            }
        }
    }
    match (problems.as_slice(), webhook.failure_policy()) {
        ([], _) => Ok(true),
        (_, FailurePolicy::Ignore) => Ok(false),
        (problems, FailurePolicy::Fail) => {
            let problem = match problems {
                [single] => single.clone(),
                several => format!("[{}]", several.join(", ")),
            };
            let resource = request.resource;
            Err(StatusError::forbidden(&resource.group, &resource.resource, request.name, &problem))
        }
    }
}
