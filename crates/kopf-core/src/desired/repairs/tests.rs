//! Tests of pauses between repairs.

use std::time::Duration;

use kopf_model::Timestamp;

use super::Repairs;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).expect("a valid time")
}

#[test]
fn the_first_repairs_have_no_pause() {
    let mut repairs = Repairs::default();
    for _ in 0..4 {
        assert_eq!(repairs.held_until(at(0)), None);
        repairs = repairs.counted(at(0));
    }
    assert_eq!(repairs.held_until(at(0)), None);
}

#[test]
fn pauses_double_up_to_a_limit() {
    let (mut repairs, mut now, mut pauses) = (Repairs::default(), 0, Vec::new());
    for _ in 0..14 {
        repairs = repairs.counted(at(now));
        let next = repairs.held_until(at(now)).unwrap_or(at(now));
        assert_eq!(repairs.held_until(next), None, "it is due then");
        pauses.push(next.as_second() - now);
        now = next.as_second();
    }
    assert_eq!(pauses, [0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 64, 64, 64, 64]);
}

#[test]
fn a_child_that_was_left_alone_is_repaired_at_once_again() {
    let mut repairs = Repairs::default();
    for _ in 0..9 {
        repairs = repairs.counted(at(0));
    }
    assert_eq!(repairs.pause(), Duration::from_secs(16));
    assert_eq!(repairs.counted(at(128)).pause(), Duration::from_secs(32));
    assert_eq!(repairs.counted(at(129)).pause(), Duration::ZERO);
}
