//! Reads the OpenAPI v3 documents of a release and splits them into chunks.
//!
//! `schemas.pack`: chunk = package (`io.k8s.api.core.v1`), content = its definitions without
//! descriptions. `openapi.pack`: the same with descriptions, plus one chunk `paths:GV` per
//! published group version with its paths.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Context;
use serde_json::{Map, Value};

/// The documents of a release.
#[derive(Default)]
pub(super) struct Documents {
    /// Definition name to schema.
    pub(super) schemas: BTreeMap<String, Value>,
    /// `apis/apps/v1` to paths.
    paths: BTreeMap<String, Value>,
}

/// Whether a server with default flags serves a group version.
fn is_served(group_version: &str) -> bool {
    // Groups that have only alpha and beta versions.
    const UNSERVED: [&str; 4] = [
        "apis/resource.k8s.io",
        "apis/storagemigration.k8s.io",
        "apis/internal.apiserver.k8s.io",
        "logs",
    ];
    let version = group_version.rsplit('/').next().unwrap_or_default();
    !version.contains("alpha") && !version.contains("beta") && !UNSERVED.contains(&group_version)
}

/// Drops the media types of CBOR, which need a feature that is off by default.
fn strip_cbor(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|key, _| !key.starts_with("application/") || !key.contains("cbor"));
            fields.values_mut().for_each(strip_cbor);
        }
        Value::Array(items) => items.iter_mut().for_each(strip_cbor),
        _ => {}
    }
}

/// Reads every document of the folder.
pub(super) fn read(folder: &Path) -> anyhow::Result<Documents> {
    let mut documents = Documents::default();
    let mut reachable = BTreeSet::new();
    for entry in std::fs::read_dir(folder).with_context(|| format!("reading {folder:?}"))? {
        let file = entry?;
        let name = file.file_name().to_string_lossy().into_owned();
        let Some(stem) = name.strip_suffix("_openapi.json") else { continue };
        let group_version = stem.replace("__", "/").trim_start_matches('/').to_owned();
        if !is_served(&group_version) {
            continue;
        }
        let mut document: Value = serde_json::from_slice(&std::fs::read(file.path())?)?;
        strip_cbor(&mut document["paths"]);
        documents.paths.insert(group_version, document["paths"].take());
        if let Value::Object(schemas) = document["components"]["schemas"].take() {
            reachable.extend(schemas.keys().cloned());
            documents.schemas.extend(schemas);
        }
    }
    documents.schemas.retain(|name, _| reachable.contains(name));
    Ok(documents)
}

impl Documents {
    /// Definitions without descriptions, by package.
    pub(super) fn bare_schemas(&self) -> Vec<(String, Value)> {
        let mut bare = self.schemas.clone();
        bare.values_mut().for_each(|schema| strip_descriptions(schema, false));
        by_package(&bare)
    }

    /// Everything that is published.
    pub(super) fn published(&self) -> anyhow::Result<Vec<(String, Value)>> {
        let mut chunks = by_package(&self.schemas);
        for (group_version, paths) in &self.paths {
            chunks.push((format!("paths:{group_version}"), paths.clone()));
        }
        Ok(chunks)
    }
}

fn by_package(schemas: &BTreeMap<String, Value>) -> Vec<(String, Value)> {
    let mut packages: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    for (name, schema) in schemas {
        let package = name.rsplit_once('.').map_or("", |(package, _)| package);
        packages.entry(package.to_owned()).or_default().insert(name.clone(), schema.clone());
    }
    packages.into_iter().map(|(name, schemas)| (name, Value::Object(schemas))).collect()
}

/// Drops `description`, but not a property with that name.
fn strip_descriptions(schema: &mut Value, names_properties: bool) {
    match schema {
        Value::Object(fields) => {
            if !names_properties {
                fields.shift_remove("description");
            }
            for (key, value) in fields.iter_mut() {
                strip_descriptions(value, key == "properties" && !names_properties);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| strip_descriptions(item, false)),
        _ => {}
    }
}
