//! A small part of kustomize in this process: a base, and an overlay that changes it. Pure.
//!
//! An overlay has a name prefix, labels that are also selectors, and a patch for an object of a
//! kind and name. [`Overlay::files`] writes the same overlay as files for `kubectl apply -k`.

use serde_json::{Map, Value, json};

use crate::Sample;

/// The manifest that all Samples share.
const BASE: &str = include_str!("../kustomize/demo-deployment.yaml");

/// The differences between a Sample and the base.
#[derive(Clone, Debug)]
pub struct Overlay {
    name_prefix: String,
    labels: Map<String, Value>,
    patch: Value,
}

/// Why an overlay cannot be applied.
#[derive(Debug, PartialEq, Eq)]
pub struct NoTarget {
    patch: String,
    base: String,
}

impl std::fmt::Display for NoTarget {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "the patch is for {}, but the base is {}", self.patch, self.base)
    }
}

impl std::error::Error for NoTarget {}

/// The manifest that all Samples share.
///
/// # Panics
/// Panics if the manifest in this program is not YAML; a test checks it.
#[must_use]
pub fn base() -> Value {
    serde_norway::from_str(BASE).expect("the manifest in this program is YAML")
}

impl Overlay {
    /// The overlay of a Sample.
    #[must_use]
    pub fn of(sample: &Sample) -> Self {
        let name = sample.metadata.name.as_deref().unwrap_or_default();
        Self {
            name_prefix: format!("{name}-"),
            labels: Map::from_iter([("app".to_owned(), name.into())]),
            patch: json!({
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": "demo-deploy"},
                "spec": {"replicas": sample.spec.count},
            }),
        }
    }

    /// The base with all changes.
    ///
    /// # Errors
    /// Fails if the patch is for an object other than the base.
    pub fn apply(&self, base: &Value) -> Result<Value, NoTarget> {
        if identity(base) != identity(&self.patch) {
            return Err(NoTarget { patch: identity(&self.patch), base: identity(base) });
        }
        let mut result = base.clone();
        merge(&mut result, &self.patch);
        let name = base["metadata"]["name"].as_str().unwrap_or_default();
        result["metadata"]["name"] = format!("{}{name}", self.name_prefix).into();
        let labels = json!({
            "metadata": {"labels": self.labels},
            "spec": {
                "selector": {"matchLabels": self.labels},
                "template": {"metadata": {"labels": self.labels}},
            },
        });
        merge(&mut result, &labels);
        Ok(result)
    }

    /// The overlay as the files of a kustomization: name and content.
    #[must_use]
    pub fn files(&self, namespace: &str) -> Vec<(&'static str, String)> {
        let kustomization = json!({
            "apiVersion": "kustomize.config.k8s.io/v1beta1",
            "kind": "Kustomization",
            "namespace": namespace,
            "namePrefix": self.name_prefix,
            "labels": [{"pairs": self.labels, "includeSelectors": true}],
            "resources": ["demo-deployment.yaml"],
            "patches": [{"path": "patch.yaml"}],
        });
        // JSON is also YAML, and needs no quoting rules.
        vec![
            ("kustomization.yaml", kustomization.to_string()),
            ("demo-deployment.yaml", BASE.to_owned()),
            ("patch.yaml", self.patch.to_string()),
        ]
    }
}

fn identity(manifest: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let version = text(&manifest["apiVersion"]);
    format!("{version} {} {}", text(&manifest["kind"]), text(&manifest["metadata"]["name"]))
}

/// Merges the fields of a patch into a manifest; `null` removes fields, lists are replaced.
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (key, value) in patch {
        if value.is_null() {
            target.as_object_mut().map(|target| target.shift_remove(key));
        } else {
            merge(&mut target[key], value);
        }
    }
}

#[cfg(test)]
mod tests;
