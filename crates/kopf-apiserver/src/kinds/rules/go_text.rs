//! Values as Go's `%#v` prints them in the texts of validation errors.

use serde_json::Value;

use crate::kinds::fields::{list, text};

/// `map[string]string{"a":"b"}`.
pub(super) fn string_map(value: &Value) -> String {
    let Some(fields) = value.as_object() else { return "map[string]string(nil)".into() };
    let mut pairs: Vec<String> = fields
        .iter()
        .map(|(key, value)| format!("{key:?}:{:?}", value.as_str().unwrap_or_default()))
        .collect();
    pairs.sort();
    format!("map[string]string{{{}}}", pairs.join(", "))
}

/// `v1.LabelSelector{MatchLabels:..., MatchExpressions:...}`.
pub(super) fn label_selector(selector: &Value) -> String {
    if selector.is_null() {
        return "\"null\"".into();
    }
    let expressions: Vec<String> = list(selector, "matchExpressions")
        .iter()
        .map(|expression| {
            format!(
                "v1.LabelSelectorRequirement{{Key:{:?}, Operator:{:?}, Values:{}}}",
                text(expression, "key"),
                text(expression, "operator"),
                string_list(&expression["values"]),
            )
        })
        .collect();
    let expressions = if expressions.is_empty() {
        "[]v1.LabelSelectorRequirement(nil)".to_owned()
    } else {
        format!("[]v1.LabelSelectorRequirement{{{}}}", expressions.join(", "))
    };
    let labels = string_map(&selector["matchLabels"]);
    format!("v1.LabelSelector{{MatchLabels:{labels}, MatchExpressions:{expressions}}}")
}

/// `[]string{"a", "b"}`.
pub(super) fn string_list(value: &Value) -> String {
    let Some(items) = value.as_array() else { return "[]string(nil)".into() };
    let items: Vec<String> =
        items.iter().map(|item| format!("{:?}", item.as_str().unwrap_or_default())).collect();
    format!("[]string{{{}}}", items.join(", "))
}

/// `intstr.IntOrString{Type:0, IntVal:1, StrVal:""}`.
pub(super) fn int_or_string(value: &Value) -> String {
    match value {
        Value::String(text) => format!("intstr.IntOrString{{Type:1, IntVal:0, StrVal:{text:?}}}"),
        other => {
            let number = other.as_i64().unwrap_or_default();
            format!("intstr.IntOrString{{Type:0, IntVal:{number}, StrVal:\"\"}}")
        }
    }
}

/// A text in quotes.
pub(super) fn quoted(value: &Value) -> String {
    format!("{:?}", value.as_str().unwrap_or_default())
}
