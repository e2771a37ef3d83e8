//! The condition `Ready` of an owner: the state of its children, for users and `kubectl wait`.

use std::collections::BTreeMap;

use kopf_model::{ConditionChanges, Timestamp};
use serde_json::Value;

use super::{ChildKey, Readiness};

/// The type of the condition.
pub const READY: &str = "Ready";
/// How many children the message names; the others are counted.
const NAMED_MAX: usize = 5;

/// A summary of the children of an owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Whether everything is as desired.
    pub is_ready: bool,
    /// One word, for programs.
    pub reason: &'static str,
    /// A sentence, for users.
    pub message: String,
}

impl Condition {
    /// The handler itself has failed.
    #[must_use]
    pub fn failed(message: String) -> Self {
        Self { is_ready: false, reason: "HandlerFailed", message }
    }

    /// Some children could not be applied or deleted.
    #[must_use]
    pub fn refused(refused: &BTreeMap<ChildKey, String>) -> Self {
        let lines: Vec<String> =
            refused.iter().map(|(key, message)| format!("{key}: {message}")).collect();
        Self { is_ready: false, reason: "ApplyFailed", message: listed(&lines) }
    }

    /// The state of all children.
    #[must_use]
    pub fn of(children: &BTreeMap<ChildKey, Readiness>) -> Self {
        let waiting: Vec<String> = children
            .iter()
            .filter_map(|(key, state)| match state {
                Readiness::Ready => None,
                Readiness::Waiting(reason) => Some(format!("{key} {reason}")),
            })
            .collect();
        let count = children.len();
        if waiting.is_empty() {
            let message = format!("all children are ready ({count})");
            return Self { is_ready: true, reason: "ChildrenReady", message };
        }
        Self { is_ready: false, reason: "ChildrenNotReady", message: listed(&waiting) }
    }

    /// The change of the owner's conditions, for this generation of the owner.
    #[must_use]
    pub fn to_changes(&self, generation: Option<i64>, now: Timestamp) -> ConditionChanges {
        let mut condition = kopf_model::Condition::new(READY, self.is_ready, self.reason);
        condition.message.clone_from(&self.message);
        condition.observed_generation = generation;
        let mut changes = ConditionChanges::default();
        changes.set(condition, now);
        changes
    }

    /// The worst of several handlers' conditions; the first among equals.
    #[must_use]
    pub fn worst(conditions: Vec<Self>) -> Option<Self> {
        let severity = |condition: &Self| match condition.reason {
            "HandlerFailed" => 0,
            "ApplyFailed" => 1,
            _ if !condition.is_ready => 2,
            _ => 3,
        };
        conditions.into_iter().min_by_key(severity)
    }
}

/// The owner's conditions including this one; `None` if it is already there unchanged.
///
/// `known` are the current conditions of the owner. The time changes only with the status.
#[must_use]
pub fn conditions_with(
    known: Option<&Value>,
    condition: &Condition,
    generation: Option<i64>,
    now: Timestamp,
) -> Option<Value> {
    condition.to_changes(generation, now).applied_to(known)
}

fn listed(lines: &[String]) -> String {
    let mut text = lines.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>().join("; ");
    if lines.len() > NAMED_MAX {
        text.push_str(&format!("; and {} more", lines.len() - NAMED_MAX));
    }
    text
}
