//! Cycles of one object, and the writes they need.

use std::sync::Arc;
use std::time::Duration;

use kopf_model::{Object, Patch, Timestamp};
use serde_json::{Value, json};

use super::{Agenda, Closing, Inputs, Plan};
use crate::cause::{Seen, Snapshot, detect};
use crate::handler::{Handler, HandlerKind};
use crate::invoke::Output;
use crate::lifecycle::Lifecycle;
use crate::occasion::EventKind;
use crate::progress::State;
use crate::retry::{Failure, FailureKind, Outcome};
use crate::settings::Storages;
use crate::test_fixture::{FINALIZER, LAST_HANDLED, at, handler, resource, storages, subject};
use crate::write::{Content, Writer};

/// An object, the memory of its operator, and the server's responses to writes.
struct World {
    body: Value,
    handlers: Vec<Arc<Handler>>,
    storages: Storages,
    has_background: bool,
    background_wake_at: Option<Timestamp>,
    persist_after: Duration,
    lifecycle: Lifecycle,
    rerun_outdated: bool,
    memory: Seen,
    remembered: Option<State>,
    writes: Vec<Value>,
    lines: Vec<String>,
}

/// The outcomes of handlers, by id.
type Answers<'a> = &'a [(&'a str, Outcome)];

impl World {
    fn new(body: Value, handlers: Vec<Handler>) -> Self {
        Self {
            body,
            handlers: handlers.into_iter().map(Arc::new).collect(),
            storages: storages(),
            has_background: false,
            background_wake_at: None,
            persist_after: Duration::from_secs(1),
            lifecycle: Lifecycle::default(),
            rerun_outdated: true,
            memory: Seen::default(),
            remembered: None,
            writes: Vec::new(),
            lines: Vec::new(),
        }
    }

    /// Runs one cycle; returns the plan and the ids of the called handlers.
    fn cycle(
        &mut self,
        event: Option<EventKind>,
        now: f64,
        answers: Answers<'_>,
    ) -> (Plan, Vec<String>) {
        let fields: Vec<_> =
            self.handlers.iter().filter_map(|handler| handler.filters.field.clone()).collect();
        let subject = subject(self.body.clone());
        let snapshot =
            Snapshot::take(subject, event, self.memory, &self.storages, &fields, None).unwrap();
        let inputs = Inputs {
            snapshot: &snapshot,
            changing: &self.handlers,
            has_background: self.has_background,
            storages: &self.storages,
            finalizer: FINALIZER,
            remembered: self.remembered.as_ref(),
            remembered_subs: None,
            rerun_outdated: self.rerun_outdated,
            now: at(now),
        };
        let mut agenda = agenda(inputs);
        let lines = std::mem::take(&mut agenda.lines);
        let (mut patch, mut called) = (Patch::default(), Vec::new());
        for handler in agenda.due(&self.lifecycle, at(now)).unwrap() {
            let answer = answers.iter().find(|(id, _)| *id == &*handler.id);
            let (id, outcome) = answer.unwrap_or_else(|| panic!("{handler} was not expected"));
            agenda.record_outcome(id, outcome.clone(), &mut patch, at(now));
            called.push((*id).to_owned());
        }
        let closing = Closing {
            now: at(now),
            background_wake_at: self.background_wake_at,
            persist_after: self.persist_after,
            persist_now: false,
        };
        let plan = agenda.conclude(inputs, patch, closing).unwrap();
        let texts = lines.iter().chain(&plan.lines).map(|line| line.text.to_string());
        self.lines.extend(texts);
        self.remembered.clone_from(&plan.remember);
        self.memory.fully_handled_once |= plan.is_handled;
        self.write(&plan);
        (plan, called)
    }

    fn write(&mut self, plan: &Plan) {
        let (resource, object) = (resource(), Object::from_value(self.body.clone()));
        let mut writer = Writer::new(&plan.patch, &resource, &object);
        while let Some(request) = writer.next_request() {
            self.body = plan.patch.applied_to(&self.body).unwrap();
            self.writes.push(match &request.content {
                Content::Merge(part, _) => Value::Object(
                    part.iter().map(|(key, value)| (key.clone(), value.clone())).collect(),
                ),
                Content::Json(operations) => serde_json::to_value(operations).unwrap(),
            });
            writer.accepted(Object::from_value(self.body.clone()));
        }
    }

    fn annotation(&self, key: &str) -> Option<&str> {
        self.body["metadata"]["annotations"][key].as_str()
    }

    fn take_writes(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.writes)
    }
}

fn success(result: Value) -> Outcome {
    let output = if result.is_null() { Output::Nothing } else { Output::Json(result) };
    Outcome { is_final: true, output, ..Outcome::default() }
}

fn again(seconds: f64) -> Outcome {
    Outcome {
        delay: Some(Duration::from_secs_f64(seconds)),
        error: Some(Failure { kind: FailureKind::Temporary, message: "not ready ü".into() }),
        ..Outcome::default()
    }
}

fn done() -> Outcome {
    success(json!(null))
}

fn body() -> Value {
    json!({"metadata": {"name": "x", "resourceVersion": "1"}, "spec": {"size": 1}})
}

fn last_handled(size: u8) -> Value {
    json!({LAST_HANDLED: format!("{{\"spec\":{{\"size\":{size}}}}}\n")})
}

fn handled() -> Value {
    let mut body = body();
    body["metadata"]["annotations"] = last_handled(1);
    body
}

fn deleting(mut body: Value) -> Value {
    body["metadata"]["deletionTimestamp"] = json!("2026-11-15T00:00:00Z");
    body
}

fn held(mut body: Value) -> Value {
    body["metadata"]["finalizers"] = json!([FINALIZER]);
    body
}

fn create(id: &str) -> Handler {
    handler(id, HandlerKind::Create)
}

fn delete(id: &str) -> Handler {
    handler(id, HandlerKind::Delete { optional: false })
}

#[test]
fn a_create_handler_costs_one_write_without_progress() {
    let mut world = World::new(body(), vec![create("a"), create("b")]);
    let answers = [("a", success(json!({"m": 1}))), ("b", success(json!("r")))];
    let (plan, called) = world.cycle(None, 0.0, &answers);
    assert_eq!(called, ["a", "b"]);
    assert!(plan.is_handled && plan.wake_at.is_none() && plan.remember.is_none());
    assert_eq!(
        world.take_writes(),
        [json!({
            "status": {"a": {"m": 1}, "b": "r"},
            "metadata": {"annotations": last_handled(1)},
        })]
    );
    assert_eq!(world.lines, ["Creation is processed: 2 succeeded; 0 failed."]);
    let (_, called) = world.cycle(None, 1.0, &[]);
    assert!(called.is_empty() && world.take_writes().is_empty(), "our own echo is no news");
}

#[test]
fn with_a_delete_handler_the_finalizer_is_written_first() {
    let mut world = World::new(body(), vec![create("a"), delete("d")]);
    let (plan, called) = world.cycle(None, 0.0, &[]);
    assert!(called.is_empty() && plan.is_continued && !plan.is_handled);
    assert_eq!(
        world.take_writes(),
        [json!([
            {"op": "test", "path": "/metadata/resourceVersion", "value": "1"},
            {"op": "add", "path": "/metadata/finalizers", "value": [FINALIZER]},
        ])]
    );
    let (plan, called) = world.cycle(None, 0.0, &[("a", done())]);
    assert!(plan.is_handled && called == ["a"]);
    assert_eq!(world.take_writes(), [json!({"metadata": {"annotations": last_handled(1)}})]);
}

#[test]
fn without_handlers_to_run_the_finalizer_shares_the_write() {
    let mut world = World::new(body(), vec![delete("d")]);
    let (plan, _) = world.cycle(None, 0.0, &[]);
    assert!(plan.is_handled && !plan.is_continued);
    assert_eq!(world.writes.len(), 1);
    assert!(world.annotation(LAST_HANDLED).is_some());
    assert_eq!(world.body["metadata"]["finalizers"], json!([FINALIZER]));
}

#[test]
fn a_deletion_costs_one_write() {
    let mut world = World::new(deleting(held(handled())), vec![create("a"), delete("d")]);
    let (plan, called) = world.cycle(None, 0.0, &[("d", done())]);
    assert!(plan.is_release && called == ["d"]);
    assert_eq!(
        world.take_writes(),
        [json!([
            {"op": "test", "path": "/metadata/resourceVersion", "value": "1"},
            {"op": "remove", "path": "/metadata/finalizers"},
        ])]
    );
    let (plan, called) = world.cycle(Some(EventKind::Deleted), 1.0, &[]);
    assert!(called.is_empty() && plan.patch.is_empty());
    assert_eq!(world.lines.last().unwrap(), "Deleted, really deleted, and we are notified.");
}

#[test]
fn failed_delete_handlers_release_the_object_and_retried_ones_do_not() {
    let mut world = World::new(deleting(held(handled())), vec![delete("d")]);
    let (plan, _) = world.cycle(None, 0.0, &[("d", again(30.0))]);
    assert!(!plan.is_release);
    assert_eq!(plan.wake_at, Some(at(30.0)));
    let error = Some(Failure { kind: FailureKind::Permanent, message: "no".into() });
    let failure = Outcome { is_final: true, error, ..Outcome::default() };
    let (plan, _) = world.cycle(None, 30.0, &[("d", failure)]);
    assert!(plan.is_release);
    assert_eq!(world.lines[world.lines.len() - 2], "Deletion is processed: 0 succeeded; 1 failed.");
}

#[test]
fn stopping_daemons_hold_the_object() {
    let mut world = World::new(deleting(held(body())), vec![]);
    world.has_background = true;
    world.background_wake_at = Some(at(5.0));
    let (plan, _) = world.cycle(None, 0.0, &[]);
    assert!(!plan.is_release && plan.wake_at == Some(at(5.0)));
    world.background_wake_at = None;
    let (plan, _) = world.cycle(None, 5.0, &[]);
    assert!(plan.is_release);
}

#[test]
fn an_unneeded_finalizer_is_removed() {
    for is_deleting in [false, true] {
        let body = held(handled());
        let body = if is_deleting { deleting(body) } else { body };
        let optional = handler("d", HandlerKind::Delete { optional: true });
        let mut world = World::new(body, vec![create("a"), optional]);
        let (_, called) = world.cycle(None, 0.0, &[]);
        assert!(called.is_empty());
        assert_eq!(world.body["metadata"].get("finalizers"), None, "deleting: {is_deleting}");
        let line = "Removing the finalizer, as there are no handlers requiring it.";
        assert_eq!(world.lines[0], line);
    }
}

#[test]
fn objects_without_handlers_are_left_alone() {
    let mut unwanted = create("a");
    unwanted.filters.when = Some(Arc::new(|_, _| Ok(false)));
    let mut world = World::new(body(), vec![unwanted]);
    let (plan, _) = world.cycle(None, 0.0, &[]);
    assert!(plan.patch.is_empty() && world.lines.is_empty());
}

#[test]
fn a_retry_beyond_the_bound_is_stored_with_all_others() {
    let mut world = World::new(body(), vec![create("create_fn"), create("other")]);
    world.rerun_outdated = false;
    let answers = [("create_fn", again(60.0)), ("other", done())];
    let (plan, _) = world.cycle(None, 0.0, &answers);
    assert_eq!(plan.wake_at, Some(at(60.0)));
    assert_eq!(
        world.annotation("kopf.zalando.org/create_fn").unwrap(),
        concat!(
            r#"{"started":"2026-11-15T00:00:00.000000+00:00","#,
            r#""delayed":"2026-11-15T00:01:00.000000+00:00","purpose":"create","retries":1,"#,
            r#""success":false,"failure":false,"message":"not ready \u00fc"}"#
        )
    );
    assert_eq!(
        world.annotation("kopf.zalando.org/other").unwrap(),
        concat!(
            r#"{"started":"2026-11-15T00:00:00.000000+00:00","#,
            r#""stopped":"2026-11-15T00:00:00.000000+00:00","purpose":"create","retries":1,"#,
            r#""success":true,"failure":false}"#
        )
    );
    assert_eq!(world.take_writes().len(), 1);

    // Another process continues: succeeded handlers are not called again, and its own event is
    // ignored.
    world.remembered = None;
    let (_, called) = world.cycle(None, 10.0, &[]);
    assert!(called.is_empty() && world.take_writes().is_empty());
    let (plan, called) = world.cycle(None, 60.0, &[("create_fn", done())]);
    assert!(plan.is_handled && called == ["create_fn"]);
    let mut annotations = last_handled(1);
    annotations["kopf.zalando.org/create_fn"] = json!(null);
    annotations["kopf.zalando.org/other"] = json!(null);
    assert_eq!(world.take_writes(), [json!({"metadata": {"annotations": annotations}})]);
    assert_eq!(world.lines.last().unwrap(), "Creation is processed: 2 succeeded; 0 failed.");
}

#[test]
fn quick_retries_stay_in_memory_for_a_limited_time() {
    let mut world = World::new(body(), vec![create("a"), create("b")]);
    world.cycle(None, 0.0, &[("a", again(0.4)), ("b", done())]);
    assert!(world.take_writes().is_empty());
    world.cycle(None, 0.4, &[("a", again(0.4))]);
    assert!(world.take_writes().is_empty(), "0.8 s after the first outcome");
    let (_, called) = world.cycle(None, 0.8, &[("a", again(0.4))]);
    assert_eq!(called, ["a"], "b is finished, in memory");
    assert_eq!(world.take_writes().len(), 1, "the next try would be after the bound");
    assert!(world.annotation("kopf.zalando.org/a").unwrap().contains(r#""retries":3"#));
    assert!(world.annotation("kopf.zalando.org/b").unwrap().contains(r#""success":true"#));
    let (plan, _) = world.cycle(None, 1.2, &[("a", done())]);
    assert!(plan.is_handled);
    assert!(world.annotation("kopf.zalando.org/a").is_none());
}

#[test]
fn an_update_superseded_by_a_deletion_is_purged() {
    let mut changed = held(handled());
    changed["spec"]["size"] = json!(2);
    let update = |id| handler(id, HandlerKind::Update);
    let mut world = World::new(changed, vec![update("u1"), update("u2"), delete("d")]);
    world.cycle(None, 0.0, &[("u1", done()), ("u2", again(100.0))]);
    assert_eq!(world.take_writes().len(), 1);
    world.body = deleting(world.body.clone());
    let (plan, called) = world.cycle(None, 5.0, &[("d", done())]);
    assert!(plan.is_release && called == ["d"]);
    assert!(
        world.lines.contains(
            &"Updating is superseded by deletion: 1 succeeded; 0 failed; 1 left to the moment."
                .to_owned()
        )
    );
    assert_eq!(world.take_writes().len(), 1, "purge, last-handled and release in one write");
    assert_eq!(world.body["metadata"]["annotations"], last_handled(2));
}

#[test]
fn a_deletion_that_is_retried_supersedes_an_update_once() {
    let mut changed = held(handled());
    changed["spec"]["size"] = json!(2);
    let update = handler("u", HandlerKind::Update);
    let mut world = World::new(changed, vec![update, delete("d")]);
    world.cycle(None, 0.0, &[("u", again(100.0))]);
    world.body = deleting(world.body.clone());
    let (_, called) = world.cycle(None, 5.0, &[("d", again(60.0))]);
    assert_eq!(called, ["d"]);
    assert!(world.annotation("kopf.zalando.org/u").is_none());
    let progress = world.annotation("kopf.zalando.org/d").map(str::to_owned);
    assert!(progress.as_ref().is_some_and(|it| it.contains(r#""retries":1"#)));
    world.take_writes();
    // Some other event.
    let (_, called) = world.cycle(None, 6.0, &[]);
    assert!(called.is_empty() && world.take_writes().is_empty());
    assert_eq!(world.annotation("kopf.zalando.org/d"), progress.as_deref());
    let superseded = world.lines.iter().filter(|line| line.contains("is superseded"));
    assert_eq!(superseded.count(), 1);
}

#[test]
fn a_reverted_change_leaves_no_progress() {
    let mut changed = handled();
    changed["spec"]["size"] = json!(2);
    let update = |id| handler(id, HandlerKind::Update);
    let mut world = World::new(changed, vec![update("u1"), update("u2")]);
    world.memory.fully_handled_once = true;
    world.cycle(None, 0.0, &[("u1", done()), ("u2", again(100.0))]);
    world.body["spec"]["size"] = json!(1);
    let (_, called) = world.cycle(None, 1.0, &[("u1", done())]);
    assert_eq!(called, ["u1"], "u1 has handled what was taken back, u2 has not");
    assert_eq!(world.body["metadata"]["annotations"], last_handled(1));
    world.body["spec"]["size"] = json!(3);
    let (_, called) = world.cycle(None, 2.0, &[("u1", done()), ("u2", done())]);
    assert_eq!(called, ["u1", "u2"], "the next change is for everybody");
}

#[test]
fn success_for_the_previous_cause_counts_for_a_mixed_in_handler() {
    let resume = handler("r", HandlerKind::Resume { deleted: false });
    let slow = handler("s", HandlerKind::Resume { deleted: false });
    let mut world = World::new(handled(), vec![resume, slow]);
    world.rerun_outdated = false;
    world.memory.noticed_by_listing = true;
    world.cycle(None, 0.0, &[("r", done()), ("s", again(100.0))]);
    world.body["spec"]["size"] = json!(2);
    let (_, called) = world.cycle(None, 1.0, &[]);
    assert!(called.is_empty(), "r is finished and s still waits");
    let (plan, called) = world.cycle(None, 100.0, &[("s", done())]);
    assert!(plan.is_handled && called == ["s"]);
    assert_eq!(world.body["metadata"]["annotations"], last_handled(2));
}

#[test]
fn resuming_an_unchanged_object_writes_nothing() {
    let resume = handler("r", HandlerKind::Resume { deleted: false });
    let mut world = World::new(handled(), vec![resume]);
    world.memory.noticed_by_listing = true;
    let (plan, called) = world.cycle(None, 0.0, &[("r", done())]);
    assert!(plan.is_handled && called == ["r"] && world.take_writes().is_empty());
    assert_eq!(world.lines[0], "Resuming is processed: 1 succeeded; 0 failed.");
    let (_, called) = world.cycle(None, 1.0, &[]);
    assert!(called.is_empty(), "once per process");
}

#[test]
fn field_handlers_see_their_field_only() {
    let mut field = handler("f/spec.size", HandlerKind::Field);
    field.filters.field = Some("spec.size".into());
    let field = Arc::new(field);
    let mut changed = handled();
    changed["spec"] = json!({"size": 2, "other": 3});
    let snapshot =
        Snapshot::take(subject(changed), None, Seen::default(), &storages(), &[], None).unwrap();
    let (handlers, storages) = ([Arc::clone(&field)], storages());
    let agenda = agenda(Inputs {
        snapshot: &snapshot,
        changing: &handlers,
        has_background: false,
        storages: &storages,
        finalizer: FINALIZER,
        remembered: None,
        remembered_subs: None,
        rerun_outdated: true,
        now: at(0.0),
    });
    let change = agenda.change.as_ref().unwrap();
    let change = super::told(change, &field);
    assert_eq!(change.diff.to_string(), "(('change', (), 1, 2),)");
    assert_eq!(change.new.as_deref(), Some(&json!(2)));
}

#[test]
fn one_handler_per_cycle_is_still_possible() {
    let mut world = World::new(body(), vec![create("a"), create("b")]);
    world.lifecycle = Lifecycle::Asap;
    world.persist_after = Duration::ZERO;
    let (plan, called) = world.cycle(None, 0.0, &[("a", done())]);
    assert_eq!((called, plan.wake_at), (vec!["a".to_owned()], Some(at(0.0))));
    let (plan, called) = world.cycle(None, 1.0, &[("b", done())]);
    assert!(plan.is_handled && called == ["b"]);
}

#[test]
fn leftovers_of_touching_are_removed_along_with_other_writes() {
    let mut touched = body();
    touched["metadata"]["annotations"] = json!({"kopf.zalando.org/touch-dummy": "t"});
    let mut world = World::new(touched, vec![create("a")]);
    world.cycle(None, 0.0, &[("a", done())]);
    assert_eq!(world.writes.len(), 1);
    assert_eq!(world.body["metadata"]["annotations"], last_handled(1));
}

fn agenda(inputs: Inputs<'_>) -> Agenda<'_> {
    Agenda::make(inputs, detect(inputs.snapshot, inputs.finalizer)).unwrap()
}

/// A change during handling: `fast` is done, `slow` is retrying, the object changes.
fn half_handled(rerun_outdated: bool) -> World {
    let mut changed = handled();
    changed["spec"]["size"] = json!(9);
    let update = |id| handler(id, HandlerKind::Update);
    let mut world = World::new(changed, vec![update("fast"), update("slow")]);
    world.rerun_outdated = rerun_outdated;
    world.cycle(None, 0.0, &[("fast", done()), ("slow", again(100.0))]);
    world
}

/// The change that a handler would get now.
fn told_to(world: &World, id: &str) -> String {
    let subject = subject(world.body.clone());
    let snapshot = Snapshot::take(subject, None, world.memory, &world.storages, &[], None).unwrap();
    let agenda = agenda(Inputs {
        snapshot: &snapshot,
        changing: &world.handlers,
        has_background: false,
        storages: &world.storages,
        finalizer: FINALIZER,
        remembered: world.remembered.as_ref(),
        remembered_subs: None,
        rerun_outdated: world.rerun_outdated,
        now: at(1.0),
    });
    let handler = world.handlers.iter().find(|handler| &*handler.id == id).unwrap();
    agenda.told(handler).diff.to_string()
}

#[test]
fn a_change_during_retries_reaches_succeeded_handlers() {
    for is_restarted in [false, true] {
        let mut world = half_handled(true);
        world.body["spec"]["size"] = json!(10);
        if is_restarted {
            world.remembered = None;
        }
        assert_eq!(told_to(&world, "fast"), "(('change', ('spec', 'size'), 9, 10),)");
        assert_eq!(told_to(&world, "slow"), "(('change', ('spec', 'size'), 1, 10),)");
        let (_, called) = world.cycle(None, 1.0, &[("fast", done())]);
        assert_eq!(called, ["fast"], "at once, without waiting for the other");
        let (plan, called) = world.cycle(None, 100.0, &[("slow", done())]);
        assert!(plan.is_handled && called == ["slow"]);
        assert_eq!(world.body["metadata"]["annotations"], last_handled(10));
    }
}

#[test]
fn the_exact_behaviour_of_kopf_is_a_setting() {
    let mut world = half_handled(false);
    world.body["spec"]["size"] = json!(10);
    let (plan, called) = world.cycle(None, 100.0, &[("slow", done())]);
    assert!(plan.is_handled && called == ["slow"]);
    assert_eq!(world.body["metadata"]["annotations"], last_handled(10));
}

#[test]
fn a_change_that_is_undone_while_a_handler_runs_again_is_not_handled_twice() {
    let mut world = half_handled(true);
    world.body["spec"]["size"] = json!(10);
    world.cycle(None, 1.0, &[("fast", again(200.0))]);
    world.body["spec"]["size"] = json!(9);
    world.remembered = None;
    let (plan, called) = world.cycle(None, 100.0, &[("slow", done())]);
    assert!(plan.is_handled && called == ["slow"], "fast has handled 9 before");
    assert_eq!(world.body["metadata"]["annotations"], last_handled(9));
}

#[test]
fn a_permanent_failure_counts_only_for_its_state() {
    let mut world = half_handled(true);
    world.body["spec"]["size"] = json!(10);
    let failure = Outcome { delay: None, is_final: true, ..again(0.0) };
    world.cycle(None, 1.0, &[("fast", failure)]);
    world.body["spec"]["size"] = json!(11);
    world.remembered = None;
    assert_eq!(told_to(&world, "fast"), "(('change', ('spec', 'size'), 10, 11),)");
    let (_, called) = world.cycle(None, 2.0, &[("fast", done())]);
    assert_eq!(called, ["fast"]);
}

#[test]
fn records_of_kopf_without_a_state_count_as_they_do_in_kopf() {
    let mut world = half_handled(true);
    let key = "kopf.zalando.org/fast";
    let mut record: Value = serde_json::from_str(world.annotation(key).unwrap()).unwrap();
    assert!(record.as_object_mut().unwrap().remove("handled").is_some());
    world.body["metadata"]["annotations"][key] = json!(record.to_string());
    world.remembered = None;
    world.body["spec"]["size"] = json!(10);
    let (plan, called) = world.cycle(None, 100.0, &[("slow", done())]);
    assert!(plan.is_handled && called == ["slow"]);
}

#[test]
fn a_change_during_the_creation_is_an_update_afterwards() {
    let update = handler("update", HandlerKind::Update);
    let mut world = World::new(body(), vec![create("fast"), create("slow"), update]);
    world.cycle(None, 0.0, &[("fast", done()), ("slow", again(100.0))]);
    world.body["spec"]["size"] = json!(2);
    world.remembered = None;
    let (plan, called) = world.cycle(None, 100.0, &[("slow", done())]);
    assert!(plan.is_continued && called == ["slow"]);
    assert_eq!(told_to(&world, "update"), "(('change', ('spec', 'size'), 1, 2),)");
    let (plan, called) = world.cycle(None, 101.0, &[("update", done())]);
    assert!(plan.is_handled && called == ["update"]);
    assert_eq!(world.body["metadata"]["annotations"], last_handled(2));
}

#[test]
fn a_change_during_the_creation_costs_no_write_without_handlers() {
    let mut world = World::new(body(), vec![create("fast"), create("slow")]);
    world.cycle(None, 0.0, &[("fast", done()), ("slow", again(100.0))]);
    world.body["spec"]["size"] = json!(2);
    world.take_writes();
    let (plan, _) = world.cycle(None, 100.0, &[("slow", done())]);
    assert!(plan.is_handled && !plan.is_continued);
    assert_eq!(world.take_writes().len(), 1);
    assert_eq!(world.body["metadata"]["annotations"], last_handled(2));
}

#[test]
fn a_deletion_restarts_functions_that_have_handled_a_change() {
    let mut changed = handled();
    changed["spec"]["size"] = json!(2);
    changed["metadata"]["finalizers"] = json!([FINALIZER]);
    let function: Arc<dyn crate::invoke::Invoke> = handler("f", HandlerKind::Update).invoke;
    let f = |kind| Handler::new("f", kind, Arc::clone(&function));
    let delete = HandlerKind::Delete { optional: false };
    let slow = handler("slow", HandlerKind::Update);
    let mut world = World::new(changed, vec![f(HandlerKind::Update), f(delete), slow]);
    world.cycle(None, 0.0, &[("f", done()), ("slow", again(100.0))]);
    world.body["metadata"]["deletionTimestamp"] = json!("2026-11-15T00:00:00Z");
    let (plan, called) = world.cycle(None, 1.0, &[("f", done())]);
    assert!(plan.is_release && called == ["f"]);
}
