//! Conditions merge by type into any list, and their times follow Kubernetes' rules.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Condition, ConditionChanges, ConditionStatus, condition};
use crate::Timestamp;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn set(condition: Condition, second: i64) -> ConditionChanges {
    let mut changes = ConditionChanges::default();
    changes.set(condition, at(second));
    changes
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

#[test]
fn a_condition_is_added_to_those_of_others() {
    let others = json!([{"type": "Synced", "status": "True", "extra": 1}]);
    let ready = Condition::new("Ready", false, "Waiting").message("for a child");
    let merged = set(ready.observed_generation(3), 60).applied_to(Some(&others)).unwrap();
    assert_eq!(merged[0], others[0]);
    assert_eq!(
        merged[1],
        json!({
            "type": "Ready", "status": "False", "reason": "Waiting", "message": "for a child",
            "lastTransitionTime": "1970-01-01T00:01:00Z", "observedGeneration": 3,
        })
    );
}

#[test]
fn the_time_of_the_transition_changes_only_with_the_status() {
    let waiting = Condition::new("Ready", false, "Waiting");
    let first = set(waiting.clone(), 0).applied_to(None).unwrap();
    assert_eq!(set(waiting, 9).applied_to(Some(&first)), None, "nothing has changed");
    let failed = Condition::new("Ready", false, "Failed").message("no disk");
    let second = set(failed, 9).applied_to(Some(&first)).unwrap();
    assert_eq!(second[0]["reason"], "Failed");
    assert_eq!(second[0]["lastTransitionTime"], first[0]["lastTransitionTime"]);
    let unknown = Condition::new("Ready", ConditionStatus::Unknown, "Lost");
    let third = set(unknown, 9).applied_to(Some(&second)).unwrap();
    assert_eq!(third[0]["lastTransitionTime"], "1970-01-01T00:00:09Z");
}

#[test]
fn an_unknown_generation_is_not_kept() {
    let known = set(Condition::new("A", true, "X").observed_generation(1), 0).applied_to(None);
    let later = set(Condition::new("A", true, "X"), 0).applied_to(known.as_ref()).unwrap();
    assert_eq!(later[0].get("observedGeneration"), None);
}

#[test]
fn unknown_fields_of_a_condition_are_kept() {
    let known = json!([{"type": "A", "status": "True", "severity": "low"}]);
    let merged = set(Condition::new("A", true, "X"), 0).applied_to(Some(&known)).unwrap();
    assert_eq!(merged[0]["severity"], "low");
    let after = json!([{"type": "A", "status": "False"}]);
    let seen = json!([{"type": "A", "status": "True"}]);
    let changes = ConditionChanges::between(list(&seen), list(&after)).unwrap();
    let merged = changes.applied_to(Some(&known)).unwrap();
    assert_eq!(merged, json!([{"type": "A", "status": "False", "severity": "low"}]));
}

#[test]
fn conditions_are_removed_by_type() {
    let known = json!([{"type": "A"}, {"type": "B"}, {"type": "A"}]);
    let mut changes = ConditionChanges::default();
    changes.remove("A");
    assert_eq!(changes.applied_to(Some(&known)), Some(json!([{"type": "B"}])));
    assert_eq!(changes.applied_to(Some(&json!([{"type": "B"}]))), None);
    assert_eq!(changes.applied_to(None), None, "there is no list to make for that");
}

#[test]
fn lists_of_other_values_are_not_conditions() {
    for odd in [json!([1]), json!([{"kind": "A"}]), json!([{"type": "A"}, {"type": "A"}])] {
        assert_eq!(ConditionChanges::of_list(&odd), None, "{odd}");
        assert_eq!(ConditionChanges::between(list(&odd), &[]), None, "{odd}");
    }
    assert_eq!(ConditionChanges::of_list(&json!("text")), None);
}

#[test]
fn later_changes_of_a_type_win() {
    let mut changes = set(Condition::new("A", true, "X"), 0);
    changes.absorb(set(Condition::new("A", false, "Y"), 1));
    let merged = changes.applied_to(None).unwrap();
    assert_eq!(list(&merged).len(), 1);
    assert_eq!(merged[0]["reason"], "Y");
    changes.remove("A");
    assert_eq!(changes.applied_to(Some(&merged)), Some(json!([])));
}

#[test]
fn two_writers_clash_over_a_type_only_if_they_disagree() {
    let ours = set(Condition::new("Ready", true, "X"), 0);
    assert_eq!(ours.clashes(&set(Condition::new("Ready", true, "X"), 5)), [""; 0]);
    assert_eq!(ours.clashes(&set(Condition::new("Other", true, "X"), 0)), [""; 0]);
    assert_eq!(ours.clashes(&set(Condition::new("Ready", false, "X"), 0)), ["Ready"]);
}

#[test]
fn conditions_are_read_back() {
    let ready = Condition::new("Ready", true, "Up").message("fine").observed_generation(2);
    let written = set(ready.clone(), 7).applied_to(None).unwrap();
    let read = Condition::from_value(condition(list(&written), "Ready").unwrap()).unwrap();
    assert_eq!(read, Condition { last_transition_time: Some(at(7)), ..ready });
    assert_eq!(Condition::from_value(&json!({"type": "A", "status": "maybe"})), None);
}

/// Up to three types, each with a status.
fn conditions() -> impl Strategy<Value = Value> {
    let one = (0..4_usize, any::<bool>());
    prop::collection::vec(one, 0..4).prop_map(|all| {
        let mut list: Vec<Value> = Vec::new();
        for (kind, holds) in all {
            let kind = ["A", "B", "C", "D"][kind];
            if condition(&list, kind).is_none() {
                list.push(json!({"type": kind, "status": holds.to_string()}));
            }
        }
        Value::Array(list)
    })
}

fn sorted(list: &Value) -> Vec<String> {
    let mut all: Vec<String> = list.as_array().unwrap().iter().map(Value::to_string).collect();
    all.sort();
    all
}

proptest! {
    /// The result has the writer's changes, and everything else as the other writer left it.
    #[test]
    fn changes_from_an_outdated_list_keep_newer_conditions(
        seen in conditions(), wanted in conditions(), newest in conditions(),
    ) {
        let changes = ConditionChanges::between(list(&seen), list(&wanted)).unwrap();
        let merged = changes.applied_to(Some(&newest)).unwrap_or_else(|| newest.clone());
        for kind in ["A", "B", "C", "D"] {
            let of = |value: &Value| condition(list(value), kind).cloned();
            let expected = if of(&seen) == of(&wanted) { of(&newest) } else { of(&wanted) };
            prop_assert_eq!(of(&merged), expected, "{}", kind);
        }
    }

    #[test]
    fn without_other_writers_the_result_is_the_requested_list(
        seen in conditions(), wanted in conditions(),
    ) {
        let changes = ConditionChanges::between(list(&seen), list(&wanted)).unwrap();
        let merged = changes.applied_to(Some(&seen)).unwrap_or(seen);
        prop_assert_eq!(sorted(&merged), sorted(&wanted));
    }

    #[test]
    fn applied_changes_have_no_further_effect(seen in conditions(), wanted in conditions()) {
        let mut changes = ConditionChanges::between(list(&seen), list(&wanted)).unwrap();
        changes.set(Condition::new("D", true, "X"), at(3));
        let merged = changes.applied_to(Some(&seen)).unwrap_or(seen);
        prop_assert_eq!(changes.applied_to(Some(&merged)), None);
    }

    /// Absorbing has the same effect as applying both in order.
    #[test]
    fn combined_changes_have_the_effect_of_both(
        a in conditions(), b in conditions(), c in conditions(), newest in conditions(),
    ) {
        let first = ConditionChanges::between(list(&a), list(&b)).unwrap();
        let second = ConditionChanges::between(list(&b), list(&c)).unwrap();
        let mut both = first.clone();
        both.absorb(second.clone());
        let step = |changes: &ConditionChanges, list: Value| {
            changes.applied_to(Some(&list)).unwrap_or(list)
        };
        let stepwise = step(&second, step(&first, newest.clone()));
        prop_assert_eq!(sorted(&step(&both, newest)), sorted(&stepwise));
    }
}
