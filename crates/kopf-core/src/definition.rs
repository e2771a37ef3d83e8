//! The definition of a custom resource that a handler only names.
//!
//! Pure. A real cluster has its definitions from elsewhere; an embedded one has nobody else to make
//! them, so they are guessed from group, version and plural: any content, and a status.

use kopf_model::Selector;
use kopf_model::resource::SelectorName;
use serde_json::{Value, json};

use crate::groups;

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
