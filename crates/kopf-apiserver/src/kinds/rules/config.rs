//! Rules of ConfigMaps, Secrets and Events.

use serde_json::Value;

use super::Problems;
use crate::kinds::fields::text_at;

/// How many bytes a ConfigMap or Secret may hold.
const DATA_BYTES_MAX: usize = 1024 * 1024;
const KEY_LENGTH_MAX: usize = 253;

pub(super) fn check(resource: &str, object: &Value, problems: &mut Problems) {
    let mut total = 0;
    for field in ["data", "binaryData"] {
        for (key, value) in object[field].as_object().into_iter().flatten() {
            for problem in key_problems(key) {
                problems.invalid(&format!("{field}[{key}]"), &key.as_str().into(), &problem);
            }
            if field == "data" && object["binaryData"].get(key).is_some() {
                problems.invalid(
                    &format!("{field}[{key}]"),
                    &key.as_str().into(),
                    "duplicate of key present in binaryData",
                );
            }
            let length = value.as_str().unwrap_or_default().len();
            let is_encoded = resource == "secrets" || field == "binaryData";
            total += if is_encoded { length / 4 * 3 } else { length };
        }
    }
    if total > DATA_BYTES_MAX {
        let path = if resource == "secrets" { "data" } else { "" };
        problems.found.push(crate::FieldError::too_long(path, DATA_BYTES_MAX));
    }
    if resource == "secrets" {
        secret(object, problems);
    }
}

/// What is wrong with a key of a ConfigMap or Secret.
pub(super) fn key_problems(key: &str) -> Vec<String> {
    let mut found = Vec::new();
    if key.len() > KEY_LENGTH_MAX {
        found.push(format!("must be no more than {KEY_LENGTH_MAX} characters"));
    }
    let is_allowed =
        |character: char| character.is_ascii_alphanumeric() || matches!(character, '-' | '_' | '.');
    if key.is_empty() || !key.chars().all(is_allowed) {
        found.push(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. \
             'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is \
             '[-._a-zA-Z0-9]+')"
                .to_owned(),
        );
    }
    match key {
        "." => found.push("must not be '.'".to_owned()),
        ".." => found.push("must not be '..'".to_owned()),
        _ if key.starts_with("..") => found.push("must not start with '..'".to_owned()),
        _ => {}
    }
    found
}

fn secret(object: &Value, problems: &mut Problems) {
    let needed: &[&str] = match object["type"].as_str().unwrap_or_default() {
        "kubernetes.io/tls" => &["tls.crt", "tls.key"],
        "kubernetes.io/dockerconfigjson" => &[".dockerconfigjson"],
        "kubernetes.io/dockercfg" => &[".dockercfg"],
        "kubernetes.io/ssh-auth" => &["ssh-privatekey"],
        "kubernetes.io/service-account-token" => {
            let annotation = "/metadata/annotations/kubernetes.io~1service-account.name";
            if text_at(object, annotation).is_empty() {
                problems.required("metadata.annotations[kubernetes.io/service-account.name]", "");
            }
            &[]
        }
        "kubernetes.io/basic-auth" => {
            let has = |key: &str| object["data"].get(key).is_some();
            if !has("username") && !has("password") {
                problems.required("data[username]", "");
                problems.required("data[password]", "");
            }
            &[]
        }
        _ => &[],
    };
    for key in needed {
        let Some(value) = object["data"].get(key).and_then(Value::as_str) else {
            problems.required(&format!("data[{key}]"), "");
            continue;
        };
        if key.starts_with(".docker")
            && let Some(problem) = json_problem(value)
        {
            let redacted = Value::from("<secret contents redacted>");
            problems.invalid(&format!("data[{key}]"), &redacted, &problem);
        }
    }
}

/// Why the encoded bytes are no JSON, in the words of Go's decoder where they are common.
fn json_problem(encoded: &str) -> Option<String> {
    use base64::Engine as _;
    let bytes = base64::engine::general_purpose::STANDARD.decode(encoded).ok()?;
    let problem = crate::schema::decode::json(&bytes).err()?;
    let text = String::from_utf8_lossy(&bytes);
    let text = text.trim();
    for literal in ["null", "true", "false"] {
        let mut pairs = text.chars().zip(literal.chars());
        if pairs.next().is_none_or(|(found, wanted)| found != wanted) {
            continue;
        }
        if let Some((found, wanted)) = pairs.find(|(found, wanted)| found != wanted) {
            return Some(format!(
                "invalid character '{found}' in literal {literal} (expecting '{wanted}')"
            ));
        }
    }
    Some(problem.to_string())
}

pub(super) fn update(resource: &str, object: &Value, old: &Value, problems: &mut Problems) {
    if resource == "secrets" && object["type"] != old["type"] {
        problems.immutable("type", &object["type"], &old["type"]);
    }
    if old["immutable"] != true {
        return;
    }
    let detail = "field is immutable when `immutable` is set";
    if object["immutable"] != true {
        problems.forbidden("immutable", detail);
    }
    for field in ["data", "binaryData"] {
        let is_empty = |value: &Value| value.as_object().is_none_or(serde_json::Map::is_empty);
        let (new, old) = (&object[field], &old[field]);
        if new != old && !(is_empty(new) && is_empty(old)) {
            problems.forbidden(field, detail);
        }
    }
}

/// Lengths that events of the newer kind may not exceed.
const EVENT_TEXT_MAX: usize = 128;
const EVENT_NOTE_MAX: usize = 1024;

/// Rules of a new event; the group of the request decides how strict they are.
pub(super) fn event(object: &Value, group: &str, problems: &mut Problems) {
    let is_core = group.is_empty();
    let namespace = text_at(object, "/metadata/namespace");
    let about = ["/involvedObject/namespace", "/regarding/namespace"]
        .iter()
        .map(|pointer| text_at(object, pointer))
        .find(|text| !text.is_empty())
        .unwrap_or_default();
    let has_time = object["eventTime"].is_string();
    // Events about cluster-scoped objects live in the default namespace.
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
        event_report(object, is_core, problems);
    }
    if !is_core {
        event_details(object, problems);
    }
}

fn event_report(object: &Value, is_core: bool, problems: &mut Problems) {
    let controller = if is_core { "reportingComponent" } else { "reportingController" };
    let name = text_at(object, &format!("/{controller}"));
    if name.is_empty() {
        problems.required(controller, "");
    }
    if let Err(problem) = crate::meta::names::check_qualified_name(name) {
        problems.invalid(controller, &name.into(), &problem);
    }
    for field in ["reportingInstance", "action", "reason"] {
        let value = text_at(object, &format!("/{field}"));
        if value.is_empty() {
            problems.required(field, "");
        }
        if value.len() > EVENT_TEXT_MAX {
            let detail = format!("can have at most {EVENT_TEXT_MAX} characters");
            problems.invalid(field, &"".into(), &detail);
        }
    }
    let note = if is_core { "/message" } else { "/note" };
    if text_at(object, note).len() > EVENT_NOTE_MAX {
        let detail = format!("can have at most {EVENT_NOTE_MAX} characters");
        problems.invalid("message", &"".into(), &detail);
    }
}

/// What `events.k8s.io` insists on, while the core group takes anything.
fn event_details(object: &Value, problems: &mut Problems) {
    if object["series"].is_object() {
        if object["series"]["count"].as_i64().unwrap_or_default() < 2 {
            problems.invalid("series.count", &"".into(), "should be at least 2");
        }
        if !object["series"]["lastObservedTime"].is_string() {
            problems.required("series.lastObservedTime", "");
        }
    }
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
        let value = &object[field];
        let is_set = match value {
            Value::Null => false,
            Value::Number(number) => number.as_i64() != Some(0),
            Value::Object(source) => source.values().any(|part| part.as_str() != Some("")),
            _ => true,
        };
        if is_set {
            problems.invalid(path, &"".into(), "needs to be unset");
        }
    }
}
