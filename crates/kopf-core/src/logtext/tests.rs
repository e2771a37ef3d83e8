//! Lines that users look for, word by word.

use std::time::Duration;

use super::{counted, processed, seconds, superseded, throttling};
use crate::occasion::Reason;

#[test]
fn lines_are_those_that_users_look_for() {
    assert_eq!(
        processed(Reason::Create, 2, 1).text,
        "Creation is processed: 2 succeeded; 1 failed."
    );
    assert_eq!(
        superseded("update", Reason::Delete, [1, 0, 1]).text,
        "Updating is superseded by deletion: 1 succeeded; 0 failed; 1 left to the moment."
    );
    assert_eq!(
        throttling(Duration::from_secs(1), "boo").text,
        "Throttling for 1 seconds due to an unexpected error: boo"
    );
    assert_eq!(seconds(Duration::from_millis(700)), "0.7");
}

#[test]
fn one_thing_is_not_several() {
    assert_eq!(counted(1, "handler"), "1 handler");
    assert_eq!(counted(0, "handler"), "0 handlers");
    assert_eq!(counted(2, "handler"), "2 handlers");
}
