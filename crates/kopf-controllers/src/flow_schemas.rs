//! Reports in the status of every FlowSchema whether its priority level exists.
//!
//! Fidelity: same as upstream, whose API server does this itself. Nothing else is done with flow
//! schemas: requests are not queued.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::collections::{FLOW_SCHEMAS, PRIORITY_LEVELS};
use super::fields::{items, text};
use super::world::{Change, Controller, Interest, Key, Outcome, World};

const CONDITION: &str = "Dangling";
/// The levels that upstream assumes even if they have been deleted.
const MANDATORY: [&str; 2] = ["exempt", "catch-all"];

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct FlowSchemas;

impl Controller for FlowSchemas {
    fn name(&self) -> &'static str {
        "flow-schemas"
    }

    fn identity(&self) -> (&'static str, &'static str) {
        ("system:apiserver", "api-priority-and-fairness-config-consumer-v1")
    }

    fn interest(&self) -> Interest {
        Interest::Collections(vec![FLOW_SCHEMAS, PRIORITY_LEVELS])
    }

    fn concerned(&mut self, change: &Change, world: &dyn World) -> Vec<Key> {
        if change.collection == FLOW_SCHEMAS {
            return vec![Key::of(FLOW_SCHEMAS, change.object())];
        }
        let all = world.list(&FLOW_SCHEMAS, None);
        all.iter().map(|schema| Key::of(FLOW_SCHEMAS, schema)).collect()
    }

    fn reconcile(&mut self, key: &Key, world: &dyn World, now: Timestamp) -> Outcome {
        let mut outcome = Outcome::nothing();
        let Some(schema) = world.get(key) else { return outcome };
        let level = text(&schema, &["spec", "priorityLevelConfiguration", "name"]);
        let exists = MANDATORY.contains(&level)
            || world.get(&Key::new(PRIORITY_LEVELS, "", level)).is_some();
        let about = format!(
            "This FlowSchema references the PriorityLevelConfiguration object named {level:?}"
        );
        let (status, reason, message) = match exists {
            true => ("False", "Found", format!("{about} and it exists")),
            false => ("True", "NotFound", format!("{about} but there is no such object")),
        };
        let is_reported = |condition: &Value| {
            text(condition, &["type"]) == CONDITION
                && text(condition, &["status"]) == status
                && text(condition, &["reason"]) == reason
                && text(condition, &["message"]) == message
        };
        if items(&schema, &["status", "conditions"]).iter().any(is_reported) {
            return outcome;
        }
        let mut reported = (*schema).clone();
        reported["status"] = json!({ "conditions": [{
            "type": CONDITION,
            "status": status,
            "lastTransitionTime": format!("{now:.0}"),
            "reason": reason,
            "message": message,
        }] });
        outcome.apply(key, "status", &reported, "status");
        outcome
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::collections::{FLOW_SCHEMAS, PRIORITY_LEVELS};
    use super::super::test_world::{TestWorld, describe, react};
    use super::FlowSchemas;

    #[test]
    fn a_schema_dangles_until_its_level_exists() {
        let mut world = TestWorld::default();
        let schema = json!({"metadata": {"name": "s"},
            "spec": {"priorityLevelConfiguration": {"name": "l"}}});
        let change = world.put(&FLOW_SCHEMAS, schema);
        let found = describe(&react(&mut FlowSchemas, &change, &world));
        assert!(found[0].contains("\"reason\":\"NotFound\""), "{found:?}");
        let change = world.put(&PRIORITY_LEVELS, json!({"metadata": {"name": "l"}}));
        let found = describe(&react(&mut FlowSchemas, &change, &world));
        assert!(found[0].contains("and it exists"), "{found:?}");
    }
}
