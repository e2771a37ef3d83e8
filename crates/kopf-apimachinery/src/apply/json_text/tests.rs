//! Tests for reading text without building trees.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{fields, tree, unescaped};

#[test]
fn fields_come_with_their_values() {
    let text = br#"{"f:a":{},"k:{\"n\":\"}\"}":{".":{},"f:x":[1,"]"]},"s":"a\\","n":-1}"#;
    let found: Vec<(String, &str)> = fields(text)
        .map(|(name, value)| {
            (unescaped(name).unwrap().into_owned(), std::str::from_utf8(value).unwrap())
        })
        .collect();
    let expected = [
        ("f:a", "{}"),
        ("k:{\"n\":\"}\"}", r#"{".":{},"f:x":[1,"]"]}"#),
        ("s", r#""a\\""#),
        ("n", "-1"),
    ];
    assert_eq!(found, expected.map(|(name, value)| (name.to_owned(), value)));
}

#[test]
fn depth_has_no_limit() {
    let mut deep = json!({});
    for _ in 0..300 {
        deep = json!({"f:a": [deep]});
    }
    assert_eq!(tree(deep.to_string().as_bytes()), deep);
}

#[test]
fn broken_text_is_not_read_beyond_its_end() {
    let text = br#"{"a":{"b\"":[1,{"c":"d"}]},"e":null}"#;
    for end in 0..text.len() {
        tree(&text[..end]);
        tree(&text[end..]);
    }
}

fn any_tree() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("\\PC{0,4}", inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn trees_are_as_the_general_decoder_makes_them(value in any_tree()) {
        prop_assert_eq!(tree(value.to_string().as_bytes()), value);
    }
}
