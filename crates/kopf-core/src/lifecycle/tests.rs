//! The handlers that each lifecycle chooses.

use std::sync::Arc;

use super::Lifecycle;
use crate::handler::HandlerKind;
use crate::occasion::Reason;
use crate::progress::State;
use crate::retry::Outcome;
use crate::test_fixture::{at, handler};

#[track_caller]
fn check(lifecycle: &Lifecycle, expected: &[&str]) {
    let due: Vec<_> = ["a", "b", "c"].map(|id| Arc::new(handler(id, HandlerKind::Create))).to_vec();
    let mut state = State::new(Some(Reason::Create)).with_handlers(&due, at(0.0));
    for (id, retries) in [("a", 2), ("b", 0), ("c", 1)] {
        for _ in 0..retries {
            state.record_outcome(id, &Outcome::default(), at(0.0));
        }
    }
    let chosen = lifecycle.choose(due, &state).unwrap();
    let mut ids: Vec<_> = chosen.iter().map(|handler| &*handler.id).collect();
    if matches!(lifecycle, Lifecycle::Shuffled) {
        ids.sort_unstable();
    }
    assert_eq!(ids, expected, "{lifecycle:?}");
}

#[test]
fn lifecycles_choose_as_named() {
    check(&Lifecycle::default(), &["b", "c", "a"]);
    check(&Lifecycle::Asap, &["b"]);
    check(&Lifecycle::OneByOne, &["a"]);
    check(&Lifecycle::AllAtOnce, &["a", "b", "c"]);
    check(&Lifecycle::Shuffled, &["a", "b", "c"]);
    check(&Lifecycle::custom(|due, _| due.into_iter().skip(2).collect()), &["c"]);
    let due = ["a", "b"].map(|id| Arc::new(handler(id, HandlerKind::Create))).to_vec();
    let one = Lifecycle::Randomized.choose(due, &State::default()).unwrap();
    assert_eq!(one.len(), 1);
    assert!(Lifecycle::Randomized.choose(vec![], &State::default()).unwrap().is_empty());
}
