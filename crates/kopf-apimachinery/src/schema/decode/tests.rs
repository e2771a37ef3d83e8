//! What the decoders accept, report and reject.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn check_yaml(text: &str, expected: Value) {
    assert_eq!(yaml(text.as_bytes()).unwrap().value, expected, "{text}");
}

#[test]
fn json_duplicates_are_reported_and_the_last_one_wins() {
    let decoded = json(br#"{"data":{"a":"1","a":"2"},"l":[{"x":1,"x":1}]}"#).unwrap();
    assert_eq!(decoded.value, json!({"data": {"a": "2"}, "l": [{"x": 1}]}));
    assert_eq!(decoded.duplicates, ["duplicate field \"data.a\"", "duplicate field \"l[0].x\""]);
}

#[test]
fn broken_json_is_explained_as_go_does() {
    let cases = [
        ("", "unexpected end of JSON input"),
        ("{\"a\":", "unexpected end of JSON input"),
        ("{\"a\":x}", "invalid character 'x' looking for beginning of value"),
        ("{a:1}", "invalid character 'a' looking for beginning of object key string"),
        ("{\"a\" 1}", "invalid character '1' after object key"),
        ("{\"a\":1 \"b\"}", "invalid character '\"' after object key:value pair"),
        ("[1 2]", "invalid character '2' after array element"),
        ("{} x", "invalid character 'x' after top-level value"),
    ];
    for (body, expected) in cases {
        assert_eq!(json(body.as_bytes()).unwrap_err().0, expected, "{body}");
    }
}

#[test]
fn deep_bodies_are_rejected_with_a_reason() {
    let nested = |levels: usize| "[".repeat(levels) + "1" + &"]".repeat(levels);
    for levels in [1, 100, 128, 129, DEPTH_MAX] {
        assert_eq!(depth(&json(nested(levels).as_bytes()).unwrap().value), levels);
        assert_eq!(depth(&yaml(nested(levels).as_bytes()).unwrap().value), levels);
    }
    for levels in [DEPTH_MAX + 1, 1000, 100_000] {
        let body = nested(levels);
        let problem = "exceeded max depth (255 levels)";
        assert_eq!(json(body.as_bytes()).unwrap_err().0, problem);
        assert_eq!(yaml(body.as_bytes()).unwrap_err().0, format!("yaml: line 1: {problem}"));
        let block = (0..levels.min(1000)).map(|level| format!("{}a:\n", " ".repeat(level)));
        assert!(yaml(block.collect::<String>().as_bytes()).unwrap_err().0.contains(problem));
    }
}

#[test]
fn aliases_do_not_make_bodies_deeper() {
    let nested = |levels: usize, inner: &str| "[".repeat(levels) + inner + &"]".repeat(levels);
    let deep = format!("a: &a {}\nb: &b {}\n", nested(100, "1"), nested(100, "*a"));
    assert_eq!(depth(&yaml(deep.as_bytes()).unwrap().value), 201);
    let deeper = format!("{deep}c: {}\n", nested(100, "*b"));
    assert!(yaml(deeper.as_bytes()).unwrap_err().0.contains("exceeded max depth"));
}

#[test]
fn anchors_and_aliases_copy_a_bounded_amount() {
    let long = "x".repeat(100_000);
    let few = format!("a: &a {long}\nb: [*a, *a, *a]\n");
    assert_eq!(yaml(few.as_bytes()).unwrap().value["b"][2], long);
    let many = format!("a: &a {long}\nb: [{}]\n", "*a, ".repeat(100));
    assert!(yaml(many.as_bytes()).unwrap_err().0.contains("excessive aliasing"));
    let open: String = (0..100).map(|level| format!("[&a{level} ")).collect();
    let nested = format!("{open}[{}]{}", "1, ".repeat(1000), "]".repeat(100));
    assert!(yaml(nested.as_bytes()).unwrap_err().0.contains("excessive aliasing"));
}

#[test]
fn only_the_first_duplicates_are_reported() {
    let body = format!("{{{}\"b\": 2}}", "\"a\": 1,".repeat(1000));
    let decoded = json(body.as_bytes()).unwrap();
    assert_eq!(decoded.value, json!({"a": 1, "b": 2}));
    assert_eq!(decoded.duplicates, vec!["duplicate field \"a\""; 100]);
}

#[test]
fn yaml_scalars_follow_version_1_1() {
    check_yaml("name: y", json!({"name": true}));
    check_yaml("name: 'y'", json!({"name": "y"}));
    check_yaml("a: off\nb: ~\nc: ''", json!({"a": false, "b": null, "c": ""}));
    check_yaml("a: 0x1F\nb: 017\nc: 1_000\nd: -5", json!({"a": 31, "b": 15, "c": 1000, "d": -5}));
    check_yaml(
        "a: 1.5\nb: 1e3\nc: 1.2.3\nd: 08:00",
        json!({"a": 1.5, "b": 1000.0, "c": "1.2.3", "d": "08:00"}),
    );
    check_yaml("1: x\ntrue: y2", json!({"1": "x", "true": "y2"}));
    check_yaml("a: 2026-11-15T00:00:00Z", json!({"a": "2026-11-15T00:00:00Z"}));
    check_yaml("a: |\n  x\n  y\n", json!({"a": "x\ny\n"}));
    check_yaml("a: !!str 5", json!({"a": "5"}));
}

#[test]
fn yaml_anchors_and_merges_are_expanded() {
    let text = "base: &b {x: 1, y2: 2}\nother:\n  <<: *b\n  x: 3\ncopy: *b\n";
    let expected =
        json!({"base": {"x": 1, "y2": 2}, "other": {"x": 3, "y2": 2}, "copy": {"x": 1, "y2": 2}});
    check_yaml(text, expected);
}

#[test]
fn yaml_bombs_are_refused() {
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..9 {
        let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
        text.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
    }
    assert!(yaml(text.as_bytes()).unwrap_err().0.contains("excessive aliasing"));
}

#[test]
fn yaml_duplicates_name_their_line() {
    let decoded = yaml(b"data:\n  a: b\n  a: c\n").unwrap();
    assert_eq!(decoded.value, json!({"data": {"a": "c"}}));
    assert_eq!(decoded.duplicates, ["line 3: key \"a\" already set in map"]);
}

/// Recorded from kube-apiserver 1.33.13: bodies with unusual scalars, and the results.
#[test]
fn yaml_is_read_as_the_recorded_server_read_it() {
    for line in include_str!("../../../tests/data/yaml-1.33.jsonl").lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let body = line["yaml"].as_str().unwrap();
        match yaml(body.as_bytes()) {
            Ok(mut decoded) => {
                assert_eq!(line["status"], 201, "{body}");
                crate::schema::settle_numbers(&mut decoded.value);
                if decoded.duplicates.is_empty() {
                    let ours = decoded.value["spec"]["v"].clone();
                    let is_same = ours == line["value"] || ours.as_f64() == line["value"].as_f64();
                    assert!(is_same, "{body} {ours} {}", line["value"]);
                }
                let warning = |text: &String| format!("299 - {}", Value::from(text.as_str()));
                let ours: Vec<String> = decoded.duplicates.iter().map(warning).collect();
                assert_eq!(
                    json!(ours),
                    if ours.is_empty() { json!([]) } else { line["warnings"].clone() }
                );
            }
            Err(error) => assert_eq!(line["status"], 400, "{body} {error}"),
        }
    }
}

proptest! {
    #[test]
    fn no_bytes_make_decoders_panic(body in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = json(&body);
        let _ = yaml(&body);
    }

    #[test]
    fn no_text_makes_the_yaml_decoder_panic(body in "[-a-z:&*<>{}\\[\\]|'\" \\n#!0-9.]{0,80}") {
        let _ = yaml(body.as_bytes());
    }
}
