//! Numbers in all representations.

use serde_json::{Value, json};

use super::equal;

#[track_caller]
fn check(one: &Value, other: &Value, expected: bool) {
    assert_eq!(equal(one, other), expected, "{one} {other}");
    assert_eq!(equal(other, one), expected, "{other} {one}");
}

#[test]
fn numbers_are_compared_by_value() {
    check(&json!(1), &json!(1.0), true);
    check(&json!(0), &json!(-0.0), true);
    check(&json!(-3), &json!(-3.0), true);
    check(&json!(1), &json!(1.5), false);
    check(&json!(u64::MAX), &json!(1e30), false);
    // Equal as floats.
    check(&json!(9_007_199_254_740_993_u64), &json!(9_007_199_254_740_992.0), false);
    check(&json!(9_007_199_254_740_992_u64), &json!(9_007_199_254_740_992.0), true);
}

#[test]
fn other_values_are_compared_exactly() {
    check(&json!({"a": [1, {"b": 2.0}]}), &json!({"a": [1.0, {"b": 2}]}), true);
    check(&json!({"a": 1, "b": 2}), &json!({"b": 2, "a": 1}), true);
    check(&json!({"a": 1}), &json!({"a": 1, "b": null}), false);
    check(&json!([1]), &json!([1, 1]), false);
    check(&json!(true), &json!(1), false);
    check(&json!("1"), &json!(1), false);
}
