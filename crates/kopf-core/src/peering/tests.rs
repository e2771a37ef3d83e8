//! Which operator works and which pauses.

use std::time::Duration;

use kopf_model::peering::Peer;

use super::{Verdict, judge};
use crate::test_fixture::at;

fn peer(identity: &str, priority: i64, seen: f64) -> Peer {
    let lifetime = Duration::from_secs(60);
    Peer { identity: identity.into(), priority, lifetime, lastseen: at(seen) }
}

#[track_caller]
fn check(peers: &[Peer], expected: Verdict, recheck: Option<f64>) {
    let standing = judge(peers, "me", 5, at(100.0));
    assert_eq!(standing.verdict, expected);
    assert_eq!(standing.recheck_at, recheck.map(at));
}

#[test]
fn the_highest_priority_works_and_equals_stop_each_other() {
    let to = |name: &str| vec![name.to_owned()];
    check(&[], Verdict::Work, None);
    check(&[peer("me", 5, 90.0), peer("low", 4, 90.0)], Verdict::Work, None);
    check(&[peer("high", 6, 90.0)], Verdict::Yield { to: to("high") }, Some(150.0));
    check(&[peer("equal", 5, 80.0)], Verdict::Conflict { with: to("equal") }, Some(140.0));
    let both = [peer("equal", 5, 80.0), peer("high", 6, 90.0)];
    check(&both, Verdict::Yield { to: to("high") }, Some(140.0));
}

#[test]
fn dead_records_do_not_count_and_are_cleaned() {
    let standing = judge(&[peer("high", 6, 40.0), peer("me", 5, 0.0)], "me", 5, at(100.0));
    assert_eq!(standing.verdict, Verdict::Work);
    assert_eq!(standing.dead, ["high"], "our own record is only late");
}
