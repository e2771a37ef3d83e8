//! Deployment manifests of an operator, derived from what its handlers declare.
//!
//! Pure: from handlers and options to documents. Writing files is for callers.

mod rbac;

use std::collections::BTreeMap;

use kopf_core::Handler;
use serde_json::{Value, json};

pub use rbac::{Rule, Scope, UnknownResource, rules};

/// What the handlers cannot know.
#[derive(Clone, Debug)]
pub struct Options {
    /// The operator's name: of its Deployment, ServiceAccount and roles.
    pub name: String,
    /// The namespace that the operator itself lives in.
    pub namespace: String,
    /// The namespaces that it serves; none means the whole cluster.
    pub serves: Option<Vec<String>>,
    /// The container image.
    pub image: String,
}

/// The files to write: name and documents, in the order of `kustomization.yaml`.
///
/// # Errors
/// Fails when a handler's selector does not say which API group and plural it means.
pub fn files(
    handlers: &[Handler],
    options: &Options,
) -> Result<Vec<(String, Vec<Value>)>, UnknownResource> {
    let definitions = definitions(handlers);
    let mut files = Vec::new();
    if !definitions.is_empty() {
        files.push(("crds.yaml".to_owned(), definitions));
    }
    files.push(("rbac.yaml".to_owned(), rbac::documents(handlers, options)?));
    files.push(("deployment.yaml".to_owned(), vec![deployment(options)]));
    let resources: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    let kustomization = json!({
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": resources,
    });
    files.push(("kustomization.yaml".to_owned(), vec![kustomization]));
    Ok(files)
}

/// The custom resource definitions of all typed handlers, one per name.
#[must_use]
pub fn definitions(handlers: &[Handler]) -> Vec<Value> {
    let mut by_name = BTreeMap::new();
    for crd in handlers.iter().filter_map(|handler| handler.crd) {
        let definition = crd();
        by_name.insert(
            definition["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
            definition,
        );
    }
    by_name.into_values().collect()
}

/// The port of probes and metrics inside the container.
const PROBE_PORT: u16 = 8080;

fn deployment(options: &Options) -> Value {
    let mut arguments =
        vec![json!("run"), json!(format!("--liveness=http://0.0.0.0:{PROBE_PORT}/healthz"))];
    match &options.serves {
        None => arguments.push(json!("--all-namespaces")),
        Some(namespaces) => {
            arguments.extend(namespaces.iter().map(|name| json!(format!("--namespace={name}"))));
        }
    }
    let labels = json!({"app.kubernetes.io/name": options.name});
    let probe =
        |path: &str| json!({"httpGet": {"path": path, "port": "probes"}, "periodSeconds": 10});
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": options.name, "namespace": options.namespace, "labels": labels},
        "spec": {
            "replicas": 1,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "serviceAccountName": options.name,
                    "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
                    "containers": [{
                        "name": "operator",
                        "image": options.image,
                        "args": arguments,
                        "ports": [{"name": "probes", "containerPort": PROBE_PORT}],
                        "livenessProbe": probe("/healthz"),
                        "readinessProbe": probe("/readyz"),
                        "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"memory": "128Mi"}},
                        "securityContext": {
                            "allowPrivilegeEscalation": false,
                            "readOnlyRootFilesystem": true,
                            "capabilities": {"drop": ["ALL"]},
                        },
                    }],
                },
            },
        },
    })
}

/// Several documents as one YAML text.
///
/// # Errors
/// Fails only if a value cannot be written as YAML, which JSON trees always can.
pub fn to_yaml(documents: &[Value]) -> Result<String, serde_norway::Error> {
    let texts: Result<Vec<String>, _> = documents.iter().map(serde_norway::to_string).collect();
    Ok(texts?.join("---\n"))
}

#[cfg(test)]
mod tests;
