//! The definitions of the custom resources that handlers name by type or by name.
//!
//! Pure. Several versions of a resource form one definition. In a real cluster, the definition of a
//! resource given by name comes from elsewhere. On an embedded cluster it must be guessed from
//! group, version and plural: with any content and a status.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use kopf_model::Selector;
use kopf_model::resource::SelectorName;
use serde_json::{Value, json};

use crate::groups;
use crate::handler::Handler;

/// The definitions of all typed resources of some handlers, each once, ordered by name.
#[must_use]
pub fn typed<'a>(handlers: impl IntoIterator<Item = &'a Handler>) -> Vec<Value> {
    merged(handlers.into_iter().flat_map(Handler::definitions))
}

/// The definitions of resources given only by name, if they can be guessed.
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

/// Merges into one definition per name, with the versions of all, the newest first.
///
/// Objects are stored in the newest version that is marked for storage; stable versions count as
/// newer than alpha and beta ones. Everything else comes from the first definition.
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
    // All others are in alphabetical order, the first being the newest.
    let known = numbers(version);
    let other = known.is_none().then(|| Reverse(version.to_owned()));
    (known, other)
}

/// The definition of the resource of a selector, if it specifies a custom resource completely.
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
        // In this domain, servers reject definitions without this annotation.
        definition["metadata"]["annotations"] =
            json!({"api-approved.kubernetes.io": "unapproved, guessed from a handler"});
    }
    Some(definition)
}

/// The most likely kind of a plural: `Policy` for `policies`.
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
