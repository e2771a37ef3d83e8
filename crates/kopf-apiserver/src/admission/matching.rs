//! Decides whether a webhook is called for a write, and for which version of the resource.
//!
//! Pure apart from reading namespaces from the snapshot. Follows upstream's rules: selectors, rules
//! with wildcards, scope and subresources, equivalent versions, match conditions in CEL.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;

use super::webhook::{FailurePolicy, Webhook};
use super::{AdmissionRequest, Operation};
use crate::fields::{at, items, text, texts};
use crate::label_selectors::matches_or_everything;
use crate::resource::ResourceInfo;
use crate::schema::cel::{self, Access, Admitted, Environment};
use crate::state::Inner;
use crate::store::Snapshot;
use crate::{StatusError, User, convert};

/// The version of the resource in which a webhook receives a write.
pub(super) enum Seen {
    /// The requested version.
    AsRequested,
    /// An equivalent version.
    As(Arc<ResourceInfo>),
}

/// A write as one webhook sees it.
pub(super) struct View<'a> {
    /// The resource in the version for the webhook.
    pub(super) resource: &'a ResourceInfo,
    /// The new object in that version.
    pub(super) object: Option<Cow<'a, Value>>,
    /// The current object in that version.
    pub(super) old_object: Option<Cow<'a, Value>>,
}

impl<'a> View<'a> {
    /// The write as it was requested.
    pub(super) fn as_requested(request: &'a AdmissionRequest<'_>) -> Self {
        let (object, old_object) = (request.object.as_ref(), request.old_object.as_ref());
        let (object, old_object) = (object.map(Cow::Borrowed), old_object.map(Cow::Borrowed));
        Self { resource: request.resource, object, old_object }
    }

    /// The write in the version for a webhook.
    ///
    /// Custom resources are converted; for built-in kinds, only the apiVersion differs.
    pub(super) async fn of(
        inner: &Inner,
        request: &'a AdmissionRequest<'_>,
        seen: &'a Seen,
    ) -> Result<Self, StatusError> {
        let Seen::As(resource) = seen else { return Ok(Self::as_requested(request)) };
        let mut objects = [None, None];
        let requested = [request.object.as_ref(), request.old_object.as_ref()];
        for (place, object) in objects.iter_mut().zip(requested) {
            if let Some(object) = object {
                *place = Some(Cow::Owned(in_version(inner, resource, object.clone()).await?));
            }
        }
        let [object, old_object] = objects;
        Ok(Self { resource, object, old_object })
    }
}

/// Converts an object to the version of a resource; failures are internal errors.
pub(super) async fn in_version(
    inner: &Inner,
    resource: &ResourceInfo,
    object: Value,
) -> Result<Value, StatusError> {
    let converted = convert::seen_as(inner, resource, object).await;
    converted.map_err(convert::ConversionError::into_internal)
}

/// Whether the rules and selectors of a webhook match a write.
pub(super) fn find(
    webhook: &Webhook,
    inner: &Inner,
    snapshot: &Snapshot,
    request: &AdmissionRequest<'_>,
) -> Option<Seen> {
    // Otherwise, webhooks could make their own configurations immutable.
    if request.resource.group == "admissionregistration.k8s.io" {
        return None;
    }
    let seen = find_version(webhook, inner, request)?;
    let is_selected = matches_namespace(webhook.namespace_selector(), snapshot, request)
        && matches_object(webhook.object_selector(), request);
    is_selected.then_some(seen)
}

/// Whether the `matchConstraints` of a policy or the `matchResources` of its binding match a write,
/// and in which version of the resource.
pub(super) fn constrains(
    constraints: &Value,
    inner: &Inner,
    snapshot: &Snapshot,
    request: &AdmissionRequest<'_>,
) -> Option<Seen> {
    if request.resource.group == "admissionregistration.k8s.io" {
        return None;
    }
    let fits = |list: &str, resource: &ResourceInfo| {
        let mut rules = items(constraints, &[list]).iter();
        let is_named = |rule: &Value| {
            let names = texts(rule, &["resourceNames"]);
            names.is_empty() || names.contains(&request.name)
        };
        rules.any(|rule| is_named(rule) && matches_rule(rule, resource, request))
    };
    let is_selected = !fits("excludeResourceRules", request.resource)
        && matches_namespace(constraints.get("namespaceSelector"), snapshot, request)
        && matches_object(constraints.get("objectSelector"), request);
    if !is_selected {
        return None;
    }
    let has_rules = !items(constraints, &["resourceRules"]).is_empty();
    if !has_rules || fits("resourceRules", request.resource) {
        return Some(Seen::AsRequested);
    }
    if text(constraints, &["matchPolicy"]) == "Exact" {
        return None;
    }
    let mut others = other_versions(inner, request);
    others.find(|other| fits("resourceRules", other)).map(Seen::As)
}

/// The other versions of a write's resource.
fn other_versions<'a>(
    inner: &Inner,
    request: &'a AdmissionRequest<'_>,
) -> impl Iterator<Item = Arc<ResourceInfo>> + 'a {
    inner.resources().into_iter().filter(|other| {
        other.group == request.resource.group
            && other.resource == request.resource.resource
            && other.version != request.resource.version
    })
}

fn find_version(webhook: &Webhook, inner: &Inner, request: &AdmissionRequest<'_>) -> Option<Seen> {
    if webhook.rules().iter().any(|rule| matches_rule(rule, request.resource, request)) {
        return Some(Seen::AsRequested);
    }
    if !webhook.matches_equivalents() {
        return None;
    }
    other_versions(inner, request)
        .find(|other| webhook.rules().iter().any(|rule| matches_rule(rule, other, request)))
        .map(Seen::As)
}

/// Whether a rule matches a write in this version of the resource.
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

/// Whether all match conditions hold; on errors, the failure policy decides.
pub(super) fn holds(
    webhook: &Webhook,
    inner: &Inner,
    request: &AdmissionRequest<'_>,
    view: &View<'_>,
    review_request: &Value,
) -> Result<bool, StatusError> {
    let mut expressions = webhook.match_conditions().map(|(_, expression)| expression).peekable();
    if expressions.peek().is_none() {
        return Ok(true);
    }
    let environment = environment(inner, request, view, review_request, None, &[]);
    cel::start_budget();
    match all_hold(&environment, expressions) {
        Ok(holds) => Ok(holds),
        Err(_) if webhook.failure_policy() == FailurePolicy::Ignore => Ok(false),
        Err(problem) => {
            let resource = request.resource;
            Err(StatusError::forbidden(&resource.group, &resource.resource, request.name, &problem))
        }
    }
}

/// Whether all conditions hold; the error names the conditions that could not be evaluated.
pub(super) fn all_hold<'a>(
    environment: &Arc<Environment>,
    expressions: impl Iterator<Item = &'a str>,
) -> Result<bool, String> {
    let mut problems = Vec::new();
    for expression in expressions {
        match environment.holds(expression) {
            Ok(true) => {}
            // One false condition decides, even if others failed.
            Ok(false) => return Ok(false),
            Err(problem) => {
                problems.push(format!("expression '{expression}' resulted in error: {problem}"));
            }
        }
    }
    match problems.as_slice() {
        [] => Ok(true),
        [single] => Err(single.clone()),
        several => Err(format!("[{}]", several.join(", "))),
    }
}

/// The environment of expressions about a write.
pub(super) fn environment(
    inner: &Inner,
    request: &AdmissionRequest<'_>,
    view: &View<'_>,
    review_request: &Value,
    params: Option<&Value>,
    variables: &[(&str, &str)],
) -> Arc<Environment> {
    let snapshot = inner.store.snapshot();
    let namespace = seen_namespace(&snapshot, request);
    let authorizer = Arc::clone(&inner.authorizer);
    let user = request.user.clone();
    let access: Access = Arc::new(move |account, question| match account {
        Some((namespace, name)) => {
            let account = User::service_account(namespace, name);
            authorizer.authorize(&snapshot, &account, question)
        }
        None => authorizer.authorize(&snapshot, &user, question),
    });
    // Expressions see the objects as separate variables.
    let mut seen_request = review_request.clone();
    if let Some(fields) = seen_request.as_object_mut() {
        fields.shift_remove("object");
        fields.shift_remove("oldObject");
    }
    let admitted = Admitted {
        object: view.object.as_deref(),
        old_object: view.old_object.as_deref(),
        request: Some(&seen_request),
        namespace: namespace.as_ref(),
        params,
        access: Some(access),
    };
    Environment::new(admitted, variables.iter().copied())
}

/// The namespace of an object as expressions see it; `None` for cluster-scoped objects.
fn seen_namespace(snapshot: &Snapshot, request: &AdmissionRequest<'_>) -> Option<Value> {
    const METADATA: [&str; 9] = [
        "name",
        "generateName",
        "namespace",
        "labels",
        "annotations",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "finalizers",
    ];
    if !request.resource.namespaced || request.namespace.is_empty() {
        return None;
    }
    let stored = snapshot.get("namespaces", "", request.namespace)?;
    let content = stored.content();
    let kept: serde_json::Map<String, Value> = METADATA
        .iter()
        .filter_map(|key| Some(((*key).to_owned(), content["metadata"].get(key)?.clone())))
        .collect();
    let mut seen = serde_json::json!({"metadata": kept});
    for part in ["spec", "status"] {
        if let Some(value) = content.get(part) {
            seen[part] = value.clone();
        }
    }
    Some(seen)
}
