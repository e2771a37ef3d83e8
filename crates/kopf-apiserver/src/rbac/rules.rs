//! Role-based access control: bindings to roles to rules, as the real server evaluates them.
//!
//! Pure functions of one snapshot. Members of `system:masters` may do everything. Aggregated
//! cluster roles also get the rules of the roles that they select, in case the controller has not
//! written them yet.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::{Attributes, Authorizer, Decision, Permissions};
use crate::fields::{self, at, items, text, texts};
use crate::label_selectors;
use crate::store::Snapshot;
use crate::{Stored, User};

pub(super) const ROLES: &str = "roles.rbac.authorization.k8s.io";
pub(super) const CLUSTER_ROLES: &str = "clusterroles.rbac.authorization.k8s.io";
pub(super) const BINDINGS: &str = "rolebindings.rbac.authorization.k8s.io";
pub(super) const CLUSTER_BINDINGS: &str = "clusterrolebindings.rbac.authorization.k8s.io";

/// Decides by Roles, ClusterRoles and their bindings.
pub(crate) struct RoleBased;

impl Authorizer for RoleBased {
    fn authorize(&self, snapshot: &Snapshot, user: &User, attributes: &Attributes) -> Decision {
        if user.is_master() {
            return Decision::Allow(String::new());
        }
        let mut problems = Vec::new();
        for grant in Grant::all(snapshot, user, &attributes.namespace) {
            match grant.rules(snapshot) {
                Ok(rules) => {
                    if rules.iter().any(|rule| allows(rule, attributes)) {
                        return Decision::Allow(format!("RBAC: allowed by {}", grant.describe()));
                    }
                }
                Err(problem) => problems.push(problem),
            }
        }
        match problems.as_slice() {
            [] => Decision::Deny(String::new()),
            [single] => Decision::Deny(format!("RBAC: {single}")),
            several => Decision::Deny(format!("RBAC: [{}]", several.join(", "))),
        }
    }

    fn permissions(&self, snapshot: &Snapshot, user: &User, namespace: &str) -> Permissions {
        if user.is_master() {
            return Permissions::everything();
        }
        let mut permissions = Permissions::default();
        for grant in Grant::all(snapshot, user, namespace) {
            for rule in grant.rules(snapshot).unwrap_or_default() {
                let is_about_paths = !items(&rule, &["nonResourceURLs"]).is_empty();
                let (list, keys): (_, &[&str]) = if is_about_paths {
                    (&mut permissions.path_rules, &["verbs", "nonResourceURLs"])
                } else {
                    let keys = &["verbs", "apiGroups", "resources", "resourceNames"];
                    (&mut permissions.resource_rules, keys)
                };
                let kept: Map<String, Value> = keys
                    .iter()
                    .filter_map(|key| Some(((*key).to_owned(), rule.get(key)?.clone())))
                    .collect();
                let kept = Value::Object(kept);
                if !list.contains(&kept) {
                    list.push(kept);
                }
            }
        }
        permissions
    }
}

/// A binding that applies to a user.
pub(super) struct Grant {
    binding: Arc<Stored>,
    subject: Value,
}

impl Grant {
    /// The bindings of a user: cluster-wide ones, then those of a namespace.
    pub(super) fn all(snapshot: &Snapshot, user: &User, namespace: &str) -> Vec<Self> {
        let local = (!namespace.is_empty()).then(|| snapshot.list(BINDINGS, namespace));
        snapshot
            .list(CLUSTER_BINDINGS, "")
            .chain(local.into_iter().flatten())
            .filter_map(|(_, binding)| {
                let own_namespace = fields::namespace(binding.content());
                let subject = items(binding.content(), &["subjects"])
                    .iter()
                    .find(|subject| is_subject(subject, user, own_namespace))?;
                let subject = subject.clone();
                Some(Self { binding, subject })
            })
            .collect()
    }

    fn role(&self) -> (&str, &str) {
        let reference = &self.binding.content()["roleRef"];
        (text(reference, &["kind"]), text(reference, &["name"]))
    }

    /// The rules of the role behind the binding; the error names a missing role.
    pub(super) fn rules(&self, snapshot: &Snapshot) -> Result<Vec<Value>, String> {
        let (kind, name) = self.role();
        let role = match kind {
            "Role" => snapshot.get(ROLES, fields::namespace(self.binding.content()), name),
            _ => snapshot.get(CLUSTER_ROLES, "", name),
        };
        let Some(role) = role else {
            let resource = kind.to_lowercase();
            return Err(format!("{resource}.rbac.authorization.k8s.io {name:?} not found"));
        };
        Ok(effective_rules(role.content(), snapshot))
    }

    fn describe(&self) -> String {
        let (kind, role) = self.role();
        let name = self.binding.name();
        let subject = describe_subject(&self.subject, fields::namespace(self.binding.content()));
        match self.binding.namespace() {
            "" => format!("ClusterRoleBinding {name:?} of {kind} {role:?} to {subject}"),
            namespace => {
                let name = format!("{name}/{namespace}");
                format!("RoleBinding {name:?} of {kind} {role:?} to {subject}")
            }
        }
    }
}

fn describe_subject(subject: &Value, binding_namespace: &str) -> String {
    let name = text(subject, &["name"]);
    match text(subject, &["kind"]) {
        "ServiceAccount" => {
            let namespace = match text(subject, &["namespace"]) {
                "" => binding_namespace,
                namespace => namespace,
            };
            format!("ServiceAccount {:?}", format!("{name}/{namespace}"))
        }
        kind => format!("{kind} {name:?}"),
    }
}

fn is_subject(subject: &Value, user: &User, binding_namespace: &str) -> bool {
    let name = text(subject, &["name"]);
    match text(subject, &["kind"]) {
        "User" => user.name == name,
        "Group" => user.groups.iter().any(|group| group == name),
        "ServiceAccount" => {
            let namespace = match text(subject, &["namespace"]) {
                "" => binding_namespace,
                namespace => namespace,
            };
            user.name == format!("system:serviceaccount:{namespace}:{name}")
        }
        _ => false,
    }
}

/// A role's own rules and those that it aggregates, directly or indirectly.
pub(super) fn effective_rules(role: &Value, snapshot: &Snapshot) -> Vec<Value> {
    let mut rules = Vec::new();
    let mut visited = HashSet::new();
    collect(role, snapshot, &mut visited, &mut rules);
    rules
}

fn collect(
    role: &Value,
    snapshot: &Snapshot,
    visited: &mut HashSet<String>,
    rules: &mut Vec<Value>,
) {
    // Roles may select each other in a cycle.
    if !visited.insert(fields::name(role).to_owned()) {
        return;
    }
    for rule in items(role, &["rules"]) {
        if !rules.contains(rule) {
            rules.push(rule.clone());
        }
    }
    let selectors = items(role, &["aggregationRule", "clusterRoleSelectors"]);
    if selectors.is_empty() {
        return;
    }
    for (_, other) in snapshot.list(CLUSTER_ROLES, "") {
        let labels = at(other.content(), &["metadata", "labels"]);
        if selectors.iter().any(|found| label_selectors::matches(Some(found), labels)) {
            collect(other.content(), snapshot, visited, rules);
        }
    }
}

/// Whether one rule allows a request.
fn allows(rule: &Value, attributes: &Attributes) -> bool {
    let has = |list: &str, wanted: &str| {
        texts(rule, &[list]).iter().any(|entry| *entry == "*" || *entry == wanted)
    };
    if !has("verbs", &attributes.verb) {
        return false;
    }
    if attributes.resource.is_empty() {
        return texts(rule, &["nonResourceURLs"])
            .iter()
            .any(|pattern| matches_path(pattern, &attributes.path));
    }
    let names = texts(rule, &["resourceNames"]);
    has("apiGroups", &attributes.group)
        && texts(rule, &["resources"]).iter().any(|entry| matches_resource(entry, attributes))
        && (names.is_empty() || names.contains(&attributes.name.as_str()))
}

fn matches_resource(entry: &str, attributes: &Attributes) -> bool {
    if entry == "*" {
        return true;
    }
    if attributes.subresource.is_empty() {
        return entry == attributes.resource;
    }
    match entry.split_once('/') {
        Some((resource, subresource)) => {
            (resource == "*" || resource == attributes.resource)
                && subresource == attributes.subresource
        }
        None => false,
    }
}

fn matches_path(pattern: &str, path: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => path.starts_with(prefix),
        None => pattern == path,
    }
}
