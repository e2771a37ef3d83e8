//! Texts that are plain and texts that are not; the same differences as between trees.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{KEYS_MAX, LEVELS_MAX, differ, is_plain};
use crate::Diff;
use crate::json::text::to_ascii;

#[test]
fn only_plain_texts_are_accepted() {
    let plain = [
        r#"{"a":1,"b":[true,false,null,-7,"x \"y\"\n"],"c":{},"d":[]}"#,
        r#"{"a":{"a":{"a":0}}}"#,
        "null",
    ];
    for text in plain {
        assert!(is_plain(text.as_bytes()), "{text}");
        let tree: Value = serde_json::from_str(text).expect("it is JSON");
        assert_eq!(to_ascii(&tree), text);
    }
    let others = [
        "",
        "{",
        "{}}",
        "{}{}",
        r#"{"a":1,}"#,
        r#"{,"a":1}"#,
        r#"{"a"}"#,
        r#"{"a":}"#,
        r#"{"a":1 }"#,
        r#"{"a":1,"a":1}"#,
        r#"{"a":[1,{"b":1,"c":2,"b":3}]}"#,
        r#"{"a":1.5}"#,
        r#"{"a":1e3}"#,
        r#"{"a":01}"#,
        r#"{"a":-0}"#,
        r#"{"a":"\u00e9"}"#,
        r#"{"a":"\/"}"#,
        "{\"a\":\"\u{e9}\"}",
        "{\"a\":\"\n\"}",
        r#"{"a":nul}"#,
        r#"{"a":"b}"#,
        r#"["a":1]"#,
        r#"{"a":[1,]}"#,
        r#"{"a":123456789012345678901234567890}"#,
    ];
    for text in others {
        assert!(!is_plain(text.as_bytes()), "{text}");
    }
}

#[test]
fn deep_and_wide_texts_are_left_to_trees() {
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    assert!(is_plain(nested(LEVELS_MAX).as_bytes()));
    assert!(!is_plain(nested(LEVELS_MAX + 1).as_bytes()));
    assert!(!is_plain("[".repeat(100_000).as_bytes()));
    let wide = |keys: usize| {
        let members: Vec<String> = (0..keys).map(|key| format!("\"{key}\":1")).collect();
        format!("{{{}}}", members.join(","))
    };
    assert!(is_plain(wide(KEYS_MAX).as_bytes()));
    assert!(!is_plain(wide(KEYS_MAX + 1).as_bytes()));
}

#[test]
fn differences_are_told_where_the_keys_are_the_same() {
    let check = |old: &str, new: &str| differ(old.as_bytes(), new.as_bytes());
    assert_eq!(check(r#"{"a":{"b":[1,2]}}"#, r#"{"a":{"b":[1,2]}}"#), Some(false));
    assert_eq!(check(r#"{"a":{"b":[1,2]}}"#, r#"{"a":{"b":[1,3]}}"#), Some(true));
    assert_eq!(check(r#"{"a":{"b":[1,2]}}"#, r#"{"a":{"b":[1]}}"#), Some(true));
    assert_eq!(check(r#"{"a":null}"#, r#"{"a":{}}"#), Some(true));
    assert_eq!(check(r#"{"a":1}"#, r#"{"a":1.0}"#), None);
    assert_eq!(check(r#"{"a":1}"#, r#"{"a":"1"}"#), Some(true));
    assert_eq!(check(r#"{"a":1}"#, "{}"), None);
    assert_eq!(check(r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1}"#), None);
    assert_eq!(check(r#"{"a":1}"#, r#"{"a":2,"a":1}"#), None);
}

fn tree() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3_i64..3).prop_map(Value::from),
        Just(json!(1.0)),
        Just(json!(0.5)),
        "[a-c\"\\\\\u{e9}\n]{0,2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec(("[a-c]{1,2}", inner), 0..3)
                .prop_map(|members| members.into_iter().collect::<serde_json::Map<_, _>>().into()),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_told_about_texts_is_true_of_their_trees(old in tree(), new in tree()) {
        let (old_text, new_text) = (to_ascii(&old), to_ascii(&new));
        if is_plain(old_text.as_bytes()) {
            for (other, other_text) in [(&new, &new_text), (&old, &old_text)] {
                let told = differ(old_text.as_bytes(), other_text.as_bytes());
                let is_different = !Diff::between(Some(&old), Some(other)).is_empty();
                prop_assert!(told.is_none_or(|told| told == is_different));
            }
        }
    }

    #[test]
    fn plain_texts_are_what_their_trees_would_be_written_as(text in "[{}\\[\\]:,\"ab1\\- ]{0,12}") {
        if is_plain(text.as_bytes()) {
            let tree: Value = serde_json::from_str(&text).expect("plain text is JSON");
            prop_assert_eq!(to_ascii(&tree), text);
        }
    }
}
