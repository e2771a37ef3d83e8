//! What kubectl finds in the documents.

use std::sync::Arc;

use super::*;
use crate::resource::{CustomResource, Subresource};
use crate::schema;

fn widget(namespaced: bool) -> Arc<ResourceInfo> {
    let source = json!({"type": "object", "description": "A widget.", "properties": {"spec": {
        "type": "object", "properties": {"io": {"x-kubernetes-int-or-string": true},
            "emb": {"type": "object", "x-kubernetes-embedded-resource": true}}}}});
    Arc::new(ResourceInfo {
        group: "schema.example.io".into(),
        version: "v1".into(),
        resource: "widgets".into(),
        singular: "widget".into(),
        kind: "Widget".into(),
        list_kind: "WidgetList".into(),
        namespaced,
        verbs: vec!["get".into(), "patch".into()],
        short_names: vec![],
        categories: vec![],
        subresources: vec![Subresource {
            name: "status".into(),
            group: String::new(),
            version: String::new(),
            kind: "Widget".into(),
            verbs: vec![],
        }],
        table: "widgets.schema.example.io".into(),
        storage_version: "v1".into(),
        custom: Some(Arc::new(CustomResource::default())),
        schema: schema::custom(&source),
    })
}

fn json_of(path: &str, resources: &[Arc<ResourceInfo>]) -> Value {
    let document = document(path, "application/json", resources).unwrap();
    serde_json::from_slice(&document.body).unwrap()
}

#[test]
fn the_index_names_every_group_version_once() {
    let index = json_of("/openapi/v3", &[widget(true)]);
    let paths = index["paths"].as_object().unwrap();
    for name in ["api/v1", "apis/apps/v1", "apis/apps", "version", "apis/schema.example.io/v1"] {
        let url = paths[name]["serverRelativeURL"].as_str().unwrap();
        assert!(url.starts_with(&format!("/openapi/v3/{name}?hash=")), "{url}");
        let document = document(url, "application/json", &[widget(true)]).unwrap();
        assert!(url.ends_with(document.etag.trim_matches('"')));
    }
}

#[test]
fn built_in_documents_are_complete() {
    let document = json_of("/openapi/v3/apis/apps/v1", &[]);
    let patch =
        &document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"];
    assert!(patch["requestBody"]["content"]["application/strategic-merge-patch+json"].is_object());
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let containers = &schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"];
    assert_eq!(containers["x-kubernetes-patch-merge-key"], "name");
    let policy = &schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["restartPolicy"];
    assert_eq!(policy["enum"], json!(["Always", "Never", "OnFailure"]));
    let mut missing = Vec::new();
    find_dangling(&document, schemas, &mut missing);
    assert_eq!(missing, Vec::<String>::new());
}

fn find_dangling(value: &Value, schemas: &Map<String, Value>, missing: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(target)) = fields.get("$ref") {
                let name = target.rsplit('/').next().unwrap();
                if !schemas.contains_key(name) {
                    missing.push(name.to_owned());
                }
            }
            fields.values().for_each(|child| find_dangling(child, schemas, missing));
        }
        Value::Array(items) => items.iter().for_each(|i| find_dangling(i, schemas, missing)),
        _ => {}
    }
}

#[test]
fn custom_documents_follow_their_schema() {
    let document = json_of("/openapi/v3/apis/schema.example.io/v1", &[widget(true)]);
    let paths = document["paths"].as_object().unwrap();
    let names: Vec<&String> = paths.keys().collect();
    let base = "/apis/schema.example.io/v1";
    let expected = [
        format!("{base}/namespaces/{{namespace}}/widgets"),
        format!("{base}/namespaces/{{namespace}}/widgets/{{name}}"),
        format!("{base}/namespaces/{{namespace}}/widgets/{{name}}/status"),
        format!("{base}/widgets"),
    ];
    let mut sorted: Vec<String> = names.into_iter().cloned().collect();
    sorted.sort();
    assert_eq!(sorted, expected);
    let patch = &document["paths"][&expected[1]]["patch"];
    assert_eq!(
        patch["x-kubernetes-group-version-kind"],
        json!({"group": "schema.example.io", "kind": "Widget", "version": "v1"})
    );
    assert_eq!(patch["operationId"], "patchSchemaExampleIoV1NamespacedWidget");
    let content: Vec<&String> =
        patch["requestBody"]["content"].as_object().unwrap().keys().collect();
    assert_eq!(
        content,
        [
            "application/apply-patch+yaml",
            "application/json-patch+json",
            "application/merge-patch+json"
        ]
    );
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let widget = &schemas["io.example.schema.v1.Widget"];
    assert_eq!(widget["properties"]["spec"]["properties"]["io"]["anyOf"][0]["type"], "integer");
    assert!(widget["properties"]["metadata"]["allOf"][0]["$ref"].is_string());
    assert!(schemas.contains_key("io.example.schema.v1.WidgetList"));
    let mut missing = Vec::new();
    find_dangling(&document, schemas, &mut missing);
    assert_eq!(missing, Vec::<String>::new());
}

#[test]
fn cluster_scoped_kinds_have_no_namespace() {
    let document = json_of("/openapi/v3/apis/schema.example.io/v1", &[widget(false)]);
    assert!(!document.to_string().contains("{namespace}"));
    let path = "/apis/schema.example.io/v1/widgets/{name}";
    assert_eq!(document["paths"][path]["patch"]["operationId"], "patchSchemaExampleIoV1Widget");
}

#[test]
fn old_clients_get_one_operation_per_kind() {
    let accept = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    let document = document("/openapi/v2?timeout=32s", accept, &[widget(true)]).unwrap();
    let text = String::from_utf8_lossy(&document.body);
    assert!(text.contains("/apis/schema.example.io/v1/namespaces/{namespace}/widgets/{name}"));
    assert!(text.contains("group: \"schema.example.io\"\nkind: Widget\nversion: v1\n"));
    assert_eq!(document.content_type, GNOSTIC);
    let swagger = json_of("/openapi/v2", &[widget(true)]);
    assert!(swagger["definitions"]["io.k8s.api.core.v1.Pod"].is_object());
    assert!(swagger["definitions"]["io.example.schema.v1.Widget"].is_object());
}

#[test]
fn unknown_documents_are_absent() {
    assert!(document("/openapi/v3/apis/nothing.io/v1", "*/*", &[]).is_none());
    assert!(document("/openapi/v4", "*/*", &[]).is_none());
}
