//! Prevents users from granting more rights than they hold, in writes of roles and bindings.
//!
//! Pure functions of one snapshot that follow upstream's storages for these kinds: the writer of a
//! role must hold all of its rules, unless the writer may `escalate` it; the same applies to the
//! rules of a bound role, unless the writer may `bind` it. Members of `system:masters` may do both.

use serde_json::{Value, json};

use super::rules::{BINDINGS, CLUSTER_BINDINGS, CLUSTER_ROLES, Grant, ROLES, effective_rules};
use super::{Attributes, Authorizer, Decision};
use crate::fields::{items, text, texts};
use crate::store::{Snapshot, Store};
use crate::{StatusError, User};

const GROUP: &str = "rbac.authorization.k8s.io";

/// A write of an object; only roles and bindings are checked.
pub(crate) struct Write<'a> {
    /// The writing user.
    pub(crate) user: &'a User,
    /// The table of the object, as `roles.rbac.authorization.k8s.io`.
    pub(crate) table: &'a str,
    /// The namespace of the request.
    pub(crate) namespace: &'a str,
    /// The name in the path of the request; empty if there is none.
    pub(crate) path_name: &'a str,
    /// The new object.
    pub(crate) new: &'a Value,
    /// The current object; `None` on creation.
    pub(crate) old: Option<&'a Value>,
}

/// Rejects a write that grants more than its writer holds.
pub(crate) fn check(
    authorizer: &dyn Authorizer,
    store: &Store,
    write: &Write<'_>,
) -> Result<(), StatusError> {
    let is_role = match write.table {
        ROLES | CLUSTER_ROLES => true,
        BINDINGS | CLUSTER_BINDINGS => false,
        _ => return Ok(()),
    };
    if write.user.is_master() || write.old.is_some_and(|old| is_only_collected(write.new, old)) {
        return Ok(());
    }
    let check = Check { authorizer, snapshot: &store.snapshot(), write };
    if is_role { check.role() } else { check.binding() }
}

struct Check<'a> {
    authorizer: &'a dyn Authorizer,
    snapshot: &'a Snapshot,
    write: &'a Write<'a>,
}

impl Check<'_> {
    fn role(&self) -> Result<(), StatusError> {
        let Write { new, old, table, path_name, .. } = self.write;
        if self.may("escalate", plural(table), path_name) {
            return Ok(());
        }
        self.confirm(items(new, &["rules"]))?;
        // The aggregated rules are not known yet.
        let gathers = |role: &Value| !role["aggregationRule"].is_null();
        let is_gathering = gathers(new) || old.is_some_and(gathers);
        if is_gathering && self.excess(&everything()).is_some() {
            let problem = "must have cluster-admin privileges to use the aggregationRule";
            return Err(self.refusal(problem));
        }
        Ok(())
    }

    fn binding(&self) -> Result<(), StatusError> {
        let reference = &self.write.new["roleRef"];
        let (kind, name) = (text(reference, &["kind"]), text(reference, &["name"]));
        let (table, namespace) = match kind {
            "Role" => (ROLES, self.write.namespace),
            "ClusterRole" => (CLUSTER_ROLES, ""),
            // The kind's own validation rejects these.
            _ => return Ok(()),
        };
        if self.may("bind", plural(table), name) {
            return Ok(());
        }
        match self.snapshot.get(table, namespace, name) {
            Some(role) => self.confirm(&effective_rules(role.content(), self.snapshot)),
            // Upstream names the resource of the request, not that of the role.
            None => Err(StatusError::not_found(GROUP, plural(self.write.table), name)),
        }
    }

    fn may(&self, verb: &str, resource: &str, name: &str) -> bool {
        let attributes = Attributes {
            verb: verb.to_owned(),
            group: GROUP.to_owned(),
            version: "*".to_owned(),
            resource: resource.to_owned(),
            namespace: self.write.namespace.to_owned(),
            name: name.to_owned(),
            ..Attributes::default()
        };
        let decision = self.authorizer.authorize(self.snapshot, self.write.user, &attributes);
        matches!(decision, Decision::Allow(_))
    }

    fn confirm(&self, rules: &[Value]) -> Result<(), StatusError> {
        match self.excess(rules) {
            Some(problem) => Err(self.refusal(&problem)),
            None => Ok(()),
        }
    }

    fn refusal(&self, problem: &str) -> StatusError {
        let name = text(self.write.new, &["metadata", "name"]);
        StatusError::forbidden(GROUP, plural(self.write.table), name, problem)
    }

    /// Upstream's message about the rules that the writer does not hold; `None` if all are held.
    fn excess(&self, rules: &[Value]) -> Option<String> {
        let (mut held, mut problems) = (Vec::new(), Vec::new());
        for grant in Grant::all(self.snapshot, self.write.user, self.write.namespace) {
            match grant.rules(self.snapshot) {
                Ok(rules) => held.extend(rules),
                Err(problem) => problems.push(problem),
            }
        }
        let parts = rules.iter().flat_map(broken_down);
        let missing: Vec<Part> =
            parts.filter(|part| !held.iter().any(|rule| covers(rule, part))).collect();
        if missing.is_empty() {
            return None;
        }
        let User { name, groups, .. } = self.write.user;
        let lines = described(missing).join("\n");
        let tail = match problems.as_slice() {
            [] => String::new(),
            problems => format!("; resolution errors: [{}]", problems.join(", ")),
        };
        Some(format!(
            "user {name:?} (groups={}) is attempting to grant RBAC permissions not currently \
             held:\n{lines}{tail}",
            listed(groups)
        ))
    }
}

fn plural(table: &str) -> &str {
    table.split('.').next().unwrap_or_default()
}

fn everything() -> [Value; 2] {
    [
        json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}),
        json!({"verbs": ["*"], "nonResourceURLs": ["*"]}),
    ]
}

/// Whether only fields change that the garbage collector needs to remove the object.
fn is_only_collected(new: &Value, old: &Value) -> bool {
    let rest = |object: &Value| {
        let mut object = object.clone();
        if let Some(metadata) = object["metadata"].as_object_mut() {
            for field in ["ownerReferences", "finalizers", "managedFields", "resourceVersion"] {
                metadata.shift_remove(field);
            }
        }
        object
    };
    rest(new) == rest(old)
}

/// The smallest part of a rule: one verb on one target.
#[derive(Clone, PartialEq, Eq)]
struct Part {
    verb: String,
    /// Group, resource, and the name of a single object.
    target: Target,
}

#[derive(Clone, PartialEq, Eq)]
enum Target {
    Resource { group: String, resource: String, name: Option<String> },
    Path(String),
}

fn broken_down(rule: &Value) -> Vec<Part> {
    let mut targets = Vec::new();
    let names = texts(rule, &["resourceNames"]);
    for group in texts(rule, &["apiGroups"]) {
        for resource in texts(rule, &["resources"]) {
            let target = |name: Option<&str>| Target::Resource {
                group: group.to_owned(),
                resource: resource.to_owned(),
                name: name.map(str::to_owned),
            };
            if names.is_empty() {
                targets.push(target(None));
            }
            targets.extend(names.iter().map(|name| target(Some(name))));
        }
    }
    let paths = texts(rule, &["nonResourceURLs"]);
    targets.extend(paths.iter().map(|path| Target::Path((*path).to_owned())));
    let verbs = texts(rule, &["verbs"]);
    let part = |target: &Target| {
        let of = |verb: &&str| Part { verb: (*verb).to_owned(), target: target.clone() };
        verbs.iter().map(of).collect::<Vec<_>>()
    };
    targets.iter().flat_map(part).collect()
}

/// Whether a rule covers a part completely.
fn covers(rule: &Value, part: &Part) -> bool {
    let has = |list: &str, wanted: &str| {
        texts(rule, &[list]).iter().any(|entry| *entry == "*" || *entry == wanted)
    };
    if !has("verbs", &part.verb) {
        return false;
    }
    match &part.target {
        Target::Path(path) => texts(rule, &["nonResourceURLs"]).iter().any(|known| {
            known == path || (known.ends_with('*') && path.starts_with(known.trim_end_matches('*')))
        }),
        Target::Resource { group, resource, name } => {
            let names = texts(rule, &["resourceNames"]);
            let is_named = match name {
                _ if names.is_empty() => true,
                Some(name) => names.contains(&name.as_str()),
                None => false,
            };
            // `*/scale` covers the subresource of any resource.
            let wide = resource.split_once('/').map(|(_, sub)| format!("*/{sub}"));
            let has_resource =
                has("resources", resource) || wide.is_some_and(|wide| has("resources", &wide));
            is_named && has("apiGroups", group) && has_resource
        }
    }
}

/// The parts in upstream's format: one line per target with all its verbs, sorted.
fn described(parts: Vec<Part>) -> Vec<String> {
    let mut joined: Vec<(Target, Vec<String>)> = Vec::new();
    for Part { verb, target } in parts {
        // Upstream does not join paths either.
        let is_resource = matches!(target, Target::Resource { .. });
        match joined.iter_mut().find(|(known, _)| is_resource && *known == target) {
            Some((_, verbs)) if verbs.contains(&verb) => {}
            Some((_, verbs)) => verbs.push(verb),
            None => joined.push((target, vec![verb])),
        }
    }
    let mut lines: Vec<String> = joined
        .into_iter()
        .map(|(target, verbs)| {
            let verbs = listed(&verbs);
            match target {
                Target::Path(path) => format!("{{NonResourceURLs:[{path:?}], Verbs:{verbs}}}"),
                Target::Resource { group, resource, name } => {
                    let name =
                        name.map(|name| format!(", ResourceNames:[{name:?}]")).unwrap_or_default();
                    format!(
                        "{{APIGroups:[{group:?}], Resources:[{resource:?}]{name}, Verbs:{verbs}}}"
                    )
                }
            }
        })
        .collect();
    lines.sort();
    lines.dedup();
    lines
}

/// A list of strings as Go prints it with `%q`.
fn listed(texts: &[String]) -> String {
    let quoted: Vec<String> = texts.iter().map(|text| format!("{text:?}")).collect();
    format!("[{}]", quoted.join(" "))
}
