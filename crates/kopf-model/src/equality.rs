//! Equality of values.
//!
//! Handlers return `1.0`, servers store it as `1`, and Python treats both as equal. If this counted
//! as a change, the value would be written again and again and never be found in a response.

use serde_json::{Number, Value};

/// Whether two values are equal, with numbers compared by value.
///
/// ```
/// use kopf_model::equality::equal;
/// use serde_json::json;
/// assert!(equal(&json!({"ratio": [1.0]}), &json!({"ratio": [1]})));
/// assert!(!equal(&json!(1.5), &json!(1)) && !equal(&json!("1"), &json!(1)));
/// ```
#[must_use]
pub fn equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one == other || are_same(one, other),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| equal(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let has = |(key, value): (&String, &Value)| {
                other.get(key).is_some_and(|known| equal(value, known))
            };
            one.len() == other.len() && one.iter().all(has)
        }
        (one, other) => one == other,
    }
}

/// Whether one is an integer and the other a float with exactly that value.
fn are_same(one: &Number, other: &Number) -> bool {
    match (integer(one), integer(other)) {
        (Some(one), None) => is_float_of(other, one),
        (None, Some(other)) => is_float_of(one, other),
        _ => false,
    }
}

fn integer(number: &Number) -> Option<i128> {
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
}

#[expect(clippy::cast_possible_truncation, reason = "whole floats beyond i128 equal no integer")]
fn is_float_of(float: &Number, integer: i128) -> bool {
    float.as_f64().is_some_and(|float| float.fract() == 0.0 && float as i128 == integer)
}

#[cfg(test)]
mod tests;
