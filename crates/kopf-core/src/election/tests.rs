use super::*;

const WALL: Timestamp = Timestamp::UNIX_EPOCH;

fn at(seconds: u64) -> Moment {
    Duration::from_secs(seconds)
}

fn held_by(holder: &str) -> LeaseRecord {
    let duration = Some(Duration::from_secs(15));
    LeaseRecord { holder: holder.into(), duration, transitions: 4, ..LeaseRecord::default() }
}

/// Executes the write that the candidate requests.
fn write(candidate: &mut Election, version: &str, sent_at: Moment) -> LeaseRecord {
    let Step::Write(write) = candidate.step(sent_at, WALL) else {
        panic!("nothing is to be written: {:?}", candidate.step(sent_at, WALL))
    };
    candidate.succeed(&write, version.into(), sent_at, sent_at + at(1));
    write.record
}

fn candidate() -> Election {
    Election::new("me", Times::DEFAULT)
}

#[test]
fn a_lease_that_never_existed_is_created_at_once() {
    let mut me = candidate();
    assert_eq!(me.step(at(0), WALL), Step::Read);
    me.observe(None, at(0));
    let record = write(&mut me, "1", at(0));
    assert_eq!((record.holder.as_str(), record.transitions), ("me", 0));
    assert!(me.term(at(9)).is_some());
}

#[test]
fn a_term_is_counted_from_before_the_renewal_was_sent() {
    let mut me = candidate();
    me.observe(None, at(0));
    let Step::Write(claim) = me.step(at(3), WALL) else { panic!("it is free") };
    me.succeed(&claim, "1".into(), at(3), at(9));
    assert_eq!(me.term(at(12)), Some(Term { number: 0, until: at(13) }));
    assert_eq!(me.term(at(13)), None);
}

#[test]
fn another_holder_keeps_the_lease_for_its_duration() {
    let mut me = candidate();
    me.observe(Some((held_by("other"), "7".into())), at(5));
    assert_eq!(me.step(at(19), WALL), Step::Wait(at(20)));
    // Read again without a change.
    me.observe(Some((held_by("other"), "7".into())), at(18));
    let record = write(&mut me, "8", at(20));
    assert_eq!((record.holder.as_str(), record.transitions), ("me", 5));
}

#[test]
fn every_observed_renewal_restarts_the_wait() {
    let mut me = candidate();
    me.observe(Some((held_by("other"), "7".into())), at(5));
    me.observe(Some((held_by("other"), "8".into())), at(18));
    assert_eq!(me.step(at(21), WALL), Step::Wait(at(33)));
}

#[test]
fn a_failed_read_does_not_restart_the_wait() {
    let mut me = candidate();
    me.observe(Some((held_by("other"), "7".into())), at(5));
    me.fail(false, at(6));
    me.observe(Some((held_by("other"), "7".into())), at(8));
    assert_eq!(me.step(at(9), WALL), Step::Wait(at(20)));
}

#[test]
fn a_released_lease_is_taken_at_once() {
    let mut me = candidate();
    me.observe(Some((released(&held_by("other"), WALL), "7".into())), at(5));
    assert_eq!(write(&mut me, "8", at(5)).transitions, 5);
}

#[test]
fn a_deleted_lease_is_not_taken_while_its_holder_may_act() {
    let mut me = candidate();
    me.observe(Some((held_by("other"), "7".into())), at(5));
    me.observe(None, at(6));
    assert_eq!(me.step(at(6), WALL), Step::Wait(at(21)));
    assert_eq!(write(&mut me, "9", at(21)).transitions, 5);
}

#[test]
fn renewals_keep_the_term_and_the_time_of_acquisition() {
    let mut me = candidate();
    me.observe(None, at(0));
    write(&mut me, "1", at(0));
    assert_eq!(me.step(at(1), WALL), Step::Wait(at(2)));
    let later = Timestamp::from_second(100).unwrap();
    let Step::Write(renewal) = me.step(at(2), later) else { panic!("a renewal is due") };
    assert_eq!(renewal.precondition, Precondition::Version("1".into()));
    assert_eq!((renewal.record.acquired, renewal.record.renewed), (Some(WALL), Some(later)));
    assert_eq!(renewal.record.transitions, 0);
}

#[test]
fn the_term_ends_when_another_holder_is_seen() {
    let mut me = candidate();
    me.observe(None, at(0));
    write(&mut me, "1", at(0));
    me.observe(Some((held_by("other"), "2".into())), at(3));
    assert_eq!(me.term(at(3)), None);
}

#[test]
fn late_events_from_before_our_own_write_are_ignored() {
    let mut me = candidate();
    me.observe(Some((released(&held_by("other"), WALL), "7".into())), at(5));
    write(&mut me, "8", at(5));
    me.observe(Some((held_by("other"), "6".into())), at(6));
    assert!(me.term(at(6)).is_some());
}

#[test]
fn a_candidate_that_leaves_no_longer_acts() {
    let mut me = candidate();
    me.observe(None, at(0));
    write(&mut me, "1", at(0));
    let Some(Step::Write(release)) = me.leave(WALL) else { panic!("it is held") };
    assert_eq!(release.record.holder, "");
    assert_eq!(release.record.duration, Some(Duration::from_secs(1)));
    assert_eq!(me.term(at(0)), None);
    me.succeed(&release, "2".into(), at(1), at(1));
    assert_eq!(me.leave(WALL), None);
    assert_eq!(me.step(at(60), WALL), Step::Wait(Moment::MAX));
}

#[test]
fn a_candidate_that_leaves_after_an_unknown_response_reads_first() {
    let mut me = candidate();
    me.observe(None, at(0));
    write(&mut me, "1", at(0));
    me.fail(false, at(2));
    assert_eq!(me.leave(WALL), Some(Step::Read));
    me.observe(Some((held_by("me"), "2".into())), at(3));
    assert!(matches!(me.leave(WALL), Some(Step::Write(_))));
}

#[test]
fn unsafe_times_are_rejected() {
    let times = Times { lease_duration: Duration::from_secs(10), ..Times::DEFAULT };
    assert_eq!(times.check(), Err(TimesError::DeadlineTooLong));
    let times = Times { retry_period: Duration::from_secs(6), ..Times::DEFAULT };
    assert_eq!(times.check(), Err(TimesError::RetriesTooRare));
    let times = Times { retry_period: Duration::ZERO, ..Times::DEFAULT };
    assert_eq!(times.check(), Err(TimesError::NoPause));
    assert_eq!(Times::DEFAULT.check(), Ok(()));
}
