//! Priorities of pods: classes must exist, and the server determines the numbers.

use serde_json::Value;

use crate::fields::{number, text};
use crate::store::Snapshot;

/// Checks the class and the priority of a new pod; its kind has already filled in the priority.
pub(super) fn check(snapshot: &Snapshot, pod: &Value) -> Result<(), String> {
    let name = text(pod, &["spec", "priorityClassName"]);
    let given = number(pod, &["spec", "priority"]).unwrap_or(0);
    if name.is_empty() && given != 0 {
        return Err(refusal(given, 0));
    }
    if name.is_empty() {
        return match text(pod, &["spec", "preemptionPolicy"]) {
            "" | "PreemptLowerPriority" => Ok(()),
            given => Err(policy_refusal(given, "PreemptLowerPriority")),
        };
    }
    let class = snapshot.get("priorityclasses.scheduling.k8s.io", "", name);
    let value = match &class {
        Some(class) => number(class.content(), &["value"]).unwrap_or(0),
        // Data directories of earlier versions do not have these classes.
        None if matches!(name, "system-cluster-critical" | "system-node-critical") => return Ok(()),
        None => return Err(format!("no PriorityClass with name {name} was found")),
    };
    match number(pod, &["spec", "priority"]) {
        Some(given) if given != value => return Err(refusal(given, value)),
        _ => {}
    }
    let computed = match class.as_ref().map(|class| text(class.content(), &["preemptionPolicy"])) {
        None | Some("") => "PreemptLowerPriority",
        Some(policy) => policy,
    };
    match text(pod, &["spec", "preemptionPolicy"]) {
        given if !given.is_empty() && given != computed => Err(policy_refusal(given, computed)),
        _ => Ok(()),
    }
}

fn policy_refusal(given: &str, computed: &str) -> String {
    format!(
        "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; \
         priority admission controller computed {computed} from the given PriorityClass name"
    )
}

fn refusal(given: i64, computed: i64) -> String {
    format!(
        "the integer value of priority ({given}) must not be provided in pod spec; priority \
         admission controller computed {computed} from the given PriorityClass name"
    )
}
