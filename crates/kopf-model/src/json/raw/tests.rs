use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Cursor, brackets, member};

#[test]
fn members_are_found_among_any_others() {
    let raw = br#" {"a" : [1, "]}", {"b": 2}], "b\"" : null, "c":{"b":3} , "d":-1.5e3,"":"x\\"} "#;
    let found = |key| member(raw, key).unwrap().map(|it| std::str::from_utf8(it).unwrap());
    assert_eq!(found("a"), Some(r#"[1, "]}", {"b": 2}]"#));
    assert_eq!(found("b\""), Some("null"));
    assert_eq!(found("c"), Some(r#"{"b":3}"#));
    assert_eq!(found("d"), Some("-1.5e3"));
    assert_eq!(found(""), Some(r#""x\\""#));
    assert_eq!(found("b"), None);
    assert_eq!(member(b"[]", "a").unwrap(), None);
}

#[test]
fn unterminated_values_are_rejected() {
    for raw in
        ["{", r#"{"a"#, r#"{"a\"#, r#"{"a":"#, r#"{"a":1"#, r#"{"a":[1}"#, r#"{"a" 1}"#, "{,}"]
    {
        assert!(member(raw.as_bytes(), "x").is_err(), "{raw}");
    }
    let mut cursor = Cursor::new(b"{} x");
    cursor.value().unwrap();
    assert!(cursor.end().is_err());
}

/// Like `brackets::length`, but byte by byte.
fn length_byte_by_byte(bytes: &[u8]) -> Option<usize> {
    let (mut depth, mut in_text, mut is_escaped) = (0, false, false);
    for (index, byte) in bytes.iter().enumerate() {
        let was_escaped = std::mem::take(&mut is_escaped);
        match byte {
            b'\\' => is_escaped = !was_escaped,
            b'"' => in_text ^= !was_escaped,
            b'{' | b'[' if !in_text => depth += 1,
            b'}' | b']' if !in_text => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(index + 1);
        }
    }
    None
}

fn trees() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".*".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map(".{0,4}", inner, 0..4).prop_map(Value::from_iter),
        ]
    })
}

proptest! {
    #[test]
    fn every_member_is_found_unchanged(tree in trees(), is_pretty in any::<bool>()) {
        let root = json!({"first": 1, "it": tree, "last": [2]});
        let text =
            if is_pretty { serde_json::to_string_pretty(&root) } else { serde_json::to_string(&root) };
        let text = text.unwrap();
        let found = member(text.as_bytes(), "it").unwrap().unwrap();
        let parsed: Value = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(&serde_json::from_slice::<Value>(found).unwrap(), &parsed["it"]);
    }

    #[test]
    fn brackets_close_where_they_do_byte_by_byte(
        rest in r#"([\\]{0,3}["{}\[\]]|[a-z:, ]{0,9}){0,60}"#,
        opening in prop_oneof![Just("{"), Just("[")],
    ) {
        let text = format!("{opening}{rest}");
        let bytes = text.as_bytes();
        prop_assert_eq!(brackets::length(bytes), length_byte_by_byte(bytes), "{}", text);
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = member(&bytes, "a");
        let _ = Cursor::new(&bytes).value();
    }
}

#[test]
fn strings_with_escapes_are_decoded_as_by_the_general_decoder() {
    let texts = [
        r#""a\"b\\c\/d\n\t\r\b\f""#,
        r#""\u00e9\n""#,
        r#""\ud83d\ude00\n""#,
        r#""\ud83d\n""#,
        r#""\x\n""#,
        "\"\\n\u{e9}\"",
        "\"\\n\t\"",
        r#""\n\n""#,
    ];
    for json in texts {
        let expected = serde_json::from_str::<String>(json).ok();
        let text = Cursor::new(json.as_bytes()).text().expect("it is a string");
        assert_eq!(text.read().ok().map(std::borrow::Cow::into_owned), expected, "{json}");
    }
}
