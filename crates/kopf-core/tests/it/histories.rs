//! Random edits, deletions, failures, crashes and lost writes: nothing is ever lost.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kopf_core::cause::{Seen, Snapshot, detect};
use kopf_core::handler::{Handler, HandlerKind};
use kopf_core::invoke::{Call, Invocation, Invoke, Output};
use kopf_core::occasion::{Change, Reason, Subject};
use kopf_core::plan::{Agenda, Closing, Inputs, Plan};
use kopf_core::progress::later;
use kopf_core::retry::{Failure, FailureKind, Outcome};
use kopf_core::write::{Content, Writer};
use kopf_core::{Lifecycle, Settings, State, Storages};
use kopf_model::{Essence, HandledState, Object, Patch, Resource, Timestamp, json_patch, merge};
use proptest::prelude::*;
use serde_json::{Value, json};

const FINALIZER: &str = "kopf.zalando.org/KopfFinalizerMarker";
const LAST_HANDLED: &str = "kopf.zalando.org/last-handled-configuration";
/// The handlers of deletions.
const DELETING: [&str; 2] = ["change", "delete"];

#[derive(Clone, Debug)]
enum Step {
    Edit(u8),
    EditLabel(u8),
    Delete,
    /// The process restarts and loses its memory.
    Restart,
    Pass(u64),
    /// A cycle in which the handlers have these outcomes, in the order of their calls.
    Cycle(Vec<Answer>),
    /// A cycle whose write is lost in a crash.
    Crash(Vec<Answer>),
}

#[derive(Clone, Copy, Debug)]
enum Answer {
    Success,
    Failure,
    SoonAgain,
    LaterAgain,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let answer = || {
        prop_oneof![
            4 => Just(Answer::Success),
            1 => Just(Answer::Failure),
            2 => Just(Answer::SoonAgain),
            2 => Just(Answer::LaterAgain),
        ]
    };
    let answers = move || prop::collection::vec(answer(), 0..5);
    let step = prop_oneof![
        2 => (0..4_u8).prop_map(Step::Edit),
        1 => (0..3_u8).prop_map(Step::EditLabel),
        1 => Just(Step::Delete),
        1 => Just(Step::Restart),
        2 => (0..4000_u64).prop_map(Step::Pass),
        8 => answers().prop_map(Step::Cycle),
        1 => answers().prop_map(Step::Crash),
    ];
    prop::collection::vec(step, 0..40)
}

struct Nothing;

impl Invoke for Nothing {
    fn invoke(&self, _call: Call) -> Invocation {
        Invocation::Blocking(Box::new(|| Ok(Output::Nothing)))
    }
}

fn handlers() -> Vec<Arc<Handler>> {
    let mut field = Handler::new("field/spec.size", HandlerKind::Field, Arc::new(Nothing));
    field.filters.field = Some("spec.size".into());
    let plain = [
        ("create_1", HandlerKind::Create),
        ("create_2", HandlerKind::Create),
        ("update", HandlerKind::Update),
        ("delete", HandlerKind::Delete { optional: false }),
        ("resume", HandlerKind::Resume { deleted: false }),
    ];
    let plain = plain.map(|(id, kind)| Arc::new(Handler::new(id, kind, Arc::new(Nothing))));
    // One function for several reasons has one id, and therefore one record.
    let function: Arc<dyn Invoke> = Arc::new(Nothing);
    let shared = [
        ("both", HandlerKind::Create),
        ("both", HandlerKind::Update),
        ("change", HandlerKind::Update),
        ("change", HandlerKind::Delete { optional: false }),
    ];
    let shared = shared.map(|(id, kind)| Arc::new(Handler::new(id, kind, Arc::clone(&function))));
    let mut filtered = Handler::new("filtered", HandlerKind::Update, Arc::new(Nothing));
    filtered.filters.labels =
        vec![("l".to_owned(), kopf_core::filter::MetaFilter::Equals("1".to_owned()))];
    let filtered = [Arc::new(field), Arc::new(filtered)];
    plain.into_iter().chain(shared).chain(filtered).collect()
}

fn resource() -> Resource {
    Resource {
        group: "kopf.dev".into(),
        version: "v1".into(),
        plural: "kopfexamples".into(),
        kind: "KopfExample".into(),
        singular: "kopfexample".into(),
        shortcuts: BTreeSet::new(),
        categories: BTreeSet::new(),
        subresources: BTreeSet::new(),
        namespaced: true,
        preferred: true,
        verbs: BTreeSet::new(),
    }
}

/// The object on the server, and the operator with its memory.
struct World {
    body: Value,
    handlers: Vec<Arc<Handler>>,
    storages: Storages,
    memory: Seen,
    remembered: Option<State>,
    now: Timestamp,
    is_deleted: bool,
    /// The handlers that have finished for the deletion.
    finished_deletion: BTreeSet<String>,
    /// The states for which handlers last finished.
    finished: BTreeMap<String, Value>,
    /// The same, as far as stored on the object, so that a crash cannot make them run again.
    persisted: BTreeMap<String, Value>,
    calls: usize,
}

impl World {
    fn new() -> Self {
        Self {
            body: json!({
                "metadata": {"name": "x", "uid": "u", "resourceVersion": "1"},
                "spec": {"size": 0},
            }),
            handlers: handlers(),
            storages: Settings::default().persistence.storages().unwrap(),
            memory: Seen::default(),
            remembered: None,
            now: "2026-11-15T00:00:00Z".parse().unwrap(),
            is_deleted: false,
            finished_deletion: BTreeSet::new(),
            finished: BTreeMap::new(),
            persisted: BTreeMap::new(),
            calls: 0,
        }
    }

    fn restart(&mut self) {
        self.memory = Seen { noticed_by_listing: true, fully_handled_once: false };
        self.remembered = None;
        // A crash before anything is stored loses the outcome.
        self.finished.clone_from(&self.persisted);
    }

    fn edit(&mut self, change: impl FnOnce(&mut Value)) {
        let former = self.body.clone();
        change(&mut self.body);
        if self.body != former {
            self.bump_version();
        }
    }

    fn bump_version(&mut self) {
        let version = &mut self.body["metadata"]["resourceVersion"];
        let next = version.as_str().unwrap().parse::<u64>().unwrap() + 1;
        *version = json!(next.to_string());
    }

    fn annotation(&self, key: &str) -> Option<&str> {
        self.body["metadata"]["annotations"][key].as_str()
    }

    fn is_held(&self) -> bool {
        self.body["metadata"]["finalizers"] == json!([FINALIZER])
    }

    /// The relevant part of the current state for a handler.
    fn seen_by(&self, id: &str) -> Value {
        Self::part_for(id, &self.essence())
    }

    fn part_for(id: &str, essence: &Value) -> Value {
        match id {
            "field/spec.size" => essence["spec"]["size"].clone(),
            _ => essence.clone(),
        }
    }

    fn last_seen_by(&self, id: &str) -> Option<Value> {
        self.finished.get(id).map(|essence| Self::part_for(id, essence))
    }

    fn essence(&self) -> Value {
        let object = Object::from_value(self.body.clone());
        let mut essence = self.storages.diffbase.build(&object, &[]).unwrap();
        self.storages.progress.clear(&mut essence).unwrap();
        essence.value().clone()
    }

    /// Whether it is stored on the object that the handler has finished for this state.
    fn is_persisted(&self, id: &str, state: &Value) -> bool {
        let object = Object::from_value(self.body.clone());
        match self.storages.progress.fetch(id, &object).unwrap() {
            Some(record) => {
                let handled = record.handled.as_ref();
                let handled = handled.and_then(|handled| HandledState::decode(handled, None));
                handled.is_some_and(|handled| handled.is(&Essence::from(state.clone())))
            }
            None => {
                let last = self.annotation(LAST_HANDLED);
                last.is_some_and(|text| serde_json::from_str::<Value>(text).unwrap() == *state)
            }
        }
    }

    fn is_deleting(&self) -> bool {
        self.body["metadata"].get("deletionTimestamp").is_some()
    }

    /// Checks that a handler has a reason to run.
    fn check_call(&self, handler: &Handler, change: &Change) {
        let id = &*handler.id;
        assert!(self.is_held(), "{id} runs before the object is held");
        if self.is_deleting() {
            assert!(!self.finished_deletion.contains(id) || !self.is_deletion_stored(id));
            return;
        }
        let seen = self.seen_by(id);
        // Resuming and matching a filter again are reasons too.
        if !["resume", "filtered"].contains(&id) {
            let is_last = self.persisted.get(id) == self.finished.get(id);
            let persisted = self.persisted.get(id).filter(|_| is_last);
            let persisted = persisted.map(|essence| Self::part_for(id, essence));
            assert_ne!(persisted, Some(seen.clone()), "{id} runs again for the same state");
        }
        let new = change.new.as_ref().map(|new| new.value().clone());
        assert_eq!(new, Some(seen), "{id} sees the newest state");
        let Some(old) = change.old.as_ref().filter(|_| change.reason == Reason::Update) else {
            return;
        };
        // The difference is from a state for which it has finished, if any, or from a handled one.
        let known = [self.persisted.get(id), self.finished.get(id)];
        let known = known.map(|known| known.map(|essence| Self::part_for(id, essence)));
        let last: Option<Value> =
            self.annotation(LAST_HANDLED).map(|text| serde_json::from_str(text).unwrap());
        let is_own = known.contains(&Some(old.value().clone()));
        let is_last = last.is_some_and(|last| Self::part_for(id, &last) == *old.value());
        let is_created = ["create_1", "create_2"]
            .iter()
            .any(|id| self.finished.get(*id).is_some_and(|state| state == old.value()));
        assert!(is_own || is_last || is_created, "{id} gets a difference from {old:?}");
    }

    fn is_deletion_stored(&self, id: &str) -> bool {
        let object = Object::from_value(self.body.clone());
        let record = self.storages.progress.fetch(id, &object).unwrap();
        record.is_some_and(|record| record.success && record.purpose == Some("delete".into()))
    }

    fn cycle(&mut self, answers: &[Answer], is_write_lost: bool) -> Plan {
        let object = Object::from_value(self.body.clone());
        let subject = Subject { resource: Arc::new(resource()), object };
        let fields = ["spec.size".into()];
        let snapshot =
            Snapshot::take(subject, None, self.memory, &self.storages, &fields, None).unwrap();
        let handlers = self.handlers.clone();
        let inputs = Inputs {
            snapshot: &snapshot,
            changing: &handlers,
            has_background: false,
            storages: &self.storages,
            finalizer: FINALIZER,
            remembered: self.remembered.as_ref(),
            remembered_subs: None,
            rerun_outdated: true,
            now: self.now,
        };
        let mut agenda = Agenda::make(inputs, detect(&snapshot, FINALIZER)).unwrap();
        let mut patch = Patch::default();
        let mut answers = answers.iter();
        for handler in agenda.due(&Lifecycle::default(), self.now).unwrap() {
            self.check_call(&handler, &agenda.told(&handler));
            let outcome = outcome(answers.next().copied().unwrap_or(Answer::Success));
            agenda.record_outcome(&handler.id, outcome.clone(), &mut patch, self.now);
            self.calls += 1;
            if outcome.is_final && self.is_deleting() {
                self.finished_deletion.insert((*handler.id).to_owned());
            } else if outcome.is_final {
                self.finished.insert((*handler.id).to_owned(), self.essence());
            }
        }
        let closing = Closing {
            now: self.now,
            background_wake_at: None,
            persist_after: Duration::from_secs(1),
            persist_now: false,
        };
        let plan = agenda.conclude(inputs, patch, closing).unwrap();
        if is_write_lost {
            self.restart();
            return plan;
        }
        self.remembered.clone_from(&plan.remember);
        self.memory.fully_handled_once |= plan.is_handled;
        self.write(&plan);
        for (id, state) in self.finished.clone() {
            if self.is_persisted(&id, &state) {
                self.persisted.insert(id, state);
            }
        }
        plan
    }

    fn write(&mut self, plan: &Plan) {
        let (resource, object) = (resource(), Object::from_value(self.body.clone()));
        let mut writer = Writer::new(&plan.patch, &resource, &object);
        let mut writes = 0;
        while let Some(request) = writer.next_request() {
            match &request.content {
                Content::Merge(part, _) => {
                    let entries = part.iter().map(|(key, value)| (key.clone(), value.clone()));
                    merge::apply(&mut self.body, &entries.collect());
                }
                Content::Json(operations) => json_patch::apply(&mut self.body, operations).unwrap(),
            }
            self.bump_version();
            writer.accepted(Object::from_value(self.body.clone()));
            writes += 1;
        }
        assert!(writes <= 1, "one write per cycle");
        if self.is_deleting() && !self.is_held() {
            self.is_deleted = true;
        }
    }

    fn delete(&mut self) {
        if self.is_held() {
            self.edit(|body| {
                body["metadata"]["deletionTimestamp"] = json!("2026-11-15T00:00:00Z");
            });
        } else {
            self.is_deleted = true;
            self.finished_deletion = DELETING.map(str::to_owned).into();
        }
    }
}

fn outcome(answer: Answer) -> Outcome {
    let error = Some(Failure { kind: FailureKind::Temporary, message: "boo".into() });
    let again = |millis| Some(Duration::from_millis(millis));
    match answer {
        Answer::Success => Outcome {
            is_final: true,
            output: Output::Json(json!({"done": true})),
            ..Outcome::default()
        },
        Answer::Failure => Outcome { is_final: true, error, ..Outcome::default() },
        Answer::SoonAgain => Outcome { delay: again(300), error, ..Outcome::default() },
        Answer::LaterAgain => Outcome { delay: again(5000), error, ..Outcome::default() },
    }
}

/// Lets everything succeed until nothing is left to do; returns the number of cycles.
fn settle(world: &mut World) -> usize {
    for cycle in 0..40 {
        if world.is_deleted {
            return cycle;
        }
        let version = world.body["metadata"]["resourceVersion"].clone();
        let plan = world.cycle(&[], false);
        match plan.wake_at {
            Some(at) => world.now = at,
            None if world.body["metadata"]["resourceVersion"] == version => return cycle,
            None => {}
        }
    }
    panic!("it never settles: {}", world.body);
}

/// Every handler has finished for the final state, as far as it applies.
fn check_last_states(world: &World) -> Result<(), TestCaseError> {
    for id in ["both", "field/spec.size"] {
        prop_assert_eq!(world.last_seen_by(id), Some(world.seen_by(id)), "{}", id);
    }
    let now = world.essence();
    for id in ["update", "change"] {
        // Update handlers do not apply to objects that have not changed since their creation.
        let created = ["create_1", "create_2"].map(|id| world.finished.get(id));
        let is_unchanged = created.iter().all(|state| *state == Some(&now));
        let state = world.finished.get(id);
        prop_assert!(state == Some(&now) || (state.is_none() && is_unchanged), "{} missed it", id);
    }
    if let Some(state) = world.finished.get("filtered")
        && now["metadata"]["labels"]["l"] == "1"
    {
        prop_assert_eq!(state, &now);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_history_ends_in_order(steps in steps()) {
        let mut world = World::new();
        for step in steps {
            if world.is_deleted {
                break;
            }
            match step {
                Step::Edit(size) => world.edit(|body| body["spec"]["size"] = json!(size)),
                Step::EditLabel(value) => world.edit(|body| {
                    body["metadata"]["labels"] = json!({"l": value.to_string()});
                }),
                Step::Delete => world.delete(),
                Step::Restart => world.restart(),
                Step::Pass(millis) => world.now = later(world.now, Duration::from_millis(millis)),
                Step::Cycle(answers) => {
                    world.cycle(&answers, false);
                }
                Step::Crash(answers) => {
                    world.cycle(&answers, true);
                }
            }
        }
        settle(&mut world);
        if world.is_deleted {
            let deleting = BTreeSet::from(DELETING.map(str::to_owned));
            prop_assert!(deleting.is_subset(&world.finished_deletion), "released too early");
            return Ok(());
        }
        let annotations = world.body["metadata"]["annotations"].as_object().unwrap();
        let keys: Vec<_> = annotations.keys().collect();
        prop_assert_eq!(keys, [LAST_HANDLED], "only the last handled state is left");
        let stored: Value = serde_json::from_str(world.annotation(LAST_HANDLED).unwrap()).unwrap();
        prop_assert_eq!(stored, world.essence());
        prop_assert!(world.is_held());
        check_last_states(&world)?;

        // A restart of the operator causes only the resumption.
        let calls = world.calls;
        world.restart();
        let version = world.body["metadata"]["resourceVersion"].clone();
        settle(&mut world);
        prop_assert_eq!(&world.calls, &(calls + 1), "only the resume handler is called");
        // Its result is the same as before, unless it never succeeded before.
        if world.body["metadata"]["resourceVersion"] != version {
            prop_assert_eq!(&world.body["status"]["resume"], &json!({"done": true}));
        }
    }
}
