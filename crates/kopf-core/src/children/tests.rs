//! Sub-handlers across cycles and restarts.

use std::sync::Arc;
use std::time::Duration;

use kopf_model::Patch;
use serde_json::{Value, json};

use super::{ChildrenAgenda, Inputs};
use crate::cause::{Familiarity, detect};
use crate::fixture::{FINALIZER, at, handler, snapshot, storages};
use crate::handler::{Handler, HandlerKind};
use crate::invoke::{HandlerError, Output};
use crate::lifecycle::Lifecycle;
use crate::occasion::Reason;
use crate::progress::State;
use crate::retry::{Failure, FailureKind, Outcome};

fn children() -> Vec<Arc<Handler>> {
    ["p/a", "p/b"].map(|id| Arc::new(handler(id, HandlerKind::Sub))).to_vec()
}

fn success(result: Value) -> Outcome {
    Outcome { is_final: true, output: Output::Json(result), ..Outcome::default() }
}

fn again(seconds: u64) -> Outcome {
    let error = Some(Failure { kind: FailureKind::Temporary, message: "boo".into() });
    Outcome { delay: Some(Duration::from_secs(seconds)), error, ..Outcome::default() }
}

/// One pass; returns the ids that were called, what the parent is told, and the results.
fn pass(
    body: &Value,
    cycle: &mut State,
    now: f64,
    answers: &[(&str, Outcome)],
) -> (Vec<String>, Result<(), HandlerError>, Patch) {
    let snapshot = snapshot(body.clone(), None, Familiarity::default());
    let (handlers, change) = (children(), detect(&snapshot, FINALIZER));
    let known = cycle.clone();
    let mut agenda = ChildrenAgenda::make(Inputs {
        handlers: &handlers,
        subject: &snapshot.subject,
        body,
        change: &change,
        storages: &storages(),
        cycle: &known,
        now: at(now),
    })
    .unwrap();
    let (mut called, mut patch) = (Vec::new(), Patch::default());
    for handler in agenda.due(&Lifecycle::AllAtOnce, at(now)) {
        let (id, outcome) = answers.iter().find(|(id, _)| *id == &*handler.id).unwrap();
        agenda.take_in(id, outcome, &mut patch, at(now));
        called.push((*id).to_owned());
    }
    assert_eq!(agenda.subrefs().len(), 2);
    (called, agenda.conclude(cycle, at(now)), patch)
}

#[test]
fn the_parent_comes_back_until_all_children_are_finished() {
    let body = json!({"metadata": {"name": "x"}, "spec": {}});
    let parent = [Arc::new(handler("p", HandlerKind::Create))];
    let mut cycle = State::new(Some(Reason::Create)).with_handlers(&parent, at(0.0));
    let (called, told, patch) =
        pass(&body, &mut cycle, 0.0, &[("p/a", success(json!("r-a"))), ("p/b", again(7))]);
    assert_eq!(called, ["p/a", "p/b"]);
    assert!(matches!(told, Err(HandlerError::Children { delay: Some(d) }) if d.as_secs() == 7));
    assert_eq!(Value::Object(patch.merge), json!({"status": {"p/a": "r-a"}}));
    assert_eq!(cycle.counts().running, 1, "children are not counted");

    // In the next cycle of this process the progress comes from memory.
    let mut cycle =
        State::new(Some(Reason::Create)).with_handlers(&parent, at(7.0)).catch_up(&cycle);
    let (called, told, _) = pass(&body, &mut cycle, 7.0, &[("p/b", again(100))]);
    assert_eq!(called, ["p/b"]);
    assert!(told.is_err());

    // In another process it comes from the object.
    let mut stored = Patch::default();
    cycle.store(&*storages().progress, &body, &mut stored);
    let body = stored.applied_to(&body);
    assert!(body["metadata"]["annotations"]["kopf.zalando.org/p.a"].is_string());
    let mut cycle = State::load(&*storages().progress, &body, &parent, at(200.0)).unwrap();
    let (called, told, _) = pass(&body, &mut cycle, 200.0, &[("p/b", success(json!(1)))]);
    assert_eq!(called, ["p/b"]);
    assert!(told.is_ok());

    let mut purged = Patch::default();
    cycle.purge(&*storages().progress, &body, &parent, &mut purged);
    let rest = purged.applied_to(&body);
    assert_eq!(rest["metadata"]["annotations"], json!({}), "children are purged with their parent");
}
