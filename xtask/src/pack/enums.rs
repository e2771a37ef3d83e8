//! Adds the enumerations that a running server publishes but the committed documents lack.
//!
//! They are in the generated Go code of the release, one function per definition; only values and
//! descriptions are taken from it.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;
use regex::Regex;
use serde_json::Value;

/// The path of the generated code in `k8s.io/kubernetes`.
const SOURCE: &str = "pkg/generated/openapi/zz_generated.openapi.go";

/// One property with a fixed set of values.
struct Enumeration {
    definition: String,
    property: String,
    is_in_items: bool,
    description: Option<String>,
    values: Value,
}

/// Adds values and descriptions to the definitions; returns how many it added.
pub(super) fn add(
    kubernetes: &Path,
    schemas: &mut BTreeMap<String, Value>,
) -> anyhow::Result<usize> {
    let path = kubernetes.join(SOURCE);
    let source = std::fs::read_to_string(&path).with_context(|| format!("reading {path:?}"))?;
    let mut added = 0;
    for found in enumerations(&source)? {
        let Some(schema) = schemas.get_mut(&found.definition) else { continue };
        let Some(property) = schema["properties"].get_mut(&found.property) else { continue };
        if let Some(description) = found.description.filter(|_| !found.is_in_items) {
            property["description"] = description.into();
        }
        let inside = if property.get("items").is_some() { "items" } else { "additionalProperties" };
        let target = if found.is_in_items { &mut property[inside] } else { property };
        target["enum"] = found.values;
        added += 1;
    }
    Ok(added)
}

fn enumerations(source: &str) -> anyhow::Result<Vec<Enumeration>> {
    let function = Regex::new(r"^func schema_(k8sio|pkg)_(\w+)\(")?;
    let property = Regex::new(r#"^\t{5}"(\w+)": \{$"#)?;
    let description = Regex::new(r#"^\t+Description: +(".*"),$"#)?;
    let values = Regex::new(r"^(\t+)Enum: +\[\]interface\{\}\{(.*)\},$")?;
    let (mut definition, mut name, mut about) = (String::new(), String::new(), None);
    let mut found = Vec::new();
    for line in source.lines() {
        if let Some(captured) = function.captures(line) {
            // Only one module outside of `k8s.io/api` has enumerations.
            let module = match &captured[1] {
                "k8sio" => "io.k8s",
                _ => "io.k8s.apiextensions-apiserver.pkg",
            };
            definition = format!("{module}.{}", captured[2].replace('_', "."));
        } else if let Some(captured) = property.captures(line) {
            name = captured[1].to_owned();
            about = None;
        } else if let Some(captured) = description.captures(line) {
            // Go's and JSON's literals are the same for all values here.
            about = serde_json::from_str(&captured[1]).ok();
        } else if let Some(captured) = values.captures(line) {
            found.push(Enumeration {
                definition: definition.clone(),
                property: name.clone(),
                is_in_items: captured[1].len() > 7,
                description: about.clone(),
                values: serde_json::from_str(&format!("[{}]", &captured[2]))
                    .with_context(|| format!("reading the values of {definition}.{name}"))?,
            });
        }
    }
    Ok(found)
}
