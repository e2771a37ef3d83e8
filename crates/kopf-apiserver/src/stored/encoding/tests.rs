//! Claims about encodings: those of `serde_json`.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::encode;

fn tree() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,40}".prop_map(Value::from),
        "[\\x00-\\x7f]{0,40}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 64, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((".{0,8}", inner), 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

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
