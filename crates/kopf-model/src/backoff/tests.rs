//! The two rules.

use std::time::Duration;

use super::{doubled, listed};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn pauses_double_up_to_the_limit() {
    let pauses = [0, 1, 2, 3, 4, u32::MAX].map(|earlier| doubled(SECOND, earlier, SECOND * 10));
    assert_eq!(pauses.map(|it| it.as_secs()), [1, 2, 4, 8, 10, 10]);
}

#[test]
fn the_last_listed_pause_repeats() {
    let pauses = [SECOND, SECOND * 5];
    let after = [0, 1, 2, u32::MAX].map(|earlier| listed(earlier, &pauses));
    assert_eq!(after, [Some(SECOND), Some(SECOND * 5), Some(SECOND * 5), Some(SECOND * 5)]);
    assert_eq!(listed(0, &[]), None);
}
