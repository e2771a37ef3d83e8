//! Growing pauses.

use std::time::Duration;

use super::Throttle;
use crate::settings::Queueing;

#[test]
fn delays_grow_the_last_repeats_and_success_resets() {
    let delays = Queueing::default().error_delays;
    let mut throttle = Throttle::default();
    let mut seconds = || throttle.note_error(&delays).unwrap().as_secs();
    let seen: Vec<_> = (0..17).map(|_| seconds()).collect();
    assert_eq!(seen, [1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610, 610, 610]);
    assert!(throttle.note_success());
    assert!(!throttle.note_success());
    assert_eq!(throttle.note_error(&delays), Some(Duration::from_secs(1)));
}

#[test]
fn without_delays_there_is_no_throttling() {
    let mut throttle = Throttle::default();
    assert_eq!(throttle.note_error(&[]), None);
    assert!(!throttle.is_active());
}
