//! Prints the cost of the hot paths for one object: `cargo run --release -p benches --bin
//! hot-paths`.
//!
//! Measures wall-clock time, so run it on an idle machine; the best of many batches is shown.

use std::collections::BTreeSet;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kopf_core::cause::{Seen, Snapshot, detect};
use kopf_core::handler::{Handler, HandlerKind};
use kopf_core::invoke::{Call, Invocation, Invoke, Output};
use kopf_core::occasion::Subject;
use kopf_core::plan::{Agenda, Closing, Inputs};
use kopf_core::queue::{Limits, Next, Queue, Urgency};
use kopf_core::retry::Outcome;
use kopf_core::write::Writer;
use kopf_core::{Lifecycle, Settings, Storages};
use kopf_model::{EssenceScanner, Object, Patch, Resource, Timestamp};
use serde_json::{Value, json};

const FINALIZER: &str = "kopf.zalando.org/KopfFinalizerMarker";

struct Nothing;

impl Invoke for Nothing {
    fn invoke(&self, _call: Call) -> Invocation {
        Invocation::Blocking(Box::new(|| Ok(Output::Nothing)))
    }
}

fn main() {
    let storages = Settings::default().persistence.storages().expect("the default prefix is given");
    for fields in [20, 120] {
        measure_object(fields, &storages);
    }
    measure_queue();
}

fn measure_object(fields: usize, storages: &Storages) {
    let fresh = body(fields);
    let handled = handle(&fresh, storages);
    let raw = bytes::Bytes::from(handled.to_string());
    println!("object of {} bytes, {} bytes once handled", fresh.to_string().len(), raw.len());
    let scanner = EssenceScanner::new(Vec::new(), storages.progress.own_annotations());
    print("read the identity", || Object::parse(raw.clone()).expect("it is valid"));
    let object = Object::parse(raw.clone()).expect("it is valid");
    print("take the fingerprint", || scanner.scan(&object).expect("it is valid"));
    print("parse the tree", || serde_json::from_slice::<Value>(&raw).expect("it is valid"));
    print("no change: parse, essences, diff, cause", || {
        let object = Object::parse(raw.clone()).expect("it is valid");
        detect(&snapshot(object, storages), FINALIZER).reason
    });
    let raw_fresh = bytes::Bytes::from(fresh.to_string());
    print("creation: everything from bytes to the request", || {
        let object = Object::parse(raw_fresh.clone()).expect("it is valid");
        plan_creation(object, storages)
    });
}

fn plan_creation(object: Object, storages: &Storages) -> Option<String> {
    let now = Timestamp::UNIX_EPOCH;
    let snapshot = snapshot(object, storages);
    let handlers = [Arc::new(Handler::new("create_fn", HandlerKind::Create, Arc::new(Nothing)))];
    let inputs = Inputs {
        snapshot: &snapshot,
        changing: &handlers,
        has_background: false,
        storages,
        finalizer: FINALIZER,
        remembered: None,
        remembered_subs: None,
        rerun_outdated: true,
        now,
    };
    let mut agenda = Agenda::make(inputs, detect(&snapshot, FINALIZER)).ok()?;
    let mut patch = Patch::default();
    for handler in agenda.due(&Lifecycle::default(), now).expect("no callbacks") {
        let output = Output::Json(json!({"ok": true}));
        let outcome = Outcome { is_final: true, output, ..Outcome::default() };
        agenda.record_outcome(&handler.id, outcome, &mut patch, now);
    }
    let closing = Closing {
        now,
        background_wake_at: None,
        persist_after: Duration::from_secs(1),
        persist_now: false,
    };
    let plan = agenda.conclude(inputs, patch, closing).expect("no callbacks");
    let resource = resource();
    let mut writer = Writer::new(&plan.patch, &resource, snapshot.object());
    String::from_utf8(writer.next_request()?.content.to_bytes()).ok()
}

fn measure_queue() {
    let limits = Limits { running_max: 64, error_delays: Vec::new() };
    let mut queue: Queue<kopf_model::ObjectKey> = Queue::new(limits);
    let keys: Vec<_> = (0..1000)
        .map(|number| {
            Object::from_value(json!({"metadata": {
                "name": format!("object-{number}"), "namespace": format!("ns-{}", number % 10),
                "uid": format!("{number:032x}"),
            }}))
            .key()
        })
        .collect();
    print("offer, take and give back 1000 keys", || {
        for key in &keys {
            queue.offer(key.clone(), Urgency::Fresh, Duration::ZERO);
        }
        while let Some(ticket) = queue.take(Duration::ZERO) {
            queue.done(ticket, Next::Rest, Duration::ZERO);
        }
    });
}

fn snapshot(object: Object, storages: &Storages) -> Snapshot {
    let subject = Subject { resource: Arc::new(resource()), object };
    Snapshot::take(subject, None, Seen::default(), storages, &[], None).expect("it is readable")
}

fn handle(body: &Value, storages: &Storages) -> Value {
    let mut patch = Patch::default();
    let object = Object::from_value(body.clone());
    let essence = storages.diffbase.build(&object, &[]).expect("built-in storages do not fail");
    let stored = storages.diffbase.store(&essence, &object, &mut patch);
    stored.expect("built-in storages do not fail");
    patch.applied_to(body).expect("there are no transformations")
}

fn body(fields: usize) -> Value {
    let spec: serde_json::Map<String, Value> = (0..fields)
        .map(|number| (format!("field-{number}"), json!({"value": number, "list": ["a", "b"]})))
        .collect();
    json!({
        "apiVersion": "kopf.dev/v1", "kind": "KopfExample",
        "metadata": {
            "name": "example", "namespace": "default", "uid": "0f3e", "resourceVersion": "12345",
            "labels": {"app": "x"}, "annotations": {"note": "y"},
            "managedFields": [{"manager": "kubectl", "operation": "Apply", "fieldsV1": {
                "f:spec": {"f:field-0": {}}, "f:metadata": {"f:labels": {"f:app": {}}},
            }}],
        },
        "spec": spec,
        "status": {"phase": "Ready"},
    })
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

/// The best of 30 batches, each of about 2 ms.
fn print<T>(what: &str, mut work: impl FnMut() -> T) {
    let mut best = f64::MAX;
    let mut rounds = 1_u32;
    for _ in 0..30 {
        let start = Instant::now();
        for _ in 0..rounds {
            black_box(work());
        }
        let each = start.elapsed().as_secs_f64() / f64::from(rounds);
        best = best.min(each);
        rounds = if each < 1e-7 { 20_000 } else { (2e-3 / each).ceil() as u32 };
    }
    println!("  {what:<50} {:>10.0} ns", best * 1e9);
}
