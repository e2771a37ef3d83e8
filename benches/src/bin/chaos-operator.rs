//! Our operator for `cargo xtask chaos`: every call writes one line to the file `$CALLS`.
//!
//! `chaos_operator.py` next to this crate is the same operator for Kopf. `xtask/src/chaos/judge`
//! knows what each handler must have seen.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::sync::{LazyLock, atomic::AtomicU64, atomic::Ordering};
use std::time::{Duration, SystemTime};

use kopf::children::Child;
use kopf::input::{Attempt, Diff, Object, Stopped, SubHandlers};
use kopf::prelude::*;

/// The delay of temporary errors in most handlers.
const PAUSE: Duration = Duration::from_secs(1);
/// How often a daemon shows that it is alive.
const HEARTBEAT: Duration = Duration::from_secs(2);
/// Work that takes this long can be interrupted.
const SLOW: Duration = Duration::from_millis(300);

static CALLS: LazyLock<File> = LazyLock::new(|| {
    let path = std::env::var_os("CALLS").expect("$CALLS names the file of calls");
    OpenOptions::new().create(true).append(true).open(path).expect("$CALLS can be written")
});

/// Distinguishes the instances of daemons.
static INSTANCES: AtomicU64 = AtomicU64::new(0);

/// The result that a handler is about to return.
#[derive(Clone, Copy, PartialEq)]
enum Outcome {
    Done,
    Retry,
    Failed,
}

impl Outcome {
    fn retry_if(condition: bool) -> Self {
        if condition { Self::Retry } else { Self::Done }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Retry => "retry",
            Self::Failed => "failed",
        }
    }

    fn into_result(self) -> Result {
        match self {
            Self::Done => Ok(()),
            Self::Retry => Err(kopf::temporary("not yet").retry_in(PAUSE)),
            Self::Failed => Err(kopf::permanent("never")),
        }
    }
}

/// One call and its start time.
struct Call<'a> {
    handler: &'a str,
    object: &'a Object,
    began: f64,
    more: Value,
}

impl<'a> Call<'a> {
    fn begin(handler: &'a str, object: &'a Object) -> Self {
        Self { handler, object, began: now(), more: json!({}) }
    }

    fn with(mut self, name: &str, value: Value) -> Self {
        self.more[name] = value;
        self
    }

    /// Writes the line; appending short lines to a file is atomic.
    fn write(&self, outcome: &str) {
        let meta = &self.object.value()["metadata"];
        let mut line = json!({
            "began": self.began,
            "ended": now(),
            "pid": std::process::id(),
            "handler": self.handler,
            "uid": meta["uid"],
            "name": meta["name"],
            "version": meta["resourceVersion"],
            "generation": meta["generation"],
            "spec": self.object.spec(),
            "labels": meta["labels"],
            "outcome": outcome,
        });
        for (name, value) in self.more.as_object().into_iter().flatten() {
            line[name] = value.clone();
        }
        let mut calls = &*CALLS;
        calls.write_all(format!("{line}\n").as_bytes()).expect("$CALLS can be written");
    }

    fn end(self, outcome: Outcome) -> Result {
        self.write(outcome.name());
        outcome.into_result()
    }
}

fn now() -> f64 {
    SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_secs_f64()
}

fn value_of(object: &Object) -> i64 {
    object.spec()["value"].as_i64().unwrap_or_default()
}

#[kopf::on::create("chaos.kopf.dev", "v1", "gadgets")]
#[kopf::on::update("chaos.kopf.dev", "v1", "gadgets")]
async fn fast(object: &Object) -> Result {
    Call::begin("fast", object).end(Outcome::Done)
}

#[kopf::on::create("chaos.kopf.dev", "v1", "gadgets")]
#[kopf::on::update("chaos.kopf.dev", "v1", "gadgets")]
async fn slow(object: &Object) -> Result {
    let call = Call::begin("slow", object);
    tokio::time::sleep(SLOW).await;
    call.end(Outcome::Done)
}

/// Fails up to two times, depending on the value.
#[kopf::on::create("chaos.kopf.dev", "v1", "gadgets")]
#[kopf::on::update("chaos.kopf.dev", "v1", "gadgets")]
async fn flaky(object: &Object, attempt: Attempt) -> Result {
    let failures = value_of(object).rem_euclid(3);
    let outcome = Outcome::retry_if(i64::from(attempt.retry) < failures);
    Call::begin("flaky", object).end(outcome)
}

/// Fails permanently for some values.
#[kopf::on::create("chaos.kopf.dev", "v1", "gadgets")]
#[kopf::on::update("chaos.kopf.dev", "v1", "gadgets")]
async fn picky(object: &Object) -> Result {
    let fails = value_of(object).rem_euclid(7) == 0;
    Call::begin("picky", object).end(if fails { Outcome::Failed } else { Outcome::Done })
}

#[kopf::on::update("chaos.kopf.dev", "v1", "gadgets")]
async fn changed(object: &Object, diff: &Diff) -> Result {
    let diff: Vec<Value> =
        diff.iter().map(|item| json!([item.field.to_string(), item.old, item.new])).collect();
    Call::begin("changed", object).with("diff", diff.into()).end(Outcome::Done)
}

#[kopf::on::create("chaos.kopf.dev", "v1", "gadgets", labels = {"tier": "gold"})]
#[kopf::on::update("chaos.kopf.dev", "v1", "gadgets", labels = {"tier": "gold"})]
async fn gilded(object: &Object) -> Result {
    Call::begin("gilded", object).end(Outcome::Done)
}

/// An error without a delay is retried after the backoff.
#[kopf::on::field("chaos.kopf.dev", "v1", "gadgets", field = "spec.color", backoff = "1s")]
async fn colored(object: &Object, attempt: Attempt, Change { old, new }: Change) -> Result {
    let fails = object.spec()["color"] == "red" && attempt.retry == 0;
    let call = Call::begin("colored", object).with("old", json!(old)).with("new", json!(new));
    call.write(Outcome::retry_if(fails).name());
    if fails {
        return Err("red is difficult".into());
    }
    Ok(())
}

#[kopf::on::create("chaos.kopf.dev", "v1", "gadgets")]
#[kopf::on::update("chaos.kopf.dev", "v1", "gadgets")]
async fn parent(object: &Object, sub_handlers: SubHandlers) -> Result {
    Call::begin("parent", object).write("declares");
    sub_handlers.add("a", |object: Object| async move {
        Call::begin("parent/a", &object).end(Outcome::Done)
    });
    sub_handlers.add("b", |object: Object, attempt: Attempt| async move {
        Call::begin("parent/b", &object).end(Outcome::retry_if(attempt.retry == 0))
    });
    Ok(())
}

#[kopf::on::resume("chaos.kopf.dev", "v1", "gadgets")]
async fn resumed(object: &Object) -> Result {
    Call::begin("resumed", object).end(Outcome::Done)
}

#[kopf::on::delete("chaos.kopf.dev", "v1", "gadgets")]
async fn removed(object: &Object, attempt: Attempt) -> Result {
    Call::begin("removed", object).end(Outcome::retry_if(attempt.retry == 0))
}

#[kopf::on::timer("chaos.kopf.dev", "v1", "gadgets", interval = "2s")]
async fn tick(object: &Object) {
    Call::begin("tick", object).write("tick");
}

#[kopf::on::daemon("chaos.kopf.dev", "v1", "gadgets", cancellation_timeout = "5s")]
async fn beside(object: &Object, stopped: Stopped) {
    let instance = INSTANCES.fetch_add(1, Ordering::Relaxed);
    loop {
        Call::begin("beside", object).with("instance", instance.into()).write("beat");
        if stopped.wait(HEARTBEAT).await {
            break;
        }
    }
    Call::begin("beside", object).with("instance", instance.into()).write("stopped");
}

#[kopf::on::desired("chaos.kopf.dev", "v1", "gadgets", children("configmaps.v1"))]
fn children(spec: &Spec) -> Vec<Child> {
    let color = spec["color"].as_str().unwrap_or("none");
    let data = json!({"value": spec["value"].to_string(), "color": color});
    vec![json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data}).into()]
}

fn main() -> kopf::Exit {
    kopf::operator!(
        "chaos",
        [
            fast, slow, flaky, picky, changed, gilded, colored, parent, resumed, removed, tick,
            beside, children
        ]
    )
    .main()
}
