//! Rules of Events. They are stricter for requests in the newer group.

use serde_json::Value;

use super::Problems;
use crate::fields::text_at;
use crate::go_structs;

/// The maximum lengths in events of the newer group.
const TEXT_LENGTH_MAX: usize = 128;
const NOTE_LENGTH_MAX: usize = 1024;

/// Rules of a new event.
pub(super) fn create(object: &Value, group: &str, problems: &mut Problems) {
    check_both(object, group, problems);
    if group.is_empty() {
        return;
    }
    check_series(object, problems);
    if !object["eventTime"].is_string() {
        problems.required("eventTime", "");
    }
    let kind = text_at(object, "/type");
    if !matches!(kind, "Normal" | "Warning") {
        problems.invalid("type", &"".into(), &format!("has invalid value: {kind}"));
    }
    for (field, path) in [
        ("deprecatedFirstTimestamp", "firstTimestamp"),
        ("deprecatedLastTimestamp", "lastTimestamp"),
        ("deprecatedCount", "count"),
        ("deprecatedSource", "source"),
    ] {
        if is_set(&object[field]) {
            problems.invalid(path, &"".into(), "needs to be unset");
        }
    }
}

/// Rules of an updated event: `events.k8s.io` allows only the series to change.
pub(super) fn update(object: &Value, old: &Value, group: &str, problems: &mut Problems) {
    check_both(object, group, problems);
    if group.is_empty() {
        return;
    }
    if object["series"] != old["series"] {
        check_series(object, problems);
    }
    for (field, path) in [
        ("regarding", "involvedObject"),
        ("reason", "reason"),
        ("note", "message"),
        ("deprecatedSource", "source"),
        ("deprecatedFirstTimestamp", "firstTimestamp"),
        ("deprecatedLastTimestamp", "lastTimestamp"),
        ("deprecatedCount", "count"),
        // Upstream checks it twice.
        ("reason", "reason"),
        ("type", "type"),
        ("eventTime", "eventTime"),
        ("action", "action"),
        ("related", "related"),
        ("reportingController", "reportingController"),
        ("reportingInstance", "reportingInstance"),
    ] {
        let (new, old) = (&object[field], &old[field]);
        if matches!(field, "regarding" | "related") && new.is_object() && new != old {
            let shown = go_structs::printed("core.ObjectReference", new);
            problems.invalid_text(path, &shown, "field is immutable");
        } else if is_set(new) || is_set(old) {
            problems.immutable(path, new, old);
        }
    }
}

/// Whether a field differs from its zero value.
fn is_set(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Number(number) => number.as_i64() != Some(0),
        Value::String(text) => !text.is_empty(),
        Value::Object(parts) => parts.values().any(|part| part.as_str() != Some("")),
        _ => true,
    }
}

fn check_series(object: &Value, problems: &mut Problems) {
    if !object["series"].is_object() {
        return;
    }
    if object["series"]["count"].as_i64().unwrap_or_default() < 2 {
        problems.invalid("series.count", &"".into(), "should be at least 2");
    }
    if !object["series"]["lastObservedTime"].is_string() {
        problems.required("series.lastObservedTime", "");
    }
}

/// The rules of both groups.
fn check_both(object: &Value, group: &str, problems: &mut Problems) {
    let namespace = text_at(object, "/metadata/namespace");
    let about = ["/involvedObject/namespace", "/regarding/namespace"]
        .iter()
        .map(|pointer| text_at(object, pointer))
        .find(|text| !text.is_empty())
        .unwrap_or_default();
    let has_time = object["eventTime"].is_string();
    // Events about cluster-scoped objects are in the default namespace.
    let matches = match (has_time, about) {
        (false, "") => matches!(namespace, "" | "default"),
        (false, about) => about == namespace,
        (true, "") => matches!(namespace, "default" | "kube-system"),
        (true, _) => true,
    };
    if !matches {
        let detail = "does not match event.namespace";
        problems.invalid("involvedObject.namespace", &about.into(), detail);
    }
    if has_time {
        check_report(object, group, problems);
    }
}

fn check_report(object: &Value, group: &str, problems: &mut Problems) {
    let is_core = group.is_empty();
    let controller = if is_core { "reportingComponent" } else { "reportingController" };
    let name = text_at(object, &format!("/{controller}"));
    if name.is_empty() {
        problems.required(controller, "");
    }
    for problem in crate::names::qualified_name_problems(name) {
        problems.invalid(controller, &name.into(), &problem);
    }
    for field in ["reportingInstance", "action", "reason"] {
        let value = text_at(object, &format!("/{field}"));
        if value.is_empty() {
            problems.required(field, "");
        }
        if value.len() > TEXT_LENGTH_MAX {
            let detail = format!("can have at most {TEXT_LENGTH_MAX} characters");
            problems.invalid(field, &"".into(), &detail);
        }
    }
    let note = if is_core { "/message" } else { "/note" };
    if text_at(object, note).len() > NOTE_LENGTH_MAX {
        let detail = format!("can have at most {NOTE_LENGTH_MAX} characters");
        problems.invalid("message", &"".into(), &detail);
    }
}
