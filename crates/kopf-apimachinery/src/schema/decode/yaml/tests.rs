//! Tests that JSON which is decoded without the YAML loader means the same to the loader.

use proptest::prelude::*;

use super::{load, plain_json};
use crate::schema::decode::Decoded;
use crate::stored::test_trees::tree;

/// Checks that the loader gives the same result, if there is one.
fn check(text: &str) {
    if let Some(value) = plain_json(text) {
        let loaded = load(text).unwrap_or_else(|error| panic!("{text:?} is not YAML: {error}"));
        assert_eq!(loaded, Decoded { value, duplicates: Vec::new() }, "{text}");
    }
}

#[test]
fn bodies_of_programs_need_no_loader() {
    for text in [
        r#"{"apiVersion":"v1","kind":"ConfigMap","data":{"a":"y","b":"0123","<<":"x"}}"#,
        "{\n  \"spec\": { \"replicas\": 3, \"on\": [true, null, -1] }\n}\n",
        r#"{"text":"a\n\"b\" # no comment: {} [] & * ! | > ' %"}"#,
    ] {
        assert!(plain_json(text).is_some(), "{text}");
        check(text);
    }
}

#[test]
fn the_loader_reads_what_differs_between_json_and_yaml() {
    for text in [
        "a: 1",
        "{a: 1}",
        "{\t\"a\": 1}",
        "{\"a\": \"\u{7f}\"}",
        "{\"a\": \"\u{85}\"}",
        r#"{"a": "\/"}"#,
        r#"{"a": 1.0}"#,
        r#"{"a": 1, "a": 2}"#,
        "{\"a\": 1} # comment",
        "[1]",
    ] {
        assert!(plain_json(text).is_none(), "{text}");
    }
}

proptest! {
    #[test]
    fn trees_mean_the_same(tree in tree()) {
        check(&tree.to_string());
        check(&serde_json::to_string_pretty(&tree).expect("trees can be printed"));
    }

    #[test]
    fn any_text_means_the_same(text in "\\{[\\x0a\\x20-\\x7e]{0,60}\\}") {
        check(&text);
    }
}
