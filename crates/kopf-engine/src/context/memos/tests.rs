use std::sync::Arc;

use kopf_core::invoke::Extensions;

use super::{Memos, REVIEWED_MAX};

fn noted(memo: &Extensions) -> Option<u32> {
    memo.get::<u32>().map(|value| *value)
}

/// A review that stores a number in the memo.
fn review(memos: &Memos, uid: &str, number: u32) {
    let memo = memos.of_reviewed(uid, false);
    memo.insert(Arc::new(number));
    memos.keep_reviewed(uid, &memo);
}

#[test]
fn reviews_and_cycles_share_the_memo_of_an_object() {
    let memos = Memos::new(Extensions::default(), true);
    review(&memos, "a", 1);
    let of_cycle = memos.of("a");
    assert_eq!(noted(&of_cycle), Some(1));
    of_cycle.insert(Arc::new(2_u32));
    assert_eq!(noted(&memos.of_reviewed("a", false)), Some(2));
    assert_eq!(noted(&memos.of("b")), None);
}

#[test]
fn a_creation_leaves_no_memo_behind() {
    let memos = Memos::new(Extensions::default(), true);
    for uid in ["", "a"] {
        let memo = memos.of_reviewed(uid, true);
        memo.insert(Arc::new(1_u32));
        memos.keep_reviewed(uid, &memo);
        drop(memo);
        assert_eq!(noted(&memos.of(uid)), None, "{uid}");
    }
}

#[test]
fn a_memo_is_dropped_with_its_object() {
    let memos = Memos::new(Extensions::default(), true);
    for number in 0..1000_u32 {
        memos.of(&number.to_string()).insert(Arc::new(number));
    }
    let known = memos.by_uid.get().expect("admission").lock().memos.len();
    assert!(known <= 64, "{known} memos of objects that nobody remembers");
}

#[test]
fn only_so_many_memos_are_kept_for_reviews_alone() {
    let memos = Memos::new(Extensions::default(), true);
    for number in 0..=u32::try_from(REVIEWED_MAX).expect("a small number") {
        review(&memos, &number.to_string(), number);
        review(&memos, &number.to_string(), number);
    }
    assert_eq!(noted(&memos.of("0")), None);
    assert_eq!(noted(&memos.of("1")), Some(1));
}
