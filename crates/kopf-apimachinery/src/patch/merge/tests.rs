//! Merge patches: the examples of the RFC.

use serde_json::{Value, json};

use super::apply;

fn check(target: Value, patch: Value, expected: Value) {
    let mut result = target.clone();
    apply(&mut result, &patch);
    assert_eq!(result, expected, "{target} patched by {patch}");
}

#[test]
fn the_examples_of_rfc_7396_hold() {
    check(json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"}));
    check(json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"}));
    check(json!({"a": "b"}), json!({"a": null}), json!({}));
    check(json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"}));
    check(json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"}));
    check(json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]}));
    check(json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}}));
    check(json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]}));
    check(json!(["a", "b"]), json!(["c", "d"]), json!(["c", "d"]));
    check(json!({"a": "b"}), json!(["c"]), json!(["c"]));
    check(json!({"a": "foo"}), Value::Null, Value::Null);
    check(json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1}));
    check(json!([1, 2]), json!({"a": "b", "c": null}), json!({"a": "b"}));
    check(json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}}));
}

#[test]
fn many_deletions_take_no_longer_than_many_additions() {
    let fields = |value: Value| -> Value {
        (0..20_000).map(|index| (format!("k{index}"), value.clone())).collect()
    };
    let started = std::time::Instant::now();
    let mut expected = json!({"kept": 1});
    let mut target = fields(json!(1));
    target["kept"] = json!(1);
    apply(&mut target, &fields(Value::Null));
    apply(&mut expected, &fields(Value::Null));
    assert_eq!(target, expected);
    // One by one, the removals take half a minute.
    assert!(started.elapsed() < std::time::Duration::from_secs(8), "{:?}", started.elapsed());
}
