//! Matches objects against the `LabelSelector` values of the API (`matchLabels` and
//! `matchExpressions`).
//!
//! Pure. An empty selector matches everything. The caller chooses what an absent selector matches,
//! since kinds differ: see [`matches()`] and [`matches_or_everything`].

use serde_json::Value;

use crate::fields::{at, text, texts};

/// Whether `labels` (a map value or null) satisfy a selector; a null selector matches nothing.
pub fn matches(selector: Option<&Value>, labels: Option<&Value>) -> bool {
    selector.is_some_and(|selector| !selector.is_null() && satisfies(selector, labels))
}

/// Like [`matches()`], but a null selector matches everything, as webhook selectors do.
pub fn matches_or_everything(selector: Option<&Value>, labels: Option<&Value>) -> bool {
    selector.is_none_or(|selector| selector.is_null() || satisfies(selector, labels))
}

/// Whether an object's labels satisfy a selector.
pub fn selects(selector: Option<&Value>, object: &Value) -> bool {
    matches(selector, at(object, &["metadata", "labels"]))
}

/// Whether an object's labels contain every pair of a plain map, as Service selectors do; an empty
/// map selects nothing.
pub fn contains_pairs(pairs: Option<&Value>, object: &Value) -> bool {
    let Some(pairs) = pairs.and_then(Value::as_object).filter(|pairs| !pairs.is_empty()) else {
        return false;
    };
    pairs.iter().all(|(key, value)| at(object, &["metadata", "labels", key]) == Some(value))
}

fn satisfies(selector: &Value, labels: Option<&Value>) -> bool {
    let value_of = |key: &str| labels.and_then(|labels| labels.get(key)).and_then(Value::as_str);
    let pairs_hold = at(selector, &["matchLabels"])
        .and_then(Value::as_object)
        .is_none_or(|pairs| pairs.iter().all(|(key, value)| value_of(key) == value.as_str()));
    pairs_hold
        && crate::fields::items(selector, &["matchExpressions"]).iter().all(|expression| {
            let actual = value_of(text(expression, &["key"]));
            let values = texts(expression, &["values"]);
            match text(expression, &["operator"]) {
                "In" => actual.is_some_and(|actual| values.contains(&actual)),
                "NotIn" => actual.is_none_or(|actual| !values.contains(&actual)),
                "Exists" => actual.is_some(),
                "DoesNotExist" => actual.is_none(),
                _ => false,
            }
        })
}
