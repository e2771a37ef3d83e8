//! The documents of built-in group versions, from the committed pack.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use super::gnostic;
use crate::pack::Pack;
use crate::resource::ResourceInfo;

const REFERENCE: &str = "#/components/schemas/";

static PACK: LazyLock<Pack> =
    LazyLock::new(|| Pack::open(include_bytes!("../../assets/openapi.pack")));

/// Documents that have been requested. Written once per group version, read by later requests.
static DOCUMENTS: LazyLock<Mutex<HashMap<String, Bytes>>> = LazyLock::new(Mutex::default);

/// The published group versions: `api/v1`, `apis/apps/v1`, `version`.
pub(super) fn group_versions() -> impl Iterator<Item = &'static str> {
    PACK.names().filter_map(|name| name.strip_prefix("paths:"))
}

/// The hash of a published document.
pub(super) fn hash_of(group_version: &str) -> Option<String> {
    PACK.frame(&format!("paths:{group_version}")).map(|frame| super::hash(&[frame]))
}

/// The document of a built-in group version.
pub(super) fn document(group_version: &str) -> Option<Bytes> {
    if let Some(document) = DOCUMENTS.lock().get(group_version) {
        return Some(document.clone());
    }
    let paths: Value = serde_json::from_str(&PACK.chunk(&format!("paths:{group_version}"))?)
        .expect("the pack holds JSON");
    let schemas = referenced(&paths);
    let mut components = Map::new();
    if !schemas.is_empty() {
        components.insert("schemas".to_owned(), Value::Object(schemas));
    }
    components.insert(
        "securitySchemes".to_owned(),
        json!({"BearerToken": {
            "description": "Bearer Token authentication",
            "in": "header",
            "name": "authorization",
            "type": "apiKey",
        }}),
    );
    let document = json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "1.33"},
        "components": components,
        "paths": paths,
    });
    let body = super::serialize(&document);
    DOCUMENTS.lock().insert(group_version.to_owned(), body.clone());
    Some(body)
}

/// The paths of a built-in group version.
pub(super) fn paths(group_version: &str) -> Map<String, Value> {
    let text = PACK.chunk(&format!("paths:{group_version}")).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

/// All built-in definitions that a value refers to, directly or indirectly.
pub(super) fn referenced(value: &Value) -> Map<String, Value> {
    let mut packages: HashMap<String, Map<String, Value>> = HashMap::new();
    let mut found: BTreeMap<String, Value> = BTreeMap::new();
    let mut wanted = BTreeSet::new();
    collect(value, &mut wanted);
    while let Some(name) = wanted.pop_first() {
        if found.contains_key(&name) {
            continue;
        }
        let package = name.rsplit_once('.').map_or("", |(package, _)| package).to_owned();
        let definitions = packages.entry(package).or_insert_with_key(|package| {
            let text = PACK.chunk(package).unwrap_or_default();
            serde_json::from_str(&text).unwrap_or_default()
        });
        let Some(definition) = definitions.get(&name) else { continue };
        collect(definition, &mut wanted);
        found.insert(name, definition.clone());
    }
    found.into_iter().collect()
}

fn collect(value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                match (key.as_str(), value) {
                    ("$ref", Value::String(target)) => {
                        names.extend(target.strip_prefix(REFERENCE).map(str::to_owned));
                    }
                    (_, value) => collect(value, names),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, names)),
        _ => {}
    }
}

/// `/openapi/v2` as JSON: the definitions of all kinds and the PATCH operations.
pub(super) fn swagger(resources: &[Arc<ResourceInfo>]) -> Value {
    let mut definitions = Map::new();
    let packages = PACK.names().filter(|name| !name.starts_with("paths:"));
    let mut packages: Vec<&str> = packages.collect();
    packages.sort_unstable();
    for package in packages {
        let text = PACK.chunk(package).unwrap_or_default().replace(REFERENCE, "#/definitions/");
        let schemas: Map<String, Value> = serde_json::from_str(&text).unwrap_or_default();
        definitions.extend(schemas);
    }
    for (name, schema) in super::custom::definitions(resources) {
        let text = schema.to_string().replace(REFERENCE, "#/definitions/");
        definitions.insert(name, serde_json::from_str(&text).unwrap_or_default());
    }
    let mut paths = Map::new();
    for operation in gnostic::operations(resources) {
        let (path, patch) = operation.to_json();
        paths.insert(path, json!({"patch": patch}));
    }
    json!({
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": "v1.33"},
        "paths": paths,
        "definitions": definitions,
    })
}
