//! Reads fields for cells, and formats values that several kinds share.

use serde_json::{Map, Value, json};

use super::{Row, age};

impl<'a> Row<'a> {
    /// The value at a pointer; `null` when absent.
    pub(super) fn value(&self, pointer: &str) -> &'a Value {
        if pointer.contains('~') {
            return self.object.pointer(pointer).unwrap_or(&Value::Null);
        }
        // Without escapes, steps can be looked up directly; there may be thousands of rows.
        let step = |value: &'a Value, step: &str| match value {
            Value::Object(fields) => fields.get(step),
            Value::Array(items) => items.get(step.parse::<usize>().ok()?),
            _ => None,
        };
        pointer.split('/').skip(1).try_fold(self.object, step).unwrap_or(&Value::Null)
    }

    /// The text at a pointer; empty when absent.
    pub(super) fn text(&self, pointer: &str) -> &'a str {
        self.value(pointer).as_str().unwrap_or_default()
    }

    /// The text at a pointer, or a substitute when it is absent or empty.
    pub(super) fn text_or(&self, pointer: &str, substitute: &str) -> Value {
        match self.text(pointer) {
            "" => json!(substitute),
            text => json!(text),
        }
    }

    /// The integer at a pointer; 0 when absent.
    pub(super) fn count(&self, pointer: &str) -> i64 {
        self.value(pointer).as_i64().unwrap_or_default()
    }

    /// The list at a pointer; empty when absent.
    pub(super) fn list(&self, pointer: &str) -> &'a [Value] {
        list(self.value(pointer))
    }

    /// The number of entries of a list or map.
    pub(super) fn size(&self, pointer: &str) -> usize {
        match self.value(pointer) {
            Value::Array(items) => items.len(),
            Value::Object(fields) => fields.len(),
            _ => 0,
        }
    }

    /// The boolean at a pointer, or a substitute.
    pub(super) fn flag_or(&self, pointer: &str, substitute: bool) -> bool {
        self.value(pointer).as_bool().unwrap_or(substitute)
    }

    pub(super) fn name(&self) -> Value {
        json!(self.text("/metadata/name"))
    }

    pub(super) fn age(&self) -> Value {
        json!(self.since("/metadata/creationTimestamp"))
    }

    pub(super) fn since(&self, pointer: &str) -> String {
        age::since(self.text(pointer), self.now)
    }

    pub(super) fn is_deleting(&self) -> bool {
        !self.value("/metadata/deletionTimestamp").is_null()
    }

    /// Names and images of the containers below a pod spec.
    pub(super) fn containers(&self, pod_spec: &str) -> [Value; 2] {
        let containers = self.list(&format!("{pod_spec}/containers"));
        let column = |field: &str| {
            let texts = containers
                .iter()
                .map(|container| container.get(field).and_then(Value::as_str).unwrap_or_default());
            json!(texts.collect::<Vec<_>>().join(","))
        };
        [column("name"), column("image")]
    }

    /// The status of the first condition with this type.
    pub(super) fn condition(&self, kind: &str) -> Option<&'a str> {
        let conditions = self.list("/status/conditions").iter();
        let condition = conditions.into_iter().find(|condition| condition["type"] == kind)?;
        condition["status"].as_str()
    }
}

pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// `a,b,c + 2 more...`; `<unset>` without items.
pub(super) fn at_most(items: &[String], max: usize, none: &str) -> String {
    if items.is_empty() {
        return none.to_owned();
    }
    let shown = items[..items.len().min(max)].join(",");
    if items.len() > max { format!("{shown} + {} more...", items.len() - max) } else { shown }
}

/// `a=b,c=d` in key order; `<none>` without labels.
pub(super) fn labels(labels: &Value) -> String {
    let mut pairs: Vec<(&str, &str)> = labels
        .as_object()
        .into_iter()
        .flat_map(Map::iter)
        .map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()))
        .collect();
    if pairs.is_empty() {
        return "<none>".into();
    }
    pairs.sort_unstable();
    let pairs: Vec<String> = pairs.iter().map(|(key, value)| format!("{key}={value}")).collect();
    pairs.join(",")
}

/// A label selector in its text form, sorted by key; `<none>` when it selects everything.
pub(super) fn selector(selector: &Value) -> String {
    match selector_text(selector).as_str() {
        "" => "<none>".into(),
        text => text.to_owned(),
    }
}

/// A label selector in its text form; empty when it selects everything.
pub(crate) fn selector_text(selector: &Value) -> String {
    let mut terms: Vec<(String, String)> = Vec::new();
    for (key, value) in selector["matchLabels"].as_object().into_iter().flatten() {
        terms.push((key.clone(), format!("{key}={}", value.as_str().unwrap_or_default())));
    }
    for expression in list(&selector["matchExpressions"]) {
        let key = expression["key"].as_str().unwrap_or_default();
        let mut values: Vec<&str> =
            list(&expression["values"]).iter().filter_map(Value::as_str).collect();
        values.sort_unstable();
        let values = values.join(",");
        let text = match expression["operator"].as_str() {
            Some("In") => format!("{key} in ({values})"),
            Some("NotIn") => format!("{key} notin ({values})"),
            Some("Exists") => key.to_owned(),
            Some("DoesNotExist") => format!("!{key}"),
            _ => continue,
        };
        terms.push((key.to_owned(), text));
    }
    terms.sort_by(|left, right| left.0.cmp(&right.0));
    terms.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(",")
}

/// An int-or-string as text.
pub(super) fn int_or_string(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
