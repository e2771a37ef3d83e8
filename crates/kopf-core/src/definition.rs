//! The definitions of the custom resources that handlers name, by types or only by their names.
//!
//! Pure. Several versions of a resource make one definition. What is only named has its definition
//! from elsewhere in a real cluster; an embedded one has nobody else to make it, so it is guessed
//! from group, version and plural: any content, and a status.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use kopf_model::Selector;
use kopf_model::resource::SelectorName;
use serde_json::{Value, json};

use crate::groups;
use crate::handler::Handler;

/// The definitions of all typed resources of some handlers, one of each, ordered by name.
#[must_use]
pub fn typed<'a>(handlers: impl IntoIterator<Item = &'a Handler>) -> Vec<Value> {
    merged(handlers.into_iter().flat_map(Handler::definitions))
}

/// The definitions of what handlers only name, as far as they can be guessed.
#[must_use]
pub fn guessed<'a>(handlers: impl IntoIterator<Item = &'a Handler>) -> Vec<Value> {
    let handlers: Vec<&Handler> = handlers.into_iter().collect();
    let typed = typed(handlers.iter().copied());
    let selectors = handlers.iter().flat_map(|handler| handler.resources());
    let mut guessed = merged(selectors.filter_map(implied));
    let name = |it: &Value| it["metadata"]["name"].clone();
    guessed.retain(|it| typed.iter().all(|other| name(other) != name(it)));
    guessed
}

/// One definition per name, with the versions of all, the newest first.
///
/// Objects are stored in the newest of the versions that say they are for storage, and a stable one
/// counts as newer than those in the making. The first definition decides about all else.
#[must_use]
pub fn merged(definitions: impl IntoIterator<Item = Value>) -> Vec<Value> {
    let mut by_name: BTreeMap<String, Value> = BTreeMap::new();
    for definition in definitions {
        let name = definition["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        match by_name.get_mut(&name) {
            None => drop(by_name.insert(name, definition)),
            Some(known) => add_versions(known, &definition),
        }
    }
    by_name.into_values().collect()
}

fn add_versions(known: &mut Value, other: &Value) {
    let Some(versions) = known["spec"]["versions"].as_array_mut() else { return };
    let has = |versions: &[Value], version: &Value| {
        versions.iter().any(|known| known["name"] == version["name"])
    };
    for version in other["spec"]["versions"].as_array().into_iter().flatten() {
        if !has(versions, version) {
            versions.push(version.clone());
        }
    }
    versions.sort_by_key(|version| Reverse(priority(version["name"].as_str().unwrap_or_default())));
    let is_storage = |version: &Value| version["storage"] == true;
    let chosen = versions.iter().position(is_storage).unwrap_or_default();
    for (position, version) in versions.iter_mut().enumerate() {
        version["storage"] = (position == chosen).into();
    }
}

/// The order of versions in Kubernetes, greater is newer: stable ones, `beta`, `alpha`, all others.
///
/// ```
/// use kopf_core::definition::priority;
///
/// let mut versions = ["v1", "v10", "v2alpha1", "v2beta3", "v2", "next"];
/// versions.sort_by_key(|version| priority(version));
/// assert_eq!(versions, ["next", "v2alpha1", "v2beta3", "v1", "v2", "v10"]);
/// ```
#[must_use]
pub fn priority(version: &str) -> impl Ord + use<> {
    let numbers = |text: &str| -> Option<(u8, u32, u32)> {
        let rest = text.strip_prefix('v')?;
        let (stage, parts) = match (rest.split_once("beta"), rest.split_once("alpha")) {
            (Some(parts), _) => (2, parts),
            (_, Some(parts)) => (1, parts),
            _ => (3, (rest, "0")),
        };
        Some((stage, parts.0.parse().ok()?, parts.1.parse().ok()?))
    };
    // All others go by the alphabet, the first one being the newest.
    let known = numbers(version);
    let other = known.is_none().then(|| Reverse(version.to_owned()));
    (known, other)
}

/// The definition of what a selector names, if it names a custom resource in full.
///
/// ```
/// use kopf_model::Selector;
///
/// let selector = Selector::exact("example.com", "v1", "policies");
/// let definition = kopf_core::definition::implied(&selector).expect("a custom resource");
/// assert_eq!(definition["spec"]["names"]["kind"], "Policy");
/// ```
#[must_use]
pub fn implied(selector: &Selector) -> Option<Value> {
    let (group, version) = (selector.group.as_deref()?, selector.version.as_deref()?);
    let (SelectorName::Any(plural) | SelectorName::Plural(plural)) = &selector.name else {
        return None;
    };
    if !groups::is_custom(group) {
        return None;
    }
    let kind = kind_of(plural);
    let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let mut definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind},
            "versions": [{
                "name": version, "served": true, "storage": true,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "properties": {"spec": anything, "status": anything},
                }},
            }],
        },
    });
    if groups::is_protected(group) {
        // Servers refuse definitions there that say nothing about it.
        definition["metadata"]["annotations"] =
            json!({"api-approved.kubernetes.io": "unapproved, guessed from a handler"});
    }
    Some(definition)
}

/// The kind that a plural most likely belongs to: `policies` to `Policy`.
#[must_use]
pub fn kind_of(plural: &str) -> String {
    let singular = match plural {
        _ if plural.ends_with("ies") => format!("{}y", &plural[..plural.len() - 3]),
        _ if plural.ends_with("sses") => plural[..plural.len() - 2].to_owned(),
        _ => plural.strip_suffix('s').unwrap_or(plural).to_owned(),
    };
    let mut letters = singular.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
