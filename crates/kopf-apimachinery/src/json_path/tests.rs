//! JSON paths: the supported subset and rejected paths.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::JsonPath;

fn check(path: &str, expected: Value) {
    let value = json!({
        "spec": {"replicas": 3, "a.b": "dotted", "list": [{"n": "x", "v": 1}, {"n": "y", "v": 2}]},
        "status": {"conditions": [{"type": "Ready", "status": "True"},
                                  {"type": "Done", "status": "False"}]},
    });
    let parsed = JsonPath::parse(path).unwrap_or_else(|error| panic!("{error}"));
    let found: Vec<Value> = parsed.find(&value).into_iter().cloned().collect();
    assert_eq!(Value::Array(found), expected, "{path}");
}

#[test]
fn paths_lead_to_values() {
    check(".spec.replicas", json!([3]));
    check("{.spec.replicas}", json!([3]));
    check("$.spec['replicas']", json!([3]));
    check(".spec.a\\.b", json!(["dotted"]));
    check(".spec.list[0].n", json!(["x"]));
    check(".spec.list[-1].n", json!(["y"]));
    check(".spec.list[*].v", json!([1, 2]));
    check(".spec.list[0:1].v", json!([1]));
    check("..type", json!(["Ready", "Done"]));
    check(".status.conditions[?(@.type==\"Ready\")].status", json!(["True"]));
    check(".status.conditions[?(@.type=='Done')].status", json!(["False"]));
    check(".spec.list[?(@.v>1)].n", json!(["y"]));
    check(".spec.list[?(@.n!='x')].v", json!([2]));
    check(".nothing.here", json!([]));
    check(".spec.list[7]", json!([]));
}

#[test]
fn malformed_paths_are_refused() {
    for path in [".spec[", ".spec[a]", "..", ".spec[?(x==1)]", ".a..", ".a[1:b]"] {
        assert!(JsonPath::parse(path).is_err(), "{path}");
    }
}

proptest! {
    #[test]
    fn no_path_panics(path in "[\\PC.\\[\\]@?()'\"=:*0-9a-c-]{0,24}") {
        if let Ok(path) = JsonPath::parse(&path) {
            path.find(&json!({"a": [1, {"b": "c"}], "b": {"a": null}}));
        }
    }
}
