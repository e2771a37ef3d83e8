//! Replaces values that differ between runs by stable ones.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde_json::Value;

/// Metadata fields that are irrelevant for the state.
const DROPPED: &[&str] = &["managedFields", "resourceVersion", "creationTimestamp", "uid"];

/// Kinds whose generation only counts checks of a controller, heartbeats or starts.
const COUNTING: &[&str] = &[
    "EndpointSlice",
    "KopfPeering",
    "ClusterKopfPeering",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
];

/// Prefixes of values that controllers generate.
const RANDOM: &[&str] = &["kube-api-access-", "containerd://"];

/// The annotation with the fingerprint of a desired child.
const FINGERPRINT: &str = "kopf.dev/applied";

/// The objects in a fixed order, with all random values replaced.
pub(super) fn normalised(mut objects: Vec<Value>) -> Vec<Value> {
    let mut names = BTreeMap::new();
    objects.sort_by_cached_key(|object| (kind_and_place(object), age(object), name(object)));
    for object in &objects {
        let metadata = &object["metadata"];
        if let Some(uid) = metadata["uid"].as_str() {
            let kind = object["kind"].as_str().unwrap_or_default();
            names.insert(uid.to_owned(), format!("<uid of {kind} {}>", name(object)));
        }
    }
    let generated = generated_names(&objects);
    for text in names.values_mut() {
        replace_all(text, &generated);
    }
    names.extend(generated);
    for object in &objects {
        find_random(object, &mut names);
    }
    for object in &mut objects {
        let is_counting = COUNTING.iter().any(|kind| object["kind"] == *kind);
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.retain(|key, _| !DROPPED.contains(&key.as_str()));
            metadata.retain(|key, _| !is_counting || key != "generation");
        }
        tidy(object, &names);
    }
    objects.sort_by_cached_key(|object| (kind_and_place(object), name(object)));
    objects
}

/// The replacements of generated names: the prefix and a number, in creation order.
fn generated_names(objects: &[Value]) -> BTreeMap<String, String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut names = BTreeMap::new();
    for object in objects {
        let Some(prefix) = object["metadata"]["generateName"].as_str() else { continue };
        let name = name(object);
        if prefix.is_empty() || !name.starts_with(prefix) {
            continue;
        }
        let count = counts.entry(format!("{} {prefix}", kind_and_place(object))).or_default();
        *count += 1;
        names.insert(name, format!("{prefix}<{count}>"));
    }
    names
}

fn kind_and_place(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    format!("{} {}", text(&object["kind"]), text(&object["metadata"]["namespace"]))
}

fn name(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}

fn age(object: &Value) -> String {
    object["metadata"]["creationTimestamp"].as_str().unwrap_or_default().to_owned()
}

/// Finds generated values of controllers, which others may have copied into their texts.
fn find_random(value: &Value, names: &mut BTreeMap<String, String>) {
    match value {
        Value::String(text) => {
            if let Some(prefix) = RANDOM.iter().find(|prefix| text.starts_with(**prefix)) {
                names.insert(text.clone(), format!("{prefix}<random>"));
            }
        }
        Value::Array(items) => items.iter().for_each(|item| find_random(item, names)),
        Value::Object(fields) => fields.values().for_each(|field| find_random(field, names)),
        _ => {}
    }
}

fn tidy(value: &mut Value, names: &BTreeMap<String, String>) {
    match value {
        Value::String(text) => tidy_text(text, names),
        Value::Array(items) => items.iter_mut().for_each(|item| tidy(item, names)),
        Value::Object(fields) => {
            for (key, field) in fields.iter_mut() {
                match key.as_str() {
                    // It depends on uids too.
                    FINGERPRINT => *field = "<fingerprint>".into(),
                    _ => tidy(field, names),
                }
            }
            fields.sort_keys();
        }
        _ => {}
    }
}

fn tidy_text(text: &mut String, names: &BTreeMap<String, String>) {
    if text.parse::<jiff::Timestamp>().is_ok() {
        "<time>".clone_into(text);
    } else if text.parse::<IpAddr>().is_ok() {
        "<address>".clone_into(text);
    } else {
        replace_all(text, names);
    }
}

fn replace_all(text: &mut String, names: &BTreeMap<String, String>) {
    for (name, stands_for) in names {
        if text.contains(name.as_str()) {
            *text = text.replace(name.as_str(), stands_for);
        }
    }
}
