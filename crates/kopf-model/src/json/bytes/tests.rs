//! The written JSON is the same as that of `serde_json`.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{push_string, push_value};

fn written(value: &Value) -> String {
    let mut bytes = b"before".to_vec();
    push_value(&mut bytes, value);
    String::from_utf8(bytes).unwrap().strip_prefix("before").unwrap().to_owned()
}

#[test]
fn values_are_written_as_by_serde_json() {
    let inner =
        json!({"a": {"b": ["c", 1, -0.5, 1e300, u64::MAX, null, true, {}, []]}}).to_string();
    for value in [
        json!({"annotations": {"last": inner, "none": null}, "x": [[], {}, "", "\u{7f}é😀"]}),
        json!("\"\"\"\\\\\n\t\r\u{8}\u{c}\u{0}\u{1f}"),
        json!("12345678\"1234567\"\"12345678"),
        json!(null),
        json!(1.0),
    ] {
        assert_eq!(written(&value), value.to_string());
    }
}

proptest! {
    #[test]
    fn texts_are_written_as_by_serde_json(text in "[ -~\\n\\t\\x00-\\x1fé€😀\"\"\\\\]{0,40}") {
        let mut bytes = Vec::new();
        push_string(&mut bytes, &text);
        prop_assert_eq!(String::from_utf8(bytes).unwrap(), serde_json::to_string(&text).unwrap());
    }

    #[test]
    fn long_texts_are_written_as_by_serde_json(text in "[ -~\\né😀\"\"\\\\]{240,800}") {
        let mut bytes = b"before".to_vec();
        push_string(&mut bytes, &text);
        let written = String::from_utf8(bytes).unwrap();
        prop_assert_eq!(&written["before".len()..], serde_json::to_string(&text).unwrap());
    }
}
