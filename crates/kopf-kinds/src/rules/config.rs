//! Rules of ConfigMaps and Secrets.

use serde_json::Value;

use super::Problems;
use crate::fields::text_at;

/// The maximum size of the data of a ConfigMap or Secret in bytes.
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

/// The problems with a key of a ConfigMap or Secret.
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
        if value.is_empty() && *key == "ssh-privatekey" {
            problems.required(&format!("data[{key}]"), "");
        }
        if key.starts_with(".docker")
            && let Some(problem) = json_problem(value)
        {
            let redacted = Value::from("<secret contents redacted>");
            problems.invalid(&format!("data[{key}]"), &redacted, &problem);
        }
    }
}

/// Why the encoded bytes are not JSON, in the words of Go's decoder for common errors.
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
