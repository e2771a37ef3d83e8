use serde_json::{Value, json};

use super::*;
use crate::chaos::history::{Child, Cycle, Life, Living, Outcome, Usage};

const CREATED: u64 = 10;

/// A successful run of one object, to be modified by tests.
struct Story {
    history: History,
    clock: f64,
    version: u64,
    state: Value,
}

fn state(value: i64) -> Value {
    json!({"spec": {"value": value, "color": "blue"}, "labels": {}})
}

impl Story {
    /// Created with the value 1, and handled by all handlers.
    fn new() -> Self {
        let life = Life { pid: 1, ended: None, by_itself: None, usage: None };
        let mut story = Self {
            history: History { lives: vec![life], declares_children: true, ..History::default() },
            clock: 0.0,
            version: CREATED,
            state: state(1),
        };
        story.observe(|_| {});
        story.all_end();
        story.call(1, "colored", Outcome::Done);
        story.handle();
        story
    }

    /// A new version of the object.
    fn observe(&mut self, change: impl FnOnce(&mut Version)) {
        self.clock += 1.0;
        self.version += 1;
        let versions = self.history.versions.entry("u".to_owned()).or_default();
        let mut next = versions.last().cloned().unwrap_or_default();
        next.version = self.version;
        next.seen_at = self.clock;
        next.state = self.state.clone();
        next.has_finalizer = true;
        change(&mut next);
        versions.push(next);
    }

    fn edit(&mut self, value: i64) {
        self.state = state(value);
        self.observe(|_| {});
    }

    fn call(&mut self, pid: u32, handler: &str, outcome: Outcome) {
        self.clock += 1.0;
        self.history.calls.push(Call {
            began: self.clock - 0.1,
            ended: self.clock,
            pid,
            handler: handler.to_owned(),
            uid: "u".to_owned(),
            name: "n".to_owned(),
            version: self.version,
            spec: self.state["spec"].clone(),
            labels: Value::Null,
            new: self.state["spec"]["color"].clone(),
            instance: Some(0),
            outcome,
        });
    }

    /// Ends all handlers except the color handler, whose field does not change.
    fn all_end(&mut self) {
        for id in ["fast", "slow", "flaky", "picky", "changed", "parent/a", "parent/b"] {
            self.call(1, id, Outcome::Done);
        }
    }

    /// The operator stores the state as handled.
    fn handle(&mut self) {
        let state = self.state.clone();
        self.observe(|version| {
            version.handled = Some(state);
            version.progress.clear();
        });
    }

    fn record(&mut self, handler: &str, text: &str) {
        self.observe(|version| {
            version.progress.insert(handler.to_owned(), text.to_owned());
        });
    }

    /// Ends the run: the object still exists, with its timer, daemon and child.
    fn end(mut self) -> History {
        let from = self.clock;
        for _ in 0..3 {
            self.call(1, "beside", Outcome::Beat);
            self.call(1, "tick", Outcome::Tick);
            self.clock += 1.0;
        }
        self.history.window = (from, self.clock);
        let last = self.history.versions["u"].last().cloned().expect("there is a version");
        let data = crate::chaos::world::child_data(&last.state["spec"]);
        let (uid, name) = ("u".to_owned(), "n".to_owned());
        self.history.children = vec![Child { owner: uid.clone(), name: name.clone(), data }];
        self.history.living = vec![Living { uid, name, last }];
        self.history
    }
}

/// The only violation.
fn one(history: &History) -> Finding {
    let findings = judge(history);
    assert_eq!(findings.len(), 1, "{findings:#?}");
    findings[0].clone()
}

fn none(history: &History) {
    assert_eq!(judge(history), []);
}

#[test]
fn a_run_without_faults_is_fine() {
    none(&Story::new().end());
}

#[test]
fn a_change_that_one_handler_did_not_see_is_missed() {
    let mut story = Story::new();
    story.edit(9);
    story.call(1, "fast", Outcome::Done);
    story.call(1, "flaky", Outcome::Retry);
    story.edit(10);
    for id in ["slow", "flaky", "picky", "changed", "parent/a", "parent/b"] {
        story.call(1, id, Outcome::Done);
    }
    story.handle();
    let finding = one(&story.end());
    assert_eq!(finding.property, Property::MissedChange);
    assert!(finding.text.starts_with("fast of n: saw"), "{finding}");
}

#[test]
fn a_change_back_to_the_handled_state_is_missed_by_those_who_saw_the_other_one() {
    let mut story = Story::new();
    story.edit(2);
    story.call(1, "fast", Outcome::Done);
    story.record("fast", r#"{"success":true}"#);
    story.call(1, "flaky", Outcome::Retry);
    story.edit(1);
    story.observe(|version| version.progress.clear());
    assert_eq!(one(&story.end()).property, Property::MissedChange);
}

#[test]
fn a_success_that_died_with_its_process_and_was_taken_back_is_not_missed() {
    let mut story = Story::new();
    story.edit(2);
    story.call(1, "fast", Outcome::Done);
    story.history.lives[0].ended = Some(story.clock + 0.1);
    story.history.lives.push(Life { pid: 2, ended: None, by_itself: None, usage: None });
    story.edit(1);
    none(&story.end());
}

#[test]
fn a_permanent_failure_with_the_final_state_is_an_end() {
    let mut story = Story::new();
    story.edit(7);
    story.all_end();
    story.history.calls.retain(|call| call.handler != "picky" || call.spec["value"] == 1);
    story.call(1, "picky", Outcome::Failed);
    story.handle();
    none(&story.end());
}

#[test]
fn attempts_are_no_ends() {
    let mut story = Story::new();
    story.edit(2);
    story.all_end();
    story.history.calls.retain(|call| call.handler != "flaky" || call.spec["value"] == 1);
    story.call(1, "flaky", Outcome::Retry);
    story.handle();
    assert_eq!(one(&story.end()).property, Property::MissedChange);
}

#[test]
fn update_handlers_need_not_see_what_creation_handlers_saw() {
    let mut history = Story::new().end();
    history.calls.retain(|call| call.handler != "changed");
    none(&history);
}

#[test]
fn handlers_with_filters_are_asked_about_matching_objects_only() {
    let mut story = Story::new();
    story.state["labels"]["tier"] = json!("gold");
    story.observe(|_| {});
    story.all_end();
    for call in story.history.calls.iter_mut().rev().take(7) {
        call.labels = json!({"tier": "gold"});
    }
    story.handle();
    let finding = one(&story.end());
    assert!(finding.text.starts_with("gilded of n: never called"), "{finding}");
}

#[test]
fn objects_that_are_not_handled_are_found() {
    let mut story = Story::new();
    story.edit(2);
    story.all_end();
    assert_eq!(one(&story.end()).property, Property::Unhandled);
}

#[test]
fn records_that_are_left_over_are_found() {
    let mut story = Story::new();
    story.record("flaky", r#"{"success":false}"#);
    let finding = one(&story.end());
    assert_eq!(finding.property, Property::Unhandled);
    assert!(finding.text.contains("flaky"), "{finding}");
}

#[test]
fn a_call_after_a_recorded_success_is_a_repetition() {
    let mut story = Story::new();
    story.edit(2);
    story.all_end();
    story.record("fast", r#"{"success":true}"#);
    story.call(1, "fast", Outcome::Done);
    story.handle();
    assert_eq!(one(&story.end()).property, Property::Repeated);
}

#[test]
fn a_call_after_its_state_was_stored_as_handled_is_a_repetition() {
    let mut story = Story::new();
    story.call(1, "fast", Outcome::Done);
    assert_eq!(one(&story.end()).property, Property::Repeated);
}

#[test]
fn a_success_on_record_for_an_older_value_is_not_one_of_the_newer_value() {
    let mut story = Story::new();
    story.edit(2);
    story.call(1, "fast", Outcome::Done);
    story.record("fast", r#"{"success":true}"#);
    story.edit(3);
    story.call(1, "fast", Outcome::Done);
    // Killed here: the record is still that of the older value.
    story.all_end();
    story.handle();
    none(&story.end());
}

#[test]
fn a_call_before_anything_was_stored_is_no_repetition() {
    let mut story = Story::new();
    story.edit(2);
    story.call(1, "fast", Outcome::Done);
    story.all_end();
    story.handle();
    none(&story.end());
}

#[test]
fn a_value_that_came_back_may_be_handled_again() {
    let mut story = Story::new();
    for value in [2, 1] {
        story.edit(value);
        story.all_end();
        story.handle();
    }
    none(&story.end());
}

#[test]
fn a_field_handler_is_not_called_again_for_the_same_field() {
    let mut story = Story::new();
    story.edit(2);
    story.all_end();
    story.call(1, "colored", Outcome::Done);
    story.handle();
    let finding = one(&story.end());
    assert_eq!(finding.property, Property::Repeated);
    assert!(finding.text.starts_with("colored of n"), "{finding}");
}

#[test]
fn a_field_handler_may_be_called_again_for_the_deletion() {
    let mut story = Story::new();
    story.observe(|version| version.is_deleting = true);
    story.call(1, "colored", Outcome::Done);
    story.call(1, "removed", Outcome::Done);
    let mut history = story.end();
    history.living.clear();
    history.children.clear();
    history.window = (0.0, 0.0);
    none(&history);
}

#[test]
fn a_process_resumes_an_object_once_unless_it_changes() {
    let mut story = Story::new();
    story.call(1, "resumed", Outcome::Done);
    story.record("resumed", r#"{"success":true}"#);
    // Another process and another state.
    story.call(2, "resumed", Outcome::Done);
    story.observe(|version| version.progress.clear());
    story.edit(2);
    story.all_end();
    story.call(2, "resumed", Outcome::Done);
    story.record("resumed", r#"{"success":true,"retries":1}"#);
    story.handle();
    none(&story.end());

    let mut story = Story::new();
    story.call(1, "resumed", Outcome::Done);
    story.record("resumed", r#"{"success":true}"#);
    story.call(1, "resumed", Outcome::Done);
    story.observe(|version| version.progress.clear());
    assert_eq!(one(&story.end()).property, Property::Repeated);
}

#[test]
fn deleted_objects_must_be_gone() {
    let mut story = Story::new();
    story.observe(|version| version.is_deleting = true);
    let mut history = story.end();
    history.window = (0.0, 0.0);
    history.children.clear();
    assert_eq!(one(&history).property, Property::StuckDeletion);
}

#[test]
fn a_definition_that_had_to_be_freed_is_stuck() {
    let mut history = Story::new().end();
    history.cycles = vec![Cycle { seconds: 60.0, is_stuck: true }];
    assert_eq!(one(&history).property, Property::StuckDeletion);
}

/// A deleted object whose handler was called with these outcomes.
fn deleted(calls: &[Outcome]) -> History {
    let mut story = Story::new();
    story.observe(|version| version.is_deleting = true);
    for outcome in calls {
        story.call(1, "removed", *outcome);
    }
    story.observe(|version| version.is_gone = true);
    let mut history = story.end();
    history.living.clear();
    history.children.clear();
    history.window = (0.0, 0.0);
    history
}

#[test]
fn deletion_handlers_run_before_objects_go() {
    none(&deleted(&[Outcome::Retry, Outcome::Done]));
    let missed = one(&deleted(&[Outcome::Retry]));
    assert_eq!(missed.property, Property::MissedDeletion);
}

#[test]
fn objects_that_were_never_held_or_freed_by_hand_are_excused() {
    let mut history = deleted(&[]);
    history.freed.insert("u".to_owned());
    none(&history);
    let mut history = deleted(&[]);
    for version in history.versions.values_mut().flatten() {
        version.has_finalizer = false;
    }
    none(&history);
}

#[test]
fn a_deletion_handler_is_not_called_again_after_the_release() {
    let mut story = Story::new();
    story.observe(|version| version.is_deleting = true);
    story.call(1, "removed", Outcome::Done);
    story.observe(|version| {
        version.is_deleting = true;
        version.has_finalizer = false;
    });
    story.call(1, "removed", Outcome::Done);
    let mut history = story.end();
    history.living.clear();
    history.children.clear();
    history.window = (0.0, 0.0);
    assert_eq!(one(&history).property, Property::Repeated);
}

#[test]
fn dead_timers_and_daemons_are_found() {
    for (outcome, word) in [(Outcome::Tick, "timer"), (Outcome::Beat, "daemon")] {
        let mut history = Story::new().end();
        history.calls.retain(|call| call.outcome != outcome);
        let finding = one(&history);
        assert_eq!(finding.property, Property::Background);
        assert!(finding.text.contains(word), "{finding}");
    }
}

#[test]
fn doubled_timers_and_daemons_are_found() {
    for outcome in [Outcome::Tick, Outcome::Beat] {
        let mut history = Story::new().end();
        let call = history.calls.iter().find(|call| call.outcome == outcome);
        let mut second = call.cloned().expect("there is one");
        second.instance = Some(1);
        second.began += 0.5;
        second.ended += 0.5;
        history.calls.push(second);
        history.calls.sort_by(|a, b| a.ended.total_cmp(&b.ended));
        assert_eq!(one(&history).property, Property::Background);
    }
}

#[test]
fn timers_of_objects_that_are_gone_are_found() {
    let mut story = Story::new();
    story.call(1, "removed", Outcome::Done);
    let mut history = story.end();
    history.living.clear();
    history.children.clear();
    let findings = judge(&history);
    assert!(findings.iter().all(|finding| finding.property == Property::Background));
    assert_eq!(findings.len(), 2, "{findings:#?}");
}

#[test]
fn children_are_as_declared() {
    let mut history = Story::new().end();
    history.children[0].data = json!({"value": "5", "color": "blue"});
    assert_eq!(one(&history).property, Property::Children);
    history.children[0].owner = "another".to_owned();
    // The object has no child, and one child has no owner.
    assert_eq!(judge(&history).len(), 2);
    history.declares_children = false;
    none(&history);
}

#[test]
fn a_process_that_ended_by_itself_is_found() {
    let mut history = Story::new().end();
    history.lives[0].by_itself = Some("exit status: 1".to_owned());
    assert_eq!(one(&history).property, Property::Process);
}

#[test]
fn growth_at_rest_is_found() {
    let mut history = Story::new().end();
    let first = Usage { memory: 15_000, descriptors: 16, threads: 3 };
    history.rest = Some((first, Usage { memory: 18_000, descriptors: 20, threads: 4 }));
    none(&history);
    for last in [
        Usage { memory: 60_000, ..first },
        Usage { descriptors: 90, ..first },
        Usage { threads: 40, ..first },
    ] {
        history.rest = Some((first, last));
        assert_eq!(one(&history).property, Property::Usage);
    }
}
