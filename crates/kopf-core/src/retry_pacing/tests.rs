//! The pauses between immediate retries.

use std::time::Duration;

use super::RetryPacing;

fn pauses(pacing: &mut RetryPacing, took: u64, count: usize) -> Vec<u128> {
    let took = Duration::from_millis(took);
    (0..count).map(|_| pacing.pace(took, Duration::ZERO).as_millis()).collect()
}

#[test]
fn pauses_grow_after_some_attempts_without_a_delay_up_to_a_limit() {
    let mut pacing = RetryPacing::default();
    assert_eq!(pauses(&mut pacing, 0, 10), [0; 10]);
    assert_eq!(pauses(&mut pacing, 0, 9), [10, 20, 40, 80, 160, 320, 640, 1000, 1000]);
}

#[test]
fn a_requested_delay_is_kept_and_resets_the_back_off() {
    let mut pacing = RetryPacing::default();
    pauses(&mut pacing, 0, 100);
    let delay = Duration::from_millis(1);
    assert_eq!(pacing.pace(Duration::ZERO, delay), delay);
    assert_eq!(pauses(&mut pacing, 0, 11)[9..], [0, 10]);
}

#[test]
fn an_attempt_that_takes_long_needs_no_pause() {
    let mut pacing = RetryPacing::default();
    assert_eq!(pauses(&mut pacing, 1000, 100), [0; 100]);
    assert_eq!(pauses(&mut pacing, 300, 1), [700]);
}
