//! The common definitions of the measured programs: the resource, its objects, and the cases.
//!
//! The server (`bench-server`) creates the objects; `bench-operator` (a separate package) and
//! `bench-controller` handle them. `kopf_operator.py` next to this crate is the same operator for
//! Kopf.

pub mod book;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The table of the objects in the embedded server.
pub const TABLE: &str = "widgets.bench.kopf.dev";
/// The namespace of the objects.
pub const NAMESPACE: &str = "default";

/// The typed object, for the `Controller`.
#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "bench.kopf.dev", version = "v1", kind = "Widget", namespaced)]
#[kube(status = "WidgetStatus")]
pub struct WidgetSpec {
    /// How large.
    pub size: i64,
    /// Which image.
    pub image: String,
    /// Arbitrary labels.
    pub labels: BTreeMap<String, String>,
    /// Ports to open.
    pub ports: Vec<Port>,
    /// A text.
    pub note: String,
}

/// A port.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct Port {
    /// Its name.
    pub name: String,
    /// Its number.
    pub port: i64,
}

/// The fields that handlers and others write.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
pub struct WidgetStatus {
    /// The result of the creation handler.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub create: Option<Value>,
    /// Changes that are irrelevant for all handlers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tick: Option<i64>,
}

/// The definition of the resource, with or without the status subresource.
#[must_use]
pub fn definition(has_status: bool) -> Value {
    let mut version = json!({
        "name": "v1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {
            "spec": {"type": "object", "properties": {
                "size": {"type": "integer"},
                "image": {"type": "string"},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "ports": {"type": "array", "items": {"type": "object", "properties": {
                    "name": {"type": "string"}, "port": {"type": "integer"},
                }}},
                "note": {"type": "string"},
            }},
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        }}},
    });
    if has_status {
        version["subresources"] = json!({"status": {}});
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": TABLE},
        "spec": {
            "group": "bench.kopf.dev",
            "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets", "singular": "widget"},
            "versions": [version],
        },
    })
}

/// One object; about 1.2 KB as the server sends it.
#[must_use]
pub fn widget(name: &str, index: usize) -> Value {
    // Copied, since creating objects is not measured.
    static TEMPLATE: LazyLock<Value> = LazyLock::new(template);
    let mut widget = TEMPLATE.clone();
    widget["metadata"]["name"] = name.into();
    widget["metadata"]["labels"]["number"] = (index % 100).to_string().into();
    widget["spec"]["size"] = (1 + index % 100).into();
    widget
}

/// One object of about 5 KB, the size of a typical Deployment.
#[must_use]
pub fn large_widget(name: &str, index: usize) -> Value {
    const LINES: usize = 32;
    let mut widget = widget(name, index);
    let line = widget["spec"]["note"].as_str().unwrap_or_default();
    widget["spec"]["note"] = line.repeat(LINES).into();
    widget
}

fn template() -> Value {
    json!({
        "apiVersion": "bench.kopf.dev/v1",
        "kind": "Widget",
        "metadata": {
            "name": "",
            "namespace": NAMESPACE,
            "labels": {"app": "bench", "tier": "backend", "number": ""},
        },
        "spec": {
            "size": 1,
            "image": "registry.example.com/team/application:v1.2.3",
            "labels": {"team": "platform", "cost-center": "1234", "stage": "production"},
            "ports": [
                {"name": "http", "port": 8080},
                {"name": "metrics", "port": 9090},
                {"name": "admin", "port": 9091},
            ],
            "note": "a text of some length that people write into their objects, \
                     so that they are not smaller than they are in real clusters",
        },
    })
}
