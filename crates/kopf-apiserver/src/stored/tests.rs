//! Claims about trees that come and go.

use std::sync::Arc;

use serde_json::{Value, json};

use super::Stored;

#[test]
fn a_tree_goes_with_its_last_reader_and_comes_back_equal() {
    let tree = json!({"kind": "K", "n": [1, -2, 0.5, 1e300, "x", null, true], "z": {"a": {}}});
    let stored = Stored::new(tree.clone(), 1);
    let packed = Arc::clone(stored.packed());
    let weak = Arc::downgrade(stored.shared_value());
    drop(stored);
    assert!(weak.upgrade().is_none());
    let again = Stored::from(&packed);
    assert_eq!(again.value(), &tree);
    assert_eq!(again.encoded(), tree.to_string().as_bytes());
}

#[test]
fn readers_at_the_same_time_share_one_tree() {
    let stored = Stored::new(json!({"a": 1}), 1);
    let other = Stored::from(stored.packed());
    assert!(Arc::ptr_eq(stored.shared_value(), other.shared_value()));
}

#[test]
fn a_kept_tree_stays_until_it_is_loosened() {
    let stored = Stored::new(json!({"a": 1}), 1);
    let packed = Arc::clone(stored.packed());
    packed.keep();
    let weak = Arc::downgrade(stored.shared_value());
    drop(stored);
    assert!(weak.upgrade().is_some());
    packed.loosen();
    assert!(weak.upgrade().is_none());
}

#[test]
fn a_tree_that_the_decoder_would_refuse_stays() {
    let mut deep = json!("x");
    for _ in 0..300 {
        deep = json!([deep]);
    }
    check_survival(&deep);
    check_survival(&json!({"f": 0.300_000_000_000_000_04, "g": 5e-324, "h": 1.797_693e308}));
}

fn check_survival(tree: &Value) {
    let stored = Stored::new(tree.clone(), 1);
    let packed = Arc::clone(stored.packed());
    drop(stored);
    packed.loosen();
    assert_eq!(Stored::from(&packed).value(), tree);
}
