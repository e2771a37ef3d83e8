//! Escapes in stored text.

use serde_json::Value;

use super::{has_form, push_ascii, push_ascii_text, to_ascii};
use crate::json::deep;

#[test]
fn non_ascii_is_escaped_with_surrogates_and_the_rest_is_not() {
    let text = to_ascii(&serde_json::json!({"k ü": "a\n\"\u{7f}😀~"}));
    assert_eq!(text, r#"{"k \u00fc":"a\n\"\u007f\ud83d\ude00~"}"#);
}

#[test]
fn the_canonical_form_is_recognised() {
    for json in [r#"{"a":[1,-20,0,true,false,null,"b\n\"~"],"":{}}"#, "123456789012345678", "[]"] {
        assert!(has_form(json.as_bytes()), "{json}");
        let value: serde_json::Value = serde_json::from_str(json).unwrap();
        assert_eq!(to_ascii(&value), json);
    }
}

#[test]
fn everything_else_is_rewritten() {
    for (json, expected) in [
        ("[1, 2]", "[1,2]"),
        (r#""\/""#, r#""/""#),
        (r#""\u003c""#, r#""<""#),
        ("\"\u{7f}\"", r#""\u007f""#),
        ("\"ü\"", r#""\u00fc""#),
        ("1.50", "1.5"),
        ("1e2", "100.0"),
        ("-0", "-0.0"),
    ] {
        assert!(!has_form(json.as_bytes()), "{json}");
        let mut text = Vec::new();
        push_ascii(&mut text, json.as_bytes()).unwrap();
        assert_eq!(String::from_utf8(text).unwrap(), expected);
    }
    assert!(push_ascii(&mut Vec::new(), b"nul").is_err());
}

#[test]
fn floats_are_the_same_after_being_written_and_read() {
    for text in [
        "51.248178375505404",
        "-93.31137037688033",
        "-36.573994842753436",
        "52.314008204106244",
        "97.45365320034685",
        "31.245270191439438",
        "2.2250738585072014e-308",
        "1e-7",
    ] {
        let value: Value = deep::read(text.as_bytes()).expect("a number");
        assert_eq!(value.as_f64(), text.parse().ok(), "{text}");
        let again: Value = deep::read(to_ascii(&value).as_bytes()).expect("a number");
        assert_eq!(again, value, "{text}");
    }
}

#[test]
fn texts_are_written_as_values_are() {
    for text in ["", "app.kubernetes.io/name", "a \"b\" \\", "ü", "\u{7f}", "\n\t", "a/b~"] {
        let mut written = Vec::new();
        push_ascii_text(&mut written, text);
        assert_eq!(String::from_utf8(written).unwrap(), to_ascii(&text));
    }
}
