//! Which rejected patches are given up, and when.

use super::{
    After, AfterOwn, Asker, Look, OwnAnswer, Rejection, after_failure, after_outdated,
    after_own_part,
};

const CYCLE: Asker = Asker::Cycle { failures: 0 };

#[test]
fn rejected_content_is_reduced_in_cycles_and_dropped_in_the_background() {
    for rejection in [Rejection::Invalid, Rejection::Unacceptable] {
        assert_eq!(after_failure(rejection, CYCLE), After::OwnPart);
        assert_eq!(after_failure(rejection, Asker::Background), After::Drop);
    }
    for rejection in [Rejection::Transient, Rejection::Other, Rejection::Conflict] {
        assert_eq!(after_failure(rejection, CYCLE), After::Keep);
        assert_eq!(after_failure(rejection, Asker::Background), After::Keep);
    }
}

#[test]
fn cycles_wait_for_rights_for_a_limited_time() {
    assert_eq!(after_failure(Rejection::Forbidden, CYCLE), After::Keep);
    let patient = |failures| after_failure(Rejection::Forbidden, Asker::Cycle { failures });
    assert_eq!((patient(4), patient(5)), (After::Keep, After::OwnPart));
    assert_eq!(after_failure(Rejection::Forbidden, Asker::Background), After::Drop);
}

#[test]
fn a_newer_state_is_always_written_to() {
    for asker in [CYCLE, Asker::Background] {
        for rejection in [Rejection::Conflict, Rejection::Invalid] {
            assert_eq!(after_outdated(rejection, Look::Newer, asker), After::Again);
        }
    }
}

#[test]
fn without_a_newer_state_the_content_was_rejected() {
    let after = |look, asker| after_outdated(Rejection::Invalid, look, asker);
    assert_eq!(after(Look::Same, CYCLE), After::OwnPart);
    assert_eq!(after(Look::Same, Asker::Background), After::Drop);
    assert_eq!(after(Look::Forbidden, CYCLE), After::OwnPart);
    assert_eq!(after(Look::Forbidden, Asker::Background), After::Keep);
}

#[test]
fn the_rest_is_dropped_only_if_the_version_was_certainly_right() {
    let after = |answer, look| after_own_part(answer, look, false, false);
    assert_eq!(after(OwnAnswer::Changed, Look::Same), AfterOwn::Done);
    assert_eq!(after(OwnAnswer::Changed, Look::Unsure), AfterOwn::Again);
    assert_eq!(after_own_part(OwnAnswer::Changed, Look::Unsure, true, false), AfterOwn::Done);
    assert_eq!(after(OwnAnswer::Unchanged, Look::Unsure), AfterOwn::Keep);
    assert_eq!(after_own_part(OwnAnswer::Unchanged, Look::Unsure, false, true), AfterOwn::Done);
    assert_eq!(after(OwnAnswer::Outdated, Look::Same), AfterOwn::Keep);
}
