//! Tests that encodings equal those of `serde_json`.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::encode;
use crate::stored::test_trees::tree;

proptest! {
    #[test]
    fn encodings_are_those_of_serde_json(tree in tree()) {
        let (encoded, survives) = encode(&tree);
        let expected = tree.to_string();
        prop_assert_eq!(&encoded[..], expected.as_bytes());
        if survives {
            prop_assert_eq!(serde_json::from_slice::<Value>(&encoded).unwrap(), tree);
        }
    }
}

#[test]
fn common_trees_survive_and_deep_ones_do_not() {
    assert!(encode(&json!({"a": ["x", 1, 0.5, null, {"b": true}]})).1);
    let mut deep = json!("x");
    for _ in 0..300 {
        deep = json!([deep]);
    }
    assert!(!encode(&deep).1);
}
