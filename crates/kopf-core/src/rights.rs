//! The minimal rights of an operator in its cluster, derived from its handlers.
//!
//! Pure. Every right exists because the engine or a declared need uses it; nothing is granted "to
//! be safe". The test kit proves this: without any single verb, an operator's scenario is rejected.

mod granting;

use std::collections::{BTreeMap, BTreeSet};

use kopf_model::Selector;
use kopf_model::resource::SelectorName;

use crate::groups;
use crate::handler::{Family, Handler, HandlerKind};
use crate::settings::Settings;

pub use granting::notes;

/// Matches any group or resource.
const ANY: &str = "*";

/// The group and the plural of custom resource definitions.
const DEFINITIONS: (&str, &str) = ("apiextensions.k8s.io", "customresourcedefinitions");

/// Whether a right is about namespaced objects or the cluster itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Granted in the served namespaces.
    Namespaces,
    /// Granted in the whole cluster, even if only some namespaces are served.
    Cluster,
}

/// The part of the cluster that an operator serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Serves {
    /// Everything: all rights are granted in the whole cluster.
    Cluster,
    /// Some namespaces: rights are granted only there where possible.
    Namespaces,
}

/// Verbs on one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Right {
    /// Where it must be granted.
    pub scope: Scope,
    /// The API group, or `*`.
    pub group: String,
    /// The plural, with a subresource after a slash if any; or `*`.
    pub resource: String,
    /// The only object that it applies to; `None` means all of them.
    pub name: Option<String>,
    /// The verbs, sorted.
    pub verbs: Vec<String>,
}

impl std::fmt::Display for Right {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let dot = if self.group.is_empty() { "" } else { "." };
        write!(formatter, "{} {}{dot}{}", self.verbs.join(","), self.resource, self.group)?;
        self.name.iter().try_for_each(|name| write!(formatter, " {name}"))
    }
}

/// All rights of an operator, sorted, one per resource.
///
/// A handler for several resources, such as a category, gets its rights on all resources of its
/// group, or of all groups: only the cluster knows which ones exist.
#[must_use]
pub fn of<'a>(
    handlers: impl IntoIterator<Item = &'a Handler>,
    settings: &Settings,
    serves: Serves,
) -> Vec<Right> {
    let mut verbs = Verbs::default();
    let posting = &settings.posting;
    let mut posts = posting.enabled && (posting.handlers || posting.loggers);
    for handler in handlers {
        let is_telling =
            matches!(handler.kind, HandlerKind::Desired) || handler.access.touches.events;
        posts |= posting.enabled && is_telling;
        for need in &handler.access.needs {
            let scope = scope_of(&need.group, &need.resource);
            let needed: Vec<&str> = need.verbs.iter().map(|verb| verb.trim()).collect();
            verbs.add(scope, &need.group, &need.resource, &needed);
        }
        match (&handler.selector, handler.kind.family()) {
            (Some(selector), Family::Admission) => verbs.add_webhooks(selector),
            (Some(selector), Family::Conversion) => verbs.add_conversion(selector),
            (Some(selector), _) => verbs.add_watched(handler, selector),
            (None, _) => {}
        }
    }
    if posts {
        verbs.add(Scope::Namespaces, "", "events", &["create", "patch"]);
    }
    verbs.into_rights(serves)
}

/// Where verbs are granted: scope, group, resource, and the name of a single object.
type Where = (Scope, String, String, Option<String>);

#[derive(Default)]
struct Verbs(BTreeMap<Where, BTreeSet<String>>);

impl Verbs {
    fn add(&mut self, scope: Scope, group: &str, resource: &str, verbs: &[&str]) {
        self.add_to((scope, group.to_owned(), resource.to_owned(), None), verbs);
    }

    fn add_to(&mut self, place: Where, verbs: &[&str]) {
        self.0.entry(place).or_default().extend(verbs.iter().map(|&verb| verb.to_owned()));
    }

    /// Both configurations are written, whichever contains our webhooks.
    fn add_webhooks(&mut self, selector: &Selector) {
        for kind in ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"] {
            let group = "admissionregistration.k8s.io";
            self.add(Scope::Cluster, group, kind, &["create", "get", "patch"]);
        }
        self.add_definitions(resource(selector).0);
    }

    /// Only the definition of this resource is changed to use our endpoint.
    fn add_conversion(&mut self, selector: &Selector) {
        let (group, plural) = resource(selector);
        let (name, (of, crds)) = (format!("{plural}.{group}"), DEFINITIONS);
        let place = (Scope::Cluster, of.to_owned(), crds.to_owned(), Some(name));
        self.add_to(place, &["get", "patch"]);
        self.add_definitions(group);
    }

    /// The engine follows the creation and deletion of custom resource definitions.
    fn add_definitions(&mut self, group: &str) {
        if group == ANY || groups::is_custom(group) {
            let (group, crds) = DEFINITIONS;
            self.add(Scope::Cluster, group, crds, &["list", "watch"]);
        }
    }

    fn add_watched(&mut self, handler: &Handler, selector: &Selector) {
        let (group, plural) = resource(selector);
        let scope = own_scope(handler, group, plural);
        self.add(scope, group, plural, &["list", "watch"]);
        if writes_object(handler) {
            self.add(scope, group, plural, &["patch"]);
        }
        if writes_status(handler) {
            let status = if plural == ANY { ANY.to_owned() } else { format!("{plural}/status") };
            self.add(scope, group, &status, &["patch"]);
        }
        for child in &handler.children {
            let (group, plural) = resource(child);
            // Children may be anywhere; applying creates those that do not exist.
            let scope = scope_of(group, plural).max(scope);
            let needed: &[&str] = match handler.kind {
                HandlerKind::Desired => &["list", "watch", "create", "patch", "delete"],
                _ => &["list", "watch"],
            };
            self.add(scope, group, plural, needed);
            if matches!(handler.kind, HandlerKind::Desired) {
                self.add_granted(handler, scope, group, plural);
            }
        }
        self.add_definitions(group);
    }

    fn into_rights(self, serves: Serves) -> Vec<Right> {
        let all = self.0.clone();
        let rights = self.0.into_iter().map(|(place, mut verbs)| {
            verbs.retain(|verb| !is_granted_anyway(&all, &place, verb, serves));
            let (scope, group, resource, name) = place;
            Right { scope, group, resource, name, verbs: verbs.into_iter().collect() }
        });
        rights.filter(|right| !right.verbs.is_empty()).collect()
    }
}

/// Whether a wider right includes the verb.
fn is_granted_anyway(
    all: &BTreeMap<Where, BTreeSet<String>>,
    place: &Where,
    verb: &str,
    serves: Serves,
) -> bool {
    let (scope, group, resource, name) = place;
    all.iter().any(|(other, verbs)| {
        let (other_scope, other_group, other_resource, other_name) = other;
        other != place
            && (other_scope >= scope || serves == Serves::Cluster)
            && (other_group == ANY || other_group == group)
            && (other_resource == ANY || other_resource == resource)
            && (other_name.is_none() || other_name == name)
            && verbs.contains(verb)
    })
}

/// The group and the plural as used in rules.
fn resource(selector: &Selector) -> (&str, &str) {
    let group = selector.group.as_deref().unwrap_or(ANY);
    match &selector.name {
        SelectorName::Plural(name) | SelectorName::Any(name) => (group, name),
        _ => (group, ANY),
    }
}

/// Typed resources specify their scope; for others, only built-in ones are known.
fn own_scope(handler: &Handler, group: &str, plural: &str) -> Scope {
    let definition = handler.own_definition();
    match definition.as_ref().and_then(|definition| definition["spec"]["scope"].as_str()) {
        Some("Cluster") => Scope::Cluster,
        Some(_) => Scope::Namespaces,
        None => scope_of(group, plural),
    }
}

/// Built-in resources without namespaces; anything else counts as namespaced.
fn scope_of(group: &str, resource: &str) -> Scope {
    let plural = resource.split('/').next().unwrap_or_default();
    let known = match group {
        "" => &["namespaces", "nodes", "persistentvolumes"][..],
        "rbac.authorization.k8s.io" => &["clusterroles", "clusterrolebindings"],
        "storage.k8s.io" => &["storageclasses", "csinodes", "csidrivers", "volumeattachments"],
        "apiextensions.k8s.io" => &["customresourcedefinitions"],
        "scheduling.k8s.io" => &["priorityclasses"],
        "networking.k8s.io" => &["ingressclasses"],
        "admissionregistration.k8s.io" => {
            &["mutatingwebhookconfigurations", "validatingwebhookconfigurations"]
        }
        _ => &[],
    };
    if known.contains(&plural) { Scope::Cluster } else { Scope::Namespaces }
}

/// Whether the object itself is written: last-handled state, progress, finalizers, patches.
fn writes_object(handler: &Handler) -> bool {
    match handler.kind.family() {
        Family::Changing | Family::Spawning => true,
        Family::Desired => handler.access.touches.object || outlives_owner(handler),
        _ => handler.access.touches.object,
    }
}

/// Whether children may need the finalizer of their owner, because they are where owner references
/// do not work.
fn outlives_owner(handler: &Handler) -> bool {
    if !matches!(handler.kind, HandlerKind::Desired) {
        return false;
    }
    let owner = handler.selector.as_ref().map(resource);
    let owner =
        owner.map_or(Scope::Namespaces, |(group, plural)| own_scope(handler, group, plural));
    let scope = |child: &Selector| {
        let (group, plural) = resource(child);
        scope_of(group, plural)
    };
    handler.children.iter().any(|child| scope(child) > owner)
}

/// Whether the status is written, through its subresource if there is one.
fn writes_status(handler: &Handler) -> bool {
    let is_written = handler.access.touches.status || matches!(handler.kind, HandlerKind::Desired);
    let is_looking_only = matches!(handler.kind.family(), Family::Indexing | Family::Admission);
    is_written && !is_looking_only && has_status(handler)
}

/// Whether there is a status subresource; assumed for unknown resources.
fn has_status(handler: &Handler) -> bool {
    let Some(definition) = handler.own_definition() else {
        return handler.selector.as_ref().map(resource).is_none_or(may_have_status);
    };
    let versions = definition["spec"]["versions"].as_array().cloned().unwrap_or_default();
    versions.iter().any(|version| version["subresources"]["status"].is_object())
}

/// Built-in resources are known; any other may have a status.
fn may_have_status((group, plural): (&str, &str)) -> bool {
    let with_status = match group {
        "" => &[
            "namespaces",
            "nodes",
            "persistentvolumeclaims",
            "persistentvolumes",
            "pods",
            "replicationcontrollers",
            "resourcequotas",
            "services",
        ][..],
        "apps" => &["daemonsets", "deployments", "replicasets", "statefulsets"],
        "batch" => &["cronjobs", "jobs"],
        "autoscaling" => &["horizontalpodautoscalers"],
        "policy" => &["poddisruptionbudgets"],
        "networking.k8s.io" => &["ingresses"],
        "rbac.authorization.k8s.io" | "storage.k8s.io" | "scheduling.k8s.io" => &[],
        _ => return true,
    };
    plural == ANY || with_status.contains(&plural)
}

#[cfg(test)]
mod tests;
