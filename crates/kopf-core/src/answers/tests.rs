//! Decisions with slow callbacks.

use std::sync::Arc;

use kopf_model::CallbackError;

use super::{Answer, Answers, CallbackId, Question, is_deciding, later, on_thread};

/// Doubles a number, slowly.
fn doubled(number: u32) -> Result<u32, CallbackError> {
    on_thread(CallbackId::of(("doubled", number)), move || Ok(number * 2))
}

fn answer_of(question: Question) -> Answer {
    match question {
        Question::Blocking(function) => function(),
        Question::Future(_) => panic!("there are only functions here"),
    }
}

/// Makes a decision until it has a result; returns it with the number of questions.
fn decide<T>(mut decision: impl FnMut() -> T) -> (T, usize) {
    let (mut answers, mut questions) = (Answers::default(), 0);
    loop {
        match answers.decide(&mut decision) {
            Ok(decided) => return (decided, questions),
            Err(open) => {
                questions += 1;
                let id = open.id();
                answers.add(id, answer_of(open.question));
            }
        }
    }
}

#[test]
fn a_decision_without_slow_callbacks_is_made_once() {
    let mut runs = 0;
    let (decided, questions) = decide(|| runs += 1);
    assert_eq!((decided, questions, runs), ((), 0, 1));
}

#[test]
fn a_decision_is_repeated_until_all_answers_are_known() {
    let mut runs = 0;
    let (decided, questions) = decide(|| {
        runs += 1;
        doubled(1).and_then(doubled).and_then(doubled)
    });
    assert_eq!((decided.expect("no errors"), questions, runs), (8, 3, 4));
}

#[test]
fn a_callback_that_fails_is_asked_once() {
    let mut asked = 0;
    let (decided, questions) = decide(|| {
        let failing = || -> Result<(), _> { Err(CallbackError::new("ValueError('no')")) };
        asked += 1;
        on_thread(CallbackId::of("failing"), failing)
    });
    assert_eq!(decided.expect_err("an error").message, "ValueError('no')");
    assert_eq!((questions, asked), (1, 2));
}

#[test]
fn a_decision_that_ignores_errors_waits_for_the_answers_too() {
    let (decided, questions) = decide(|| [1, 2].map(|it| doubled(it).unwrap_or_default()));
    assert_eq!((decided, questions), ([2, 4], 2));
}

#[test]
fn answers_of_another_callback_are_not_used() {
    let mut runs = 0;
    let (decided, questions) = decide(|| {
        runs += 1;
        // Another callback than in the first run comes first.
        doubled(if runs == 1 { 10 } else { 20 })
    });
    assert_eq!((decided.expect("no errors"), questions), (40, 2));
}

#[test]
fn outside_decisions_blocking_functions_run_at_once() {
    assert!(!is_deciding());
    assert_eq!(doubled(3).expect("no errors"), 6);
    let future = || std::future::ready(Ok(1_u32));
    let error = later(CallbackId::of("future"), future).expect_err("nothing awaits it");
    assert_eq!(error.message, "a slow callback was called outside a decision");
}

#[test]
fn a_decision_that_panics_leaves_no_answers_behind() {
    let panicking = || Answers::default().decide(|| panic!("a bug"));
    let caught = std::panic::catch_unwind(|| panicking().is_ok());
    assert!(caught.is_err());
    assert!(!is_deciding());
}

#[test]
fn a_nested_decision_keeps_the_answers_of_the_outer_one() {
    let (decided, questions) = decide(|| {
        let first = doubled(1);
        let (inner, _) = decide(|| doubled(100));
        Ok::<_, CallbackError>(first? + inner? + doubled(2)?)
    });
    assert_eq!((decided.expect("no errors"), questions), (206, 2));
}

#[test]
fn values_of_any_type_are_answers() {
    let list = || on_thread(CallbackId::of("list"), || Ok(Arc::new(vec![1, 2])));
    assert_eq!(*decide(list).0.expect("no errors"), [1, 2]);
}
