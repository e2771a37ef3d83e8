//! Decides which names of a CRD are accepted, given the other CRDs of its group.

use serde_json::{Map, Value, json};

use super::TABLE;
use crate::store::Snapshot;

/// A name that is already taken: the condition's reason and message.
pub(crate) struct NameConflict {
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

/// The accepted names of a CRD, and the last conflict if any.
pub(crate) fn accept(crd: &Value, snapshot: &Snapshot) -> (Value, Option<NameConflict>) {
    let group = &crd["spec"]["group"];
    let wanted = &crd["spec"]["names"];
    let others: Vec<Value> = snapshot
        .list(TABLE, "")
        .filter(|(_, stored)| {
            let other = stored.content();
            other["spec"]["group"] == *group && other["metadata"]["name"] != crd["metadata"]["name"]
        })
        .map(|(_, other)| other.content()["status"]["acceptedNames"].clone())
        .collect();
    let resource_taken = |name: &str| {
        others.iter().any(|names| {
            names["plural"] == name
                || names["singular"] == name
                || names["shortNames"].as_array().is_some_and(|list| list.contains(&json!(name)))
        })
    };
    let kind_taken =
        |name: &str| others.iter().any(|names| names["kind"] == name || names["listKind"] == name);
    let mut accepted = match &crd["status"]["acceptedNames"] {
        Value::Object(names) => names.clone(),
        _ => Map::new(),
    };
    let mut conflict = None;
    for (key, reason) in [
        ("plural", "PluralConflict"),
        ("singular", "SingularConflict"),
        ("kind", "KindConflict"),
        ("listKind", "ListKindConflict"),
    ] {
        let Some(name) = wanted[key].as_str() else { continue };
        let taken = if key.ends_with("ind") { kind_taken(name) } else { resource_taken(name) };
        if taken {
            conflict =
                Some(NameConflict { reason, message: format!("{name:?} is already in use") });
        } else {
            accepted.insert(key.into(), json!(name));
        }
    }
    accept_lists(wanted, &mut accepted, &mut conflict, resource_taken);
    let ordered = ordered(&accepted);
    (ordered, conflict)
}

fn accept_lists(
    wanted: &Value,
    accepted: &mut Map<String, Value>,
    conflict: &mut Option<NameConflict>,
    taken: impl Fn(&str) -> bool,
) {
    let short_names = wanted["shortNames"].as_array().cloned().unwrap_or_default();
    let clash =
        short_names.iter().filter_map(Value::as_str).find(|name| taken(name)).map(str::to_owned);
    match clash {
        Some(name) => {
            let message = format!("{name:?} is already in use");
            *conflict = Some(NameConflict { reason: "ShortNamesConflict", message });
        }
        None if short_names.is_empty() => {
            accepted.shift_remove("shortNames");
        }
        None => {
            accepted.insert("shortNames".into(), Value::Array(short_names));
        }
    }
    match wanted.get("categories").filter(|list| !list.is_null()) {
        Some(categories) => accepted.insert("categories".into(), categories.clone()),
        None => accepted.shift_remove("categories"),
    };
}

/// `plural` and `kind` are always printed, even empty.
fn ordered(names: &Map<String, Value>) -> Value {
    let mut ordered = Map::new();
    for key in ["plural", "singular", "shortNames", "kind", "listKind", "categories"] {
        match names.get(key) {
            Some(value) => ordered.insert(key.into(), value.clone()),
            None if matches!(key, "plural" | "kind") => ordered.insert(key.into(), json!("")),
            None => None,
        };
    }
    Value::Object(ordered)
}
