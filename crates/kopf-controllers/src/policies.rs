//! Checks the types in the expressions of ValidatingAdmissionPolicies, and reports the results in
//! their status.
//!
//! Fidelity: the checked kinds and the warnings are the same as upstream's. There are no warnings
//! about types that the checker does not know, such as those of variables and parameters.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::collections::{DEFINITIONS, POLICIES};
use super::fields::{at, items, number, text, texts};
use super::world::{Change, Controller, Interest, Key, Outcome, World};
use crate::schema::{self, Schema, cel};

/// The maximum number of checked kinds, as in upstream.
const KINDS_MAX: usize = 10;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct PolicyTypes;

impl Controller for PolicyTypes {
    fn name(&self) -> &'static str {
        "validatingadmissionpolicy-status"
    }

    fn identity(&self) -> (&'static str, &'static str) {
        ("system:kube-controller-manager", "validatingadmissionpolicy-status")
    }

    fn interest(&self) -> Interest {
        Interest::Collections(vec![POLICIES])
    }

    fn concerned(&mut self, change: &Change, _world: &dyn World) -> Vec<Key> {
        vec![Key::of(POLICIES, change.object())]
    }

    fn reconcile(&mut self, key: &Key, world: &dyn World, _now: Timestamp) -> Outcome {
        let mut outcome = Outcome::nothing();
        let Some(policy) = world.get(key) else { return outcome };
        let generation = number(&policy, &["metadata", "generation"]);
        if number(&policy, &["status", "observedGeneration"]) == generation {
            return outcome;
        }
        let warnings = warnings(&policy, world);
        let checked = match warnings.is_empty() {
            true => json!({}),
            false => json!({ "expressionWarnings": warnings }),
        };
        let status = json!({ "observedGeneration": generation, "typeChecking": checked });
        let mut checked = (*policy).clone();
        checked["status"] = status;
        outcome.apply(key, "status", &checked, "status");
        outcome
    }
}

/// A kind with its schema.
struct Checked {
    /// Group, version and kind, which are the sort key.
    name: (String, String, String),
    schema: Arc<Schema>,
}

impl Checked {
    /// The format of Go.
    fn shown(&self) -> String {
        let (group, version, kind) = &self.name;
        format!("{group}/{version}, Kind={kind}")
    }
}

fn warnings(policy: &Value, world: &dyn World) -> Vec<Value> {
    let kinds = kinds(policy, world);
    let mut warnings = Vec::new();
    for (index, validation) in items(policy, &["spec", "validations"]).iter().enumerate() {
        for field in ["expression", "messageExpression"] {
            let source = text(validation, &[field]);
            if source.is_empty() {
                continue;
            }
            let found = kinds.iter().filter_map(|checked| {
                let problem = cel::policy_warning(source, &checked.schema, &checked.name.2)?;
                Some(format!("{}: {problem}\n", checked.shown()))
            });
            let found: Vec<String> = found.collect();
            if !found.is_empty() {
                let place = format!("spec.validations[{index}].{field}");
                warnings.push(json!({ "fieldRef": place, "warning": found.join("\n") }));
            }
        }
    }
    warnings
}

/// The kinds that a policy names; rules with wildcards are skipped.
fn kinds(policy: &Value, world: &dyn World) -> Vec<Checked> {
    let mut kinds: Vec<Checked> = Vec::new();
    for rule in items(policy, &["spec", "matchConstraints", "resourceRules"]) {
        let list = |field: &str| {
            let mut list = texts(rule, &[field]);
            list.sort_unstable();
            list
        };
        let (groups, versions) = (list("apiGroups"), list("apiVersions"));
        if groups.iter().chain(&versions).any(|name| name.contains('*')) {
            continue;
        }
        for group in groups {
            for version in &versions {
                for resource in list("resources") {
                    if resource.contains(['*', '/']) || kinds.len() >= KINDS_MAX {
                        continue;
                    }
                    kinds.extend(find(group, version, resource, world));
                }
            }
        }
    }
    kinds.sort_by(|one, other| one.name.cmp(&other.name));
    kinds.dedup_by(|one, other| one.name == other.name);
    kinds
}

fn find(group: &str, version: &str, resource: &str, world: &dyn World) -> Option<Checked> {
    let served = world.served().into_iter().find(|served| {
        served.collection.group() == group && served.collection.plural() == resource
    })?;
    let name = (group.to_owned(), version.to_owned(), served.kind.clone());
    if let Some(schema) = schema::builtin(group, version, &served.kind) {
        return Some(Checked { name, schema });
    }
    let definition = world.get(&Key::new(DEFINITIONS, "", &format!("{resource}.{group}")))?;
    let versions = items(&definition, &["spec", "versions"]).iter();
    let found = versions.into_iter().find(|one| text(one, &["name"]) == version)?;
    let schema = at(found, &["schema", "openAPIV3Schema"])?;
    Some(Checked { name, schema: schema::custom(schema)? })
}
