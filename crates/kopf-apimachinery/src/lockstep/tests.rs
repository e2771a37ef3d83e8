use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn map(value: &Value) -> &Map<String, Value> {
    value.as_object().expect("an object")
}

fn tree() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![Just(json!(null)), Just(json!(1)), Just(json!(1.0)), Just(json!("a"))];
    leaf.prop_recursive(3, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec(("[a-f]", inner), 0..5)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

#[test]
fn fields_are_found_in_any_order() {
    let fields = json!({"a": 1, "b": 2, "c": 3, "d": 4, "e": 5});
    for order in ["abcde", "edcba", "ae", "eeabbx"] {
        let mut lockstep = Lockstep::new(map(&fields));
        for name in order.chars().map(|name| name.to_string()) {
            assert_eq!(lockstep.get(&name), fields.get(&name), "{name} of {order}");
        }
    }
}

#[test]
fn fields_are_found_in_small_and_large_objects() {
    for size in [0, 1, 16, 17, 40] {
        let fields: Map<String, Value> =
            (0..size).map(|number| (number.to_string(), json!(number))).collect();
        for number in 0..=size {
            let name = number.to_string();
            assert_eq!(find(&fields, &name), fields.get(&name), "{name} of {size}");
        }
    }
}

#[test]
fn ignored_fields_do_not_count() {
    let (left, right) = (json!({"a": 1, "time": 1}), json!({"time": 2, "a": 1}));
    assert!(equal_fields(map(&left), map(&right), &["time"]));
    assert!(equal_fields(map(&left), map(&json!({"a": 1})), &["time"]));
    assert!(!equal_fields(map(&left), map(&json!({"a": 2})), &["time"]));
    assert!(!equal_fields(map(&left), map(&json!({"a": 1, "b": 1})), &["time"]));
    assert!(!equal_fields(map(&left), map(&right), &[]));
}

proptest! {
    #[test]
    fn equality_is_that_of_trees(left in tree(), right in tree()) {
        prop_assert_eq!(equal(&left, &right), left == right);
        prop_assert!(equal(&left, &left.clone()));
    }
}

#[test]
fn fields_can_be_changed_and_removed_in_small_and_large_objects() {
    for size in [3, 40] {
        let mut fields: Map<String, Value> =
            (0..size).map(|number| (number.to_string(), json!(number))).collect();
        *find_mut(&mut fields, "1").expect("it is there") = json!("new");
        assert_eq!(find(&fields, "1"), Some(&json!("new")));
        assert_eq!(remove_rare(&mut fields, "x"), None);
        assert_eq!(remove_rare(&mut fields, "0"), Some(json!(0)));
        assert_eq!(fields.keys().next().map(String::as_str), Some("1"), "the order stays");
    }
}
