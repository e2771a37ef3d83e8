//! Objects that the real Kopf has left half-handled have the same meaning for us.
//!
//! The cases come from `make_states.py`, which runs Kopf itself on random outcomes.

use std::sync::Arc;

use kopf_core::handler::{Handler, HandlerKind};
use kopf_core::invoke::{Call, Invocation, Invoke, Output};
use kopf_core::{Reason, Settings, State};
use kopf_model::{Object, Patch, Timestamp};
use serde_json::{Value, json};

struct Nothing;

impl Invoke for Nothing {
    fn invoke(&self, _call: Call) -> Invocation {
        Invocation::Blocking(Box::new(|| Ok(Output::Nothing)))
    }
}

fn handlers(ids: &Value) -> Vec<Arc<Handler>> {
    let handler = |id: &Value| {
        Arc::new(Handler::new(id.as_str().unwrap(), HandlerKind::Field, Arc::new(Nothing)))
    };
    ids.as_array().unwrap().iter().map(handler).collect()
}

#[test]
fn progress_left_by_kopf_is_continued_as_kopf_would() {
    let all: Value = serde_json::from_str(include_str!("kopf_states.json")).unwrap();
    let storage = Settings::default().persistence.storages().unwrap().progress;
    // Kopf's clock advanced a little while the cases were generated.
    let now: Timestamp = "2026-11-15T00:00:00.5Z".parse().unwrap();
    let owned = handlers(&all["ids"]);
    for case in all["cases"].as_array().unwrap() {
        let object = Object::parse(case["body"].to_string()).unwrap();
        let selected = handlers(&case["selected"]);
        let reason = Reason::from_purpose(case["reason"].as_str().unwrap()).unwrap();
        let mut state = State::load(&*storage, &object, &owned, now)
            .unwrap()
            .with_purpose(reason)
            .with_handlers(&selected, now);
        let counts = |counts: kopf_core::progress::Counts| {
            json!([counts.succeeded, counts.failed, counts.running])
        };
        let extras: serde_json::Map<_, _> =
            state.extras().into_iter().map(|(purpose, one)| (purpose, counts(one))).collect();
        assert_eq!(json!(extras), case["extras"], "{case}");
        let mut early = Patch::default();
        state.repurpose(&selected);
        if !state.extras().is_empty() {
            state.purge(&*storage, &object, &owned, &mut early).unwrap();
        }
        assert_eq!(json!(early.merge), case["early"], "{case}");
        assert_eq!(counts(state.counts()), case["counts"], "{case}");
        assert_eq!(json!(state.is_done()), case["done"], "{case}");
        let due: Vec<_> = state.due(&selected, now).iter().map(|h| h.id.to_string()).collect();
        assert_eq!(json!(due), case["due"], "{case}");
        for handler in &selected {
            assert_eq!(json!(state.retries(&handler.id)), case["retries"][&*handler.id], "{case}");
        }
        let delay = state.wake_at(now).map(|at| at.duration_since(now).as_secs_f64());
        match (delay, case["delays"].as_array().unwrap().first()) {
            (None, None) => {}
            (Some(ours), Some(theirs)) => {
                assert!((ours - theirs.as_f64().unwrap()).abs() < 1.0, "{case}");
            }
            different => panic!("{different:?} in {case}"),
        }
        let mut purge = Patch::default();
        state.purge(&*storage, &object, &owned, &mut purge).unwrap();
        assert_eq!(json!(purge.merge), case["purge"], "{case}");
    }
}
