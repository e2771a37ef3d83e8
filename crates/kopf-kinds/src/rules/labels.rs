//! Label selectors: whether they are well-formed, and whether they match.

use serde_json::Value;

use super::Problems;
use crate::fields::{list, text};

/// Whether a label selector selects these labels; malformed expressions select nothing.
pub(super) fn selects(selector: &Value, labels: &Value) -> bool {
    let label = |key: &str| labels.get(key).and_then(Value::as_str);
    let by_labels = selector["matchLabels"]
        .as_object()
        .into_iter()
        .flatten()
        .all(|(key, value)| label(key) == value.as_str());
    let by_expressions = list(selector, "matchExpressions").iter().all(|expression| {
        let key = text(expression, "key");
        let has = |value: &str| list(expression, "values").iter().any(|each| each == value);
        match text(expression, "operator") {
            "In" => label(key).is_some_and(has),
            "NotIn" => !label(key).is_some_and(has),
            "Exists" => label(key).is_some(),
            "DoesNotExist" => label(key).is_none(),
            _ => false,
        }
    });
    by_labels && by_expressions
}

/// Whether a selector has no requirements.
pub(super) fn is_empty(selector: &Value) -> bool {
    let no_labels = selector["matchLabels"].as_object().is_none_or(serde_json::Map::is_empty);
    no_labels && list(selector, "matchExpressions").is_empty()
}

/// Whether a selector is well-formed.
pub(super) fn is_valid(selector: &Value) -> bool {
    let mut problems = Problems::default();
    check(selector, "", &mut problems);
    problems.found.is_empty()
}

/// Rejects malformed labels and expressions.
pub(super) fn check(selector: &Value, path: &str, problems: &mut Problems) {
    let labels = format!("{path}.matchLabels");
    crate::meta::validate_labels(&selector["matchLabels"], &labels, &mut problems.found);
    for (index, expression) in list(selector, "matchExpressions").iter().enumerate() {
        let path = format!("{path}.matchExpressions[{index}]");
        let has_values = !list(expression, "values").is_empty();
        match text(expression, "operator") {
            "In" | "NotIn" if !has_values => problems.required(
                &format!("{path}.values"),
                "must be specified when `operator` is 'In' or 'NotIn'",
            ),
            "Exists" | "DoesNotExist" if has_values => problems.forbidden(
                &format!("{path}.values"),
                "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
            ),
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            _ => problems.invalid(
                &format!("{path}.operator"),
                &text(expression, "operator").into(),
                "not a valid selector operator",
            ),
        }
        let key = text(expression, "key");
        for problem in crate::names::qualified_name_problems(key) {
            problems.invalid(&format!("{path}.key"), &key.into(), &problem);
        }
        for (place, value) in list(expression, "values").iter().enumerate() {
            let text = value.as_str().unwrap_or_default();
            if let Err(problem) = crate::names::check_label_value(text) {
                problems.invalid(&format!("{path}.values[{place}]"), value, &problem);
            }
        }
    }
}
