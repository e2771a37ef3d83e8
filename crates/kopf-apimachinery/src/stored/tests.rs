//! Tests for trees that are dropped and decoded again.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Draft, Stored};
use crate::apply::ManagedFields;

#[test]
fn a_tree_goes_with_its_last_reader_and_comes_back_equal() {
    let tree = json!({"kind": "K", "n": [1, -2, 0.5, 1e300, "x", null, true], "z": {"a": {}}});
    let stored = Stored::new(tree.clone(), 1);
    let packed = Arc::clone(stored.packed());
    let weak = Arc::downgrade(stored.shared_content());
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
    assert!(Arc::ptr_eq(stored.shared_content(), other.shared_content()));
}

#[test]
fn a_kept_tree_stays_until_it_is_loosened() {
    let stored = Stored::new(json!({"a": 1}), 1);
    let packed = Arc::clone(stored.packed());
    packed.keep();
    let weak = Arc::downgrade(stored.shared_content());
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

#[test]
fn managed_fields_are_in_the_encoding_but_not_in_the_content() {
    for metadata in [json!({}), json!({"name": "x"}), json!({"resourceVersion": "1", "name": "x"})]
    {
        let bare = json!({"kind": "K", "metadata": metadata, "spec": {"a": 1}});
        let mut whole = bare.clone();
        whole["metadata"]["managedFields"] = json!([{"manager": "m", "fieldsV1": {"f:a": {}}}]);
        let stored = Stored::new(whole.clone(), 1);
        assert_eq!((stored.content(), stored.value()), (&bare, &whole));
        assert_eq!(serde_json::from_slice::<Value>(stored.encoded()).unwrap(), whole);
        let packed = Arc::clone(stored.packed());
        drop(stored);
        let again = Stored::from(&packed);
        assert_eq!((again.content(), again.value()), (&bare, &whole));
    }
}

#[test]
fn a_draft_gets_its_version_in_tree_and_encoding() {
    let entries = json!([{"manager": "m", "fieldsV1": {"f:a": {}}}]);
    for metadata in [
        json!({"name": "x"}),
        json!({"resourceVersion": "7", "name": "x"}),
        json!({"resourceVersion": 7, "managedFields": entries}),
        json!({"name": "x", "managedFields": entries}),
        json!({}),
    ] {
        let mut expected = json!({"kind": "K", "metadata": metadata});
        let draft = Draft::new(expected.clone(), ManagedFields::default());
        let stored = draft.at_version(12_345);
        expected["metadata"]["resourceVersion"] = json!("12345");
        assert_eq!(stored.value(), &expected);
        assert_eq!(serde_json::from_slice::<Value>(stored.encoded()).unwrap(), expected);
        assert_eq!(Stored::from(stored.packed()).value(), &expected);
        assert_eq!(stored.resource_version(), 12_345);
    }
}

#[test]
fn given_managed_fields_win_over_those_in_the_tree() {
    let tree = json!({"metadata": {"managedFields": [{"manager": "old"}]}});
    let managed = ManagedFields::from_text("[{\"manager\":\"new\"}]".into());
    let stored = Draft::new(tree, managed).at_version(1);
    assert_eq!(stored.value()["metadata"]["managedFields"], json!([{"manager": "new"}]));
}
