//! The least rights an operator needs, derived from its handlers.
//!
//! Every rule is there because the engine or a declared need uses it; nothing is granted "to be safe".

use std::collections::{BTreeMap, BTreeSet};

use kopf_core::{Handler, HandlerKind};
use kopf_model::Selector;
use kopf_model::resource::SelectorName;
use serde_json::{Value, json};

use super::Options;

/// Whether a rule is about objects in namespaces or about the cluster itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Granted in the served namespaces.
    Namespaces,
    /// Granted in the whole cluster, whatever is served.
    Cluster,
}

/// Verbs on one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Where it must be granted.
    pub scope: Scope,
    /// The API group.
    pub group: String,
    /// The plural, with a subresource after a slash if any.
    pub resource: String,
    /// The verbs, sorted.
    pub verbs: Vec<String>,
}

/// A selector too vague to derive rights from.
#[derive(Debug, thiserror::Error)]
#[error("handler `{handler}` does not say which API group and plural it is for")]
pub struct UnknownResource {
    /// The handler with the vague selector.
    pub handler: String,
}

/// All rules of an operator, sorted, one per resource.
///
/// # Errors
/// Fails when a handler's selector does not say which API group and plural it means.
pub fn rules(handlers: &[Handler], options: &Options) -> Result<Vec<Rule>, UnknownResource> {
    let mut verbs = Verbs::default();
    for handler in handlers {
        let Some(selector) = &handler.selector else { continue };
        let (group, plural) = resource(selector)
            .ok_or_else(|| UnknownResource { handler: handler.id.to_string() })?;
        let scope = scope(handler);
        verbs.add(scope, group, plural, &["list", "watch"]);
        if keeps_state(&handler.kind) {
            verbs.add(scope, group, plural, &["patch"]);
            if has_status(handler) {
                verbs.add(scope, group, &format!("{plural}/status"), &["patch"]);
            }
        }
        for child in handler.kind.children() {
            let (group, plural) = resource(child)
                .ok_or_else(|| UnknownResource { handler: handler.id.to_string() })?;
            // Children may be anywhere; applying creates what does not exist.
            let scope = if is_cluster_wide(group, plural) { Scope::Cluster } else { scope };
            let needed: &[&str] = match handler.kind {
                HandlerKind::Observe(_) => &["list", "watch"],
                _ => &["list", "watch", "create", "patch", "delete"],
            };
            verbs.add(scope, group, plural, needed);
        }
        if group.contains('.') && !group.ends_with(".k8s.io") {
            let crds = "customresourcedefinitions";
            verbs.add(Scope::Cluster, "apiextensions.k8s.io", crds, &["list", "watch"]);
        }
    }
    for need in handlers.iter().flat_map(|handler| &handler.needs) {
        let needed: Vec<&str> = need.verbs.iter().map(String::as_str).collect();
        verbs.add(Scope::Namespaces, &need.group, &need.resource, &needed);
    }
    if !handlers.is_empty() {
        verbs.add(Scope::Namespaces, "", "events", &["create", "patch"]);
    }
    if options.serves.is_some() {
        verbs.add(Scope::Cluster, "", "namespaces", &["list", "watch"]);
    }
    Ok(verbs.into_rules())
}

/// ServiceAccount, roles and bindings as documents.
pub(super) fn documents(
    handlers: &[Handler],
    options: &Options,
) -> Result<Vec<Value>, UnknownResource> {
    let rules = rules(handlers, options)?;
    let name = &options.name;
    let account = json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": name, "namespace": options.namespace},
    });
    let mut documents = vec![account];
    let of = |scope: Scope| rules.iter().filter(move |rule| rule.scope == scope);
    match &options.serves {
        None => documents.extend(grant(None, name, options, rules.iter())),
        Some(namespaces) => {
            documents.extend(grant(None, name, options, of(Scope::Cluster)));
            for namespace in namespaces {
                documents.extend(grant(Some(namespace), name, options, of(Scope::Namespaces)));
            }
        }
    }
    Ok(documents)
}

/// A role and its binding; cluster-wide without a namespace; nothing when there are no rules.
fn grant<'a>(
    namespace: Option<&str>,
    name: &str,
    options: &Options,
    rules: impl Iterator<Item = &'a Rule>,
) -> Vec<Value> {
    let rules: Vec<Value> = rules
        .map(|rule| {
            json!({"apiGroups": [rule.group], "resources": [rule.resource], "verbs": rule.verbs})
        })
        .collect();
    if rules.is_empty() {
        return Vec::new();
    }
    let kind = if namespace.is_some() { "Role" } else { "ClusterRole" };
    let mut metadata = json!({"name": name});
    if let Some(namespace) = namespace {
        metadata["namespace"] = json!(namespace);
    }
    let api = "rbac.authorization.k8s.io";
    let subject =
        json!({"kind": "ServiceAccount", "name": options.name, "namespace": options.namespace});
    vec![
        json!({"apiVersion": format!("{api}/v1"), "kind": kind, "metadata": metadata, "rules": rules}),
        json!({
            "apiVersion": format!("{api}/v1"),
            "kind": format!("{kind}Binding"),
            "metadata": metadata,
            "roleRef": {"apiGroup": api, "kind": kind, "name": name},
            "subjects": [subject],
        }),
    ]
}

#[derive(Default)]
struct Verbs(BTreeMap<(Scope, String, String), BTreeSet<String>>);

impl Verbs {
    fn add(&mut self, scope: Scope, group: &str, resource: &str, verbs: &[&str]) {
        let key = (scope, group.to_owned(), resource.to_owned());
        self.0.entry(key).or_default().extend(verbs.iter().map(|&verb| verb.to_owned()));
    }

    fn into_rules(self) -> Vec<Rule> {
        let rule = |((scope, group, resource), verbs): (_, BTreeSet<String>)| Rule {
            scope,
            group,
            resource,
            verbs: verbs.into_iter().collect(),
        };
        self.0.into_iter().map(rule).collect()
    }
}

fn resource(selector: &Selector) -> Option<(&str, &str)> {
    let group = selector.group.as_deref()?;
    match &selector.name {
        SelectorName::Plural(name) | SelectorName::Any(name) => Some((group, name)),
        _ => None,
    }
}

/// Typed resources say their scope; anything else is taken as namespaced.
fn scope(handler: &Handler) -> Scope {
    let definition = handler.crd.map(|crd| crd());
    match definition.as_ref().and_then(|definition| definition["spec"]["scope"].as_str()) {
        Some("Cluster") => Scope::Cluster,
        _ => Scope::Namespaces,
    }
}

/// Built-in resources without namespaces that operators have as children.
fn is_cluster_wide(group: &str, plural: &str) -> bool {
    let known = match group {
        "" => &["namespaces", "nodes", "persistentvolumes"][..],
        "rbac.authorization.k8s.io" => &["clusterroles", "clusterrolebindings"],
        "storage.k8s.io" => &["storageclasses"],
        "apiextensions.k8s.io" => &["customresourcedefinitions"],
        _ => &[],
    };
    known.contains(&plural)
}

/// Whether the status is written through its own endpoint; unknown resources may have one.
fn has_status(handler: &Handler) -> bool {
    let Some(definition) = handler.crd.map(|crd| crd()) else { return true };
    let versions = definition["spec"]["versions"].as_array().cloned().unwrap_or_default();
    versions.iter().any(|version| version["subresources"]["status"].is_object())
}

/// Whether the engine writes to the object for this handler's sake.
fn keeps_state(kind: &HandlerKind) -> bool {
    !matches!(kind, HandlerKind::Index | HandlerKind::Validate(_) | HandlerKind::Mutate(_))
}
