//! Writes the rules of aggregated ClusterRoles: the union of the roles that they select.
//!
//! Fidelity: same as upstream. Roles that aggregate other aggregated roles settle after a few
//! rounds, since each change wakes the roles above.

use jiff::Timestamp;
use serde_json::Value;

use super::collections::CLUSTER_ROLES;
use super::fields::{self, at, items};
use super::label_selectors;
use super::world::{Change, Controller, Interest, Key, Outcome, World};

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct RoleAggregation;

impl Controller for RoleAggregation {
    fn name(&self) -> &'static str {
        "clusterrole-aggregation"
    }

    fn identity(&self) -> (&'static str, &'static str) {
        ("system:kube-controller-manager", "clusterrole-aggregation-controller")
    }

    fn interest(&self) -> Interest {
        Interest::Collections(vec![CLUSTER_ROLES])
    }

    fn concerned(&mut self, _change: &Change, world: &dyn World) -> Vec<Key> {
        world
            .list(&CLUSTER_ROLES, None)
            .iter()
            .filter(|role| is_aggregated(role))
            .map(|role| Key::of(CLUSTER_ROLES, role))
            .collect()
    }

    fn reconcile(&mut self, key: &Key, world: &dyn World, _now: Timestamp) -> Outcome {
        let mut outcome = Outcome::nothing();
        let Some(role) = world.get(key).filter(|role| is_aggregated(role)) else { return outcome };
        let selectors = items(&role, &["aggregationRule", "clusterRoleSelectors"]);
        let mut rules: Vec<Value> = Vec::new();
        for other in world.list(&CLUSTER_ROLES, None) {
            let labels = at(&other, &["metadata", "labels"]);
            let is_selected =
                selectors.iter().any(|found| label_selectors::matches(Some(found), labels));
            if !is_selected || fields::name(&other) == key.name {
                continue;
            }
            for rule in items(&other, &["rules"]) {
                if !rules.contains(rule) {
                    rules.push(rule.clone());
                }
            }
        }
        if items(&role, &["rules"]) != rules.as_slice() {
            let mut object = (*role).clone();
            fields::set(&mut object, &["rules"], Value::Array(rules));
            outcome.apply(key, "", &object, "rules");
        }
        outcome
    }
}

fn is_aggregated(role: &Value) -> bool {
    !items(role, &["aggregationRule", "clusterRoleSelectors"]).is_empty()
}
