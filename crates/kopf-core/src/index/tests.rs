//! Entries that are added, changed and removed.

use std::any::Any;
use std::sync::Arc;

use kopf_model::{Object, ObjectKey};
use serde_json::{Value, json};

use super::{Index, entries};
use crate::invoke::{IndexView, Output};

fn object(name: &str) -> ObjectKey {
    Object::from_value(json!({"metadata": {"name": name, "uid": name}})).key()
}

fn values(index: &Index, key: &Value) -> Vec<Value> {
    let json = |value: Arc<dyn Any + Send + Sync>| value.downcast_ref::<Value>().unwrap().clone();
    index.get(key).into_iter().map(json).collect()
}

fn put(index: &Index, name: &str, result: Value) {
    index.replace(&object(name), entries(Output::Json(result)).unwrap());
}

#[test]
fn maps_are_spread_over_keys_and_other_values_use_null() {
    let index = Index::default();
    put(&index, "a", json!({"k": 1, "l": null}));
    put(&index, "b", json!({"k": 2}));
    put(&index, "c", json!("scalar"));
    assert_eq!(values(&index, &json!("k")), [json!(1), json!(2)]);
    assert_eq!(values(&index, &json!("l")), [json!(null)]);
    assert_eq!(values(&index, &json!(null)), [json!("scalar")]);
    assert_eq!(index.len(), 3);
}

#[test]
fn replacing_and_discarding_leave_nothing_behind() {
    let index = Index::default();
    put(&index, "a", json!({"k": 1}));
    put(&index, "a", json!({"l": 2}));
    assert_eq!(values(&index, &json!("k")), Vec::<Value>::new());
    assert_eq!(index.keys(), [json!("l")]);
    index.discard(&object("a"));
    assert!(index.is_empty());
    index.discard(&object("a"));
}

#[test]
fn no_result_keeps_the_previous_entries() {
    assert!(entries(Output::Nothing).is_none());
    assert!(entries(Output::Json(json!(null))).is_none());
}

/// Reads its index when it is dropped.
struct ReadsOnDrop(Arc<Index>);

impl Drop for ReadsOnDrop {
    fn drop(&mut self) {
        assert!(self.0.get(&json!("k")).len() < 2, "too many are left");
    }
}

#[test]
fn destructors_of_values_may_read_the_index_or_panic() {
    let index = Arc::new(Index::default());
    let put = |name: &str| {
        let value: Arc<dyn Any + Send + Sync> = Arc::new(ReadsOnDrop(Arc::clone(&index)));
        index.replace(&object(name), vec![(json!("k"), value)]);
    };
    for name in ["a", "a", "b", "c", "d"] {
        put(name);
    }
    for (name, left) in [("a", 3), ("b", 2), ("c", 1), ("d", 0)] {
        index.discard(&object(name));
        assert_eq!(index.get(&json!("k")).len(), left);
    }
}
