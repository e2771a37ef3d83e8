//! The requests of the benchmark: small objects of a built-in and of a custom kind.

use bytes::Bytes;
use serde_json::{Value, json};

use crate::http::Request;

/// The group of the custom kind.
const GROUP: &str = "bench.kopf.dev";

/// The path of the definitions.
pub(super) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// The name of the definition.
pub(super) fn definition_name() -> String {
    format!("widgets.{GROUP}")
}

/// The path of the custom objects of a namespace.
pub(super) fn widgets(namespace: &str) -> String {
    format!("/apis/{GROUP}/v1/namespaces/{namespace}/widgets")
}

/// A definition with a default, limits and a CEL rule.
pub(super) fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": definition_name()},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {
                    "type": "object",
                    "required": ["size"],
                    "properties": {
                        "size": {"type": "integer", "minimum": 1},
                        "limit": {"type": "integer", "default": 1000},
                        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                    },
                    "x-kubernetes-validations": [
                        {"rule": "self.size <= self.limit", "message": "too large"},
                    ],
                }}}},
            }],
        },
    })
}

/// A custom object that its definition accepts.
pub(super) fn widget(index: usize) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1"),
        "kind": "Widget",
        "metadata": {"name": format!("object-{index}")},
        "spec": {"size": 1 + index % 100, "labels": {"team": "a", "tier": "b"}},
    })
}

/// The path of the ConfigMaps of a namespace.
pub(super) fn config_maps(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/configmaps")
}

/// A small ConfigMap.
pub(super) fn config_map(index: usize, namespace: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": format!("object-{index}"),
            "namespace": namespace,
            "labels": {"app": "bench"},
        },
        "data": {"key": "value", "other": "a somewhat longer value to carry around"},
    })
}

/// Creates a ConfigMap.
pub(super) fn create(index: usize, namespace: &str) -> Request {
    post(&config_maps(namespace), &config_map(index, namespace))
}

/// Applies a ConfigMap.
pub(super) fn apply(index: usize, namespace: &str, object: &Value) -> Request {
    Request {
        method: "PATCH".into(),
        path: format!("{}/object-{index}?fieldManager=bench", config_maps(namespace)),
        headers: vec![("content-type".into(), "application/apply-patch+yaml".into())],
        body: Some(bytes(object)),
    }
}

/// Posts any object.
pub(super) fn post(path: &str, body: &Value) -> Request {
    Request {
        method: "POST".into(),
        path: path.into(),
        headers: vec![("content-type".into(), "application/json".into())],
        body: Some(bytes(body)),
    }
}

/// Deletes any object.
pub(super) fn delete(path: &str) -> Request {
    Request { method: "DELETE".into(), path: path.into(), ..Request::default() }
}

fn bytes(value: &Value) -> Bytes {
    Bytes::from(value.to_string())
}
