//! The custom resource used in many tests.

use serde_json::{Value, json};

/// The definition of `foos.t.io` with one version, of which only the specifics are given.
pub(crate) fn definition(mut version: Value) -> Value {
    version["name"] = "v1".into();
    version["served"] = true.into();
    version["storage"] = true.into();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "foos.t.io"},
        "spec": {
            "group": "t.io", "scope": "Namespaced",
            "names": {"plural": "foos", "kind": "Foo"},
            "versions": [version],
        },
    })
}
