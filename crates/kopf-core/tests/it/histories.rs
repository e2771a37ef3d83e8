//! Random edits, deletions, failures, crashes and lost writes; whatever happens, nothing is lost.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use kopf_core::cause::{Familiarity, Snapshot};
use kopf_core::handler::{Handler, HandlerKind};
use kopf_core::invoke::{Call, Invocation, Invoke, Output};
use kopf_core::occasion::Subject;
use kopf_core::plan::{Agenda, Closing, Inputs, Plan};
use kopf_core::progress::later;
use kopf_core::retry::{Failure, FailureKind, Outcome};
use kopf_core::write::{Content, Writer};
use kopf_core::{Lifecycle, Settings, State, Storages};
use kopf_model::{Object, Patch, Resource, Timestamp, json_patch, merge};
use proptest::prelude::*;
use serde_json::{Value, json};

const FINALIZER: &str = "kopf.zalando.org/KopfFinalizerMarker";
const LAST_HANDLED: &str = "kopf.zalando.org/last-handled-configuration";

#[derive(Clone, Debug)]
enum Step {
    Edit(u8),
    EditLabel(u8),
    Delete,
    /// The process is restarted: its memory is lost.
    Restart,
    Pass(u64),
    /// A cycle in which the handlers answer so, in the order of their calls.
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
    plain.into_iter().chain([Arc::new(field)]).collect()
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
    memory: Familiarity,
    remembered: Option<State>,
    now: Timestamp,
    is_deleted: bool,
    has_finished_deletion: bool,
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
            memory: Familiarity::default(),
            remembered: None,
            now: "2026-11-15T00:00:00Z".parse().unwrap(),
            is_deleted: false,
            has_finished_deletion: false,
            calls: 0,
        }
    }

    fn restart(&mut self) {
        self.memory = Familiarity { noticed_by_listing: true, fully_handled_once: false };
        self.remembered = None;
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

    /// Ids with a stored success for this purpose.
    fn persisted_successes(&self, purpose: &str) -> BTreeSet<String> {
        let object = Object::from_value(self.body.clone());
        let is_success =
            |id: &&str| {
                self.storages.progress.fetch(id, &object).unwrap().is_some_and(|record| {
                    record.success && record.purpose.as_deref() == Some(purpose)
                })
            };
        self.handlers.iter().map(|h| &*h.id).filter(is_success).map(str::to_owned).collect()
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
            now: self.now,
        };
        let mut agenda = Agenda::make(inputs).unwrap();
        let mut patch = Patch::default();
        let mut answers = answers.iter();
        for handler in agenda.due(&Lifecycle::default(), self.now) {
            let reason = agenda.change.as_ref().unwrap().reason;
            assert!(self.is_held(), "{handler} runs before the object is held");
            let finished = self.persisted_successes(reason.as_str());
            assert!(!finished.contains(&*handler.id), "{handler} runs after its success");
            let outcome = outcome(answers.next().copied().unwrap_or(Answer::Success));
            agenda.take_in(&handler.id, &outcome, &mut patch, self.now);
            self.calls += 1;
            self.has_finished_deletion |= &*handler.id == "delete" && outcome.is_final;
        }
        let closing = Closing {
            now: self.now,
            background_wake_at: None,
            persist_after: Duration::from_secs(1),
            persist_now: false,
        };
        let plan = agenda.conclude(inputs, patch, closing);
        if is_write_lost {
            self.restart();
            return plan;
        }
        self.remembered.clone_from(&plan.remember);
        self.memory.fully_handled_once |= plan.is_handled;
        self.write(&plan);
        plan
    }

    fn write(&mut self, plan: &Plan) {
        let mut writer = Writer::new(plan.patch.clone(), &resource());
        let mut writes = 0;
        while let Some(write) = writer.next(&Object::from_value(self.body.clone())) {
            match &write.content {
                Content::Merge(patch) => merge::apply(&mut self.body, patch),
                Content::Json(operations) => json_patch::apply(&mut self.body, operations).unwrap(),
            }
            self.bump_version();
            writer.accepted(&write);
            writes += 1;
        }
        assert!(writes <= 1, "one write per cycle");
        let is_deleting = self.body["metadata"].get("deletionTimestamp").is_some();
        if is_deleting && !self.is_held() {
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
            self.has_finished_deletion = true;
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

/// Lets everything succeed until nothing is left to do; returns in how many cycles.
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
            prop_assert!(world.has_finished_deletion, "released before the deletion was handled");
            return Ok(());
        }
        let annotations = world.body["metadata"]["annotations"].as_object().unwrap();
        let keys: Vec<_> = annotations.keys().collect();
        prop_assert_eq!(keys, [LAST_HANDLED], "only the last handled state is left");
        let stored: Value = serde_json::from_str(world.annotation(LAST_HANDLED).unwrap()).unwrap();
        let mut essence = world.storages.diffbase.build(&Object::from_value(world.body.clone()), &[]);
        world.storages.progress.clear(&mut essence);
        prop_assert_eq!(stored, essence.value().clone());
        prop_assert!(world.is_held());

        // A restart of the operator changes nothing but the resumption.
        let calls = world.calls;
        world.restart();
        let version = world.body["metadata"]["resourceVersion"].clone();
        settle(&mut world);
        prop_assert_eq!(&world.calls, &(calls + 1), "only the resume handler is called");
        // Its result is the same as before, except when it never succeeded before.
        if world.body["metadata"]["resourceVersion"] != version {
            prop_assert_eq!(&world.body["status"]["resume"], &json!({"done": true}));
        }
    }
}
