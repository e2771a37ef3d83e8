//! The documents of custom group versions.
//!
//! Paths are those of Deployments with other names: upstream also generates both from one template,
//! and Deployments have every subresource that custom resources can have.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value, json};

use super::published;
use crate::resource::ResourceInfo;

const META: &str = "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1";
const CONVENTIONS: &str =
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md";

/// The paths of Deployments, from which those of custom resources are generated.
static TEMPLATE: LazyLock<Vec<(String, Value)>> = LazyLock::new(|| {
    let paths = published::paths("apis/apps/v1");
    let is_template = |path: &str| path.contains("/deployments") && !path.contains("/watch/");
    paths.into_iter().filter(|(path, _)| is_template(path)).collect()
});

/// The group versions of custom resources: `apis/example.io/v1`.
pub(super) fn group_versions(resources: &[Arc<ResourceInfo>]) -> BTreeSet<String> {
    resources.iter().filter(|resource| resource.is_custom()).map(|r| name_of(r)).collect()
}

/// The custom resources of one group version.
pub(super) fn kinds<'a>(
    group_version: &str,
    resources: &'a [Arc<ResourceInfo>],
) -> Vec<&'a ResourceInfo> {
    let is_meant = |resource: &&'a Arc<ResourceInfo>| {
        resource.is_custom() && name_of(resource) == group_version
    };
    resources.iter().filter(is_meant).map(|resource| &**resource).collect()
}

/// A hash of everything that the document depends on.
pub(super) fn hash_of(kinds: &[&ResourceInfo]) -> String {
    let mut text = String::new();
    for kind in kinds {
        let subresources: Vec<&str> = kind.subresources.iter().map(|s| s.name.as_str()).collect();
        text.push_str(&format!(
            "{} {} {} {} {subresources:?} {}\n",
            kind.api_version(),
            kind.resource,
            kind.kind,
            kind.namespaced,
            source(kind)
        ));
    }
    super::hash(&[text.as_bytes()])
}

/// The document of one group version; `None` if it has no resources.
pub(super) fn document(kinds: &[&ResourceInfo]) -> Option<Value> {
    if kinds.is_empty() {
        return None;
    }
    let mut paths = Map::new();
    let mut schemas = Map::new();
    for kind in kinds {
        paths.extend(paths_of(kind));
        schemas.extend(schemas_of(kind));
    }
    let paths = Value::Object(paths);
    let mut all = published::referenced(&paths);
    all.extend(published::referenced(&Value::Object(schemas.clone())));
    all.extend(schemas);
    all.sort_keys();
    all.values_mut().for_each(forget_foreign_kinds);
    Some(json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes CRD Swagger", "version": "v0.1.0"},
        "paths": paths,
        "components": {"schemas": all},
    }))
}

/// Removes the groups that the server of custom resources does not know from a definition.
fn forget_foreign_kinds(definition: &mut Value) {
    const FOREIGN: [&str; 4] = [
        "admission.k8s.io",
        "apiextensions.k8s.io",
        "apiregistration.k8s.io",
        "imagepolicy.k8s.io",
    ];
    let kinds = definition.get_mut("x-kubernetes-group-version-kind").and_then(Value::as_array_mut);
    if let Some(kinds) = kinds.filter(|kinds| kinds.len() > 1) {
        kinds.retain(|kind| kind["group"].as_str().is_none_or(|group| !FOREIGN.contains(&group)));
    }
}

/// The definitions of all custom kinds.
pub(super) fn definitions(resources: &[Arc<ResourceInfo>]) -> Vec<(String, Value)> {
    resources.iter().filter(|resource| resource.is_custom()).flat_map(|r| schemas_of(r)).collect()
}

fn name_of(resource: &ResourceInfo) -> String {
    format!("apis/{}/{}", resource.group, resource.version)
}

/// `io.example.v1.Foo` for kind `Foo` of `example.io/v1`.
fn definition_name(resource: &ResourceInfo) -> String {
    let mut labels: Vec<&str> = resource.group.split('.').collect();
    labels.reverse();
    format!("{}.{}.{}", labels.join("."), resource.version, resource.kind)
}

fn source(resource: &ResourceInfo) -> Value {
    let source = resource.schema.as_ref().and_then(|schema| schema.source.as_deref().cloned());
    source
        .unwrap_or_else(|| json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}))
}

fn schemas_of(resource: &ResourceInfo) -> Vec<(String, Value)> {
    let name = definition_name(resource);
    let mut schema = source(resource);
    publish(&mut schema);
    add_object_fields(&mut schema, "ObjectMeta", "Standard object's metadata.", "#metadata");
    let kinds =
        |kind: &str| json!([{"group": resource.group, "kind": kind, "version": resource.version}]);
    schema["x-kubernetes-group-version-kind"] = kinds(&resource.kind);
    let mut list = json!({
        "description": format!("{} is a list of {}", resource.list_kind, resource.kind),
        "type": "object",
        "required": ["items"],
        "properties": {"items": {
            "description": format!("List of {}. More info: {CONVENTIONS}", resource.resource),
            "type": "array",
            "items": {"$ref": format!("#/components/schemas/{name}")},
        }},
        "x-kubernetes-group-version-kind": kinds(&resource.list_kind),
    });
    add_object_fields(&mut list, "ListMeta", "Standard list metadata.", "#types-kinds");
    let list_name = format!("{name}List");
    vec![(name, schema), (list_name, list)]
}

fn add_object_fields(schema: &mut Value, meta: &str, about: &str, anchor: &str) {
    let Some(fields) = schema.as_object_mut() else { return };
    let properties = fields.entry("properties").or_insert_with(|| json!({}));
    let Some(properties) = properties.as_object_mut() else { return };
    let text = |about: &str, anchor: &str| json!({"description": format!("{about} More info: {CONVENTIONS}{anchor}"), "type": "string"});
    let version = "APIVersion defines the versioned schema of this representation of an object. \
                   Servers should convert recognized schemas to the latest internal value, and \
                   may reject unrecognized values.";
    let kind = "Kind is a string value representing the REST resource this object represents. \
                Servers may infer this from the endpoint the client submits requests to. Cannot be \
                updated. In CamelCase.";
    properties.insert("apiVersion".into(), text(version, "#resources"));
    properties.insert("kind".into(), text(kind, "#types-kinds"));
    properties.insert(
        "metadata".into(),
        json!({
            "description": format!("{about} More info: {CONVENTIONS}{anchor}"),
            "allOf": [{"$ref": format!("{META}.{meta}")}],
        }),
    );
    properties.sort_keys();
}

/// Upstream describes the type of an embedded object in other words.
fn describe_embedded(schema: &mut Value) {
    let version = "apiVersion defines the versioned schema of this representation of an object.";
    let kind = "kind is a string value representing the type of this object. In CamelCase.";
    for (field, about, anchor) in
        [("apiVersion", version, "#resources"), ("kind", kind, "#types-kinds")]
    {
        let text = format!("{about} More info: {CONVENTIONS}{anchor}");
        schema["properties"][field]["description"] = text.into();
    }
}

/// Converts a declared schema to one that generic OpenAPI clients understand.
fn publish(schema: &mut Value) {
    let Value::Object(fields) = schema else { return };
    let is_set = |key: &str| fields.get(key) == Some(&Value::Bool(true));
    if is_set("x-kubernetes-int-or-string") && !fields.contains_key("anyOf") {
        fields.insert("anyOf".into(), json!([{"type": "integer"}, {"type": "string"}]));
    }
    let embedded = fields.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true));
    for key in ["properties", "items", "additionalProperties"] {
        match (key, fields.get_mut(key)) {
            ("properties", Some(Value::Object(properties))) => {
                properties.values_mut().for_each(publish);
            }
            (_, Some(child)) => publish(child),
            _ => {}
        }
    }
    if embedded {
        fields.insert("required".into(), json!(["kind", "apiVersion"]));
        add_object_fields(schema, "ObjectMeta", "Standard object's metadata.", "#metadata");
        describe_embedded(schema);
    }
}

fn paths_of(resource: &ResourceInfo) -> Vec<(String, Value)> {
    let camel = |text: &str| -> String {
        text.split(['.', '-'])
            .map(|part| {
                part[..1.min(part.len())].to_uppercase() + part.get(1..).unwrap_or_default()
            })
            .collect()
    };
    let group = camel(&resource.group);
    let tag = format!(
        "{}{}_{}",
        group[..1.min(group.len())].to_lowercase(),
        group.get(1..).unwrap_or_default(),
        resource.version
    );
    let identifier = format!("{group}{}", camel(&resource.version));
    let article = if resource.kind.starts_with(['A', 'E', 'I', 'O', 'U']) { "an" } else { "a" };
    let mut renames = vec![
        (" a Deployment".to_owned(), format!(" {article} {}", resource.kind)),
        ("name of the Scale".to_owned(), format!("name of the {}", resource.kind)),
        ("io.k8s.api.apps.v1.Deployment".to_owned(), definition_name(resource)),
        ("/apis/apps/v1/".to_owned(), format!("/apis/{}/{}/", resource.group, resource.version)),
        ("/deployments".to_owned(), format!("/{}", resource.resource)),
        ("apps_v1".to_owned(), tag),
        ("AppsV1".to_owned(), identifier),
        ("Deployment".to_owned(), resource.kind.clone()),
    ];
    if !resource.namespaced {
        renames.push(("/namespaces/{namespace}".to_owned(), String::new()));
        renames.push(("Namespaced".to_owned(), String::new()));
    }
    let is_served = |path: &str| match path.rsplit_once("{name}/") {
        Some((_, subresource)) => resource.subresource(subresource).is_some(),
        None => resource.namespaced || path != "/apis/apps/v1/deployments",
    };
    let template = TEMPLATE.iter().filter(|(path, _)| is_served(path));
    let rename = |text: &str| {
        renames.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
    };
    template
        .map(|(path, item)| {
            let mut item = item.clone();
            adapt(&mut item, resource, &rename);
            for (_, part) in item.as_object_mut().into_iter().flatten() {
                simplify(part, resource);
            }
            (rename(path), item)
        })
        .collect()
}

/// The parameters of the list of Deployments.
static LIST_PARAMETERS: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let path = "/apis/apps/v1/namespaces/{namespace}/deployments";
    let list = TEMPLATE.iter().find(|(found, _)| found == path);
    let parameters = list.and_then(|(_, item)| item["get"]["parameters"].as_array());
    parameters.cloned().unwrap_or_default()
});

/// Converts an operation of a built-in kind to one of a custom resource.
fn simplify(operation: &mut Value, resource: &ResourceInfo) {
    let Some(fields) = operation.as_object_mut() else { return };
    if let Some(kind) = fields.get_mut("x-kubernetes-group-version-kind") {
        let (group, version) = (&resource.group, &resource.version);
        *kind = json!({"group": group, "kind": resource.kind, "version": version});
    }
    if let Some(Value::String(text)) = fields.get_mut("description") {
        *text = text.replace("list or watch objects", "list objects");
    }
    match fields.get("x-kubernetes-action").and_then(Value::as_str) {
        Some("deletecollection") => {
            fields.shift_remove("requestBody");
            fields.insert("parameters".into(), LIST_PARAMETERS.as_slice().into());
        }
        Some("get") => {
            let version = LIST_PARAMETERS.iter().find(|one| one["name"] == "resourceVersion");
            fields.insert("parameters".into(), version.cloned().into_iter().collect());
        }
        Some("patch") => {
            let responses = fields.get_mut("responses").and_then(Value::as_object_mut);
            responses.and_then(|responses| responses.shift_remove("201"));
        }
        _ => {}
    }
    if let Some(content) = fields.get_mut("requestBody").and_then(|body| body.get_mut("content"))
        && let Some(content) = content.as_object_mut()
        && let Some(any) = content.shift_remove("*/*")
    {
        content.insert("application/json".into(), any.clone());
        content.insert("application/yaml".into(), any);
    }
    let responses = fields.get_mut("responses").and_then(Value::as_object_mut);
    for (_, response) in responses.into_iter().flatten() {
        if let Some(content) = response.get_mut("content").and_then(Value::as_object_mut) {
            content.retain(|name, _| !name.contains("stream=watch"));
        }
    }
}

fn adapt(value: &mut Value, resource: &ResourceInfo, rename: &dyn Fn(&str) -> String) {
    match value {
        Value::String(text) => *text = rename(text),
        Value::Array(items) => {
            items.retain(|item| resource.namespaced || item["name"] != "namespace");
            items.iter_mut().for_each(|item| adapt(item, resource, rename));
        }
        Value::Object(fields) => {
            if fields.get("group").is_some_and(|group| group == "apps") {
                fields["group"] = Value::from(resource.group.as_str());
                fields["version"] = Value::from(resource.version.as_str());
            }
            fields.retain(|name, _| {
                !(name.contains("strategic-merge")
                    || name.contains("cbor")
                    || name.contains("vnd.kubernetes.protobuf"))
            });
            fields.values_mut().for_each(|child| adapt(child, resource, rename));
        }
        _ => {}
    }
}
