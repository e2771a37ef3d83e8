//! Reads JSON objects by path and compares them, without failing on absent or mistyped fields.
//!
//! Provides the accessors that reducers share: text, number, list, owner, condition. Knows the
//! Kubernetes metadata conventions, but no kinds. Absent means empty, zero or `None`, as in Go.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// Follows `path` through nested maps.
pub fn at<'a>(object: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(object, |value, key| value.get(key))
}

/// The text at `path`, or an empty one.
pub fn text<'a>(object: &'a Value, path: &[&str]) -> &'a str {
    at(object, path).and_then(Value::as_str).unwrap_or_default()
}

/// The whole number at `path`.
pub fn number(object: &Value, path: &[&str]) -> Option<i64> {
    at(object, path).and_then(Value::as_i64)
}

/// The boolean at `path`; absent is false.
pub fn flag(object: &Value, path: &[&str]) -> bool {
    at(object, path).and_then(Value::as_bool).unwrap_or(false)
}

/// The list at `path`; absent is empty.
pub fn items<'a>(object: &'a Value, path: &[&str]) -> &'a [Value] {
    at(object, path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The texts in the list at `path`.
pub fn texts<'a>(object: &'a Value, path: &[&str]) -> Vec<&'a str> {
    items(object, path).iter().filter_map(Value::as_str).collect()
}

/// The object's name.
pub fn name(object: &Value) -> &str {
    text(object, &["metadata", "name"])
}

/// The object's namespace, empty when it has none.
pub fn namespace(object: &Value) -> &str {
    text(object, &["metadata", "namespace"])
}

/// The object's unique id.
pub fn uid(object: &Value) -> &str {
    text(object, &["metadata", "uid"])
}

/// The object's finalizers.
pub fn finalizers(object: &Value) -> Vec<&str> {
    texts(object, &["metadata", "finalizers"])
}

/// Whether the object is being deleted.
pub fn is_deleting(object: &Value) -> bool {
    !text(object, &["metadata", "deletionTimestamp"]).is_empty()
}

/// The value of an annotation.
pub fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    at(object, &["metadata", "annotations", key]).and_then(Value::as_str)
}

/// The value of a label.
pub fn label<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    at(object, &["metadata", "labels", key]).and_then(Value::as_str)
}

/// The owner reference that is marked as the controller.
pub fn controller_of(object: &Value) -> Option<&Value> {
    items(object, &["metadata", "ownerReferences"])
        .iter()
        .find(|owner| flag(owner, &["controller"]))
}

/// Whether `owner` is the controller of `object`.
pub fn is_controlled_by(object: &Value, owner: &Value) -> bool {
    controller_of(object).is_some_and(|reference| text(reference, &["uid"]) == uid(owner))
}

/// The controller owner reference for an object that a controller creates for `owner`.
pub fn controller_reference(owner: &Value, api_version: &str, kind: &str) -> Value {
    json!({
        "apiVersion": api_version,
        "kind": kind,
        "name": name(owner),
        "uid": uid(owner),
        "controller": true,
        "blockOwnerDeletion": true,
    })
}

/// The status condition of a type.
pub fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    items(object, &["status", "conditions"])
        .iter()
        .find(|condition| text(condition, &["type"]) == kind)
}

/// Whether the status condition of a type is true.
pub fn is_condition_true(object: &Value, kind: &str) -> bool {
    condition(object, kind).is_some_and(|condition| text(condition, &["status"]) == "True")
}

/// Formats a time as the API does: UTC, whole seconds.
pub fn stamp(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The time at `path`.
pub fn time(object: &Value, path: &[&str]) -> Option<Timestamp> {
    text(object, path).parse().ok()
}

/// `time` plus whole seconds; saturates at the end of time.
pub fn after_seconds(time: Timestamp, seconds: i64) -> Timestamp {
    time.checked_add(jiff::SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX)
}

/// Resolves a count or a percentage (`"25%"`) of `total`; percentages round up or down.
pub fn scaled(value: Option<&Value>, total: i64, default: &str, round_up: bool) -> i64 {
    let default = Value::from(default);
    let value = value.filter(|value| !value.is_null()).unwrap_or(&default);
    if let Some(count) = value.as_i64() {
        return count;
    }
    let text = value.as_str().unwrap_or_default();
    match text.strip_suffix('%').and_then(|percent| percent.parse::<i64>().ok()) {
        Some(percent) if round_up => (percent * total + 99).div_euclid(100),
        Some(percent) => (percent * total).div_euclid(100),
        None => text.parse().unwrap_or(0),
    }
}

/// Sets `path` inside nested maps, creating the maps on the way.
pub fn set(object: &mut Value, path: &[&str], value: Value) {
    let Some((last, parents)) = path.split_last() else { return };
    let mut target = object;
    for key in parents {
        if !target.is_object() {
            *target = Value::Object(Map::new());
        }
        let map = target.as_object_mut().expect("made a map just above");
        target = map.entry(*key).or_insert_with(|| Value::Object(Map::new()));
    }
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    target.as_object_mut().expect("made a map just above").insert((*last).to_owned(), value);
}

/// Removes the value at `path`, if any.
pub fn unset(object: &mut Value, path: &[&str]) {
    let Some((last, parents)) = path.split_last() else { return };
    let parent = parents.iter().try_fold(object, |value, key| value.get_mut(key));
    if let Some(map) = parent.and_then(Value::as_object_mut) {
        map.shift_remove(*last);
    }
}
