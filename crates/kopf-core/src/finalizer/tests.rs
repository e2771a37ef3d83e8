//! The complete decision table of the finalizer.

use super::{Holding, Step, decide};

#[track_caller]
fn check(needed: u8, present: u8, deleting: u8, expected: Step) {
    let [is_needed, is_present, is_deleting] = [needed, present, deleting].map(|flag| flag == 1);
    for is_gone in [false, true] {
        let expected = if is_gone { Step::Keep } else { expected };
        let holding = Holding { is_needed, is_present, is_deleting, is_gone };
        assert_eq!(decide(holding), expected, "{holding:?}");
    }
}

#[test]
fn every_combination_is_decided() {
    check(1, 0, 0, Step::Add);
    check(1, 0, 1, Step::Keep);
    check(1, 1, 0, Step::Keep);
    check(1, 1, 1, Step::ReleaseWhenDone);
    check(0, 0, 0, Step::Keep);
    check(0, 0, 1, Step::Keep);
    check(0, 1, 0, Step::Drop);
    check(0, 1, 1, Step::Drop);
}
