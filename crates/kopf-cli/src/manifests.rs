//! Deployment manifests of an operator, derived from what its handlers declare.
//!
//! Pure: renders handlers and options as text. Callers write the files. `kopf_core::rights` decides
//! which rights are needed.

mod deployment;
pub mod extras;
pub mod helm;
pub mod keeping;
pub mod monitoring;
pub mod olm;
mod rbac;

use std::sync::Arc;

use kopf_core::handler::Family;
use kopf_core::rights::Right;
use kopf_core::{Handler, Settings, convert, definition, endpoint, rights};
use serde_json::{Value, json};

pub use rbac::documents as rights_documents;

/// The file with the rights.
const RIGHTS: &str = "rbac.yaml";
/// The maximum length of a comment line.
const COMMENT_MAX: usize = 100;

/// Options that do not follow from the handlers.
#[derive(Clone, Debug)]
pub struct Options {
    /// The operator's name, used for its Deployment, ServiceAccount and roles.
    pub name: String,
    /// The namespace in which the operator runs.
    pub namespace: String,
    /// The namespaces that it serves; `None` means the whole cluster.
    pub serves: Option<Vec<String>>,
    /// The container image.
    pub image: String,
    /// The name of the program file, for the Dockerfile.
    pub program: String,
    /// The number of replicas; if there is more than one, one of them leads and the others stand
    /// by.
    pub replicas: u32,
    /// Whether the replicas share the objects instead.
    pub shards: bool,
    /// Whether metrics are served over TLS, to authorized clients only.
    pub secure_metrics: bool,
    /// The namespaces whose Pods may read the metrics, for the network policy; empty means all.
    pub metrics_from: Vec<String>,
}

/// One file to write.
#[derive(Clone, Debug, PartialEq)]
pub struct File {
    /// Its name in the folder.
    pub name: &'static str,
    /// Notes for a comment at the start of the file.
    pub notes: Vec<String>,
    /// The content.
    pub content: Content,
}

/// The content of a file.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// Manifests for the cluster.
    Documents(Vec<Value>),
    /// The list of the other files, for `kubectl apply -k`.
    Kustomization(Value),
    /// How to build the image.
    Dockerfile(String),
}

/// The files to write, in the order in which their manifests are applied.
#[must_use]
pub fn files(handlers: &[Handler], settings: &Settings, options: &Options) -> Vec<File> {
    let rights = rights_of(handlers, settings, options);
    let definitions = pointed_definitions(handlers, options);
    let has_webhooks = handlers.iter().any(|it| it.kind.family().is_asked());
    let mut files = Vec::new();
    let mut add = |name, documents| {
        files.push(File { name, notes: Vec::new(), content: Content::Documents(documents) });
    };
    // The namespace `default` always exists and does not belong to the operator.
    if options.namespace != "default" {
        add("namespace.yaml", vec![namespace(&options.namespace)]);
    }
    if !definitions.is_empty() {
        add("crds.yaml", definitions);
    }
    add(RIGHTS, rbac::documents(&rights, options));
    add("deployment.yaml", deployment::documents(options, has_webhooks));
    for file in files.iter_mut().filter(|file| file.name == RIGHTS) {
        file.notes = rights::notes(handlers);
    }
    let kustomization = Content::Kustomization(kustomization(&files));
    files.push(File { name: "kustomization.yaml", notes: Vec::new(), content: kustomization });
    let dockerfile = Content::Dockerfile(deployment::dockerfile(&options.program));
    files.push(File { name: "Dockerfile", notes: Vec::new(), content: dockerfile });
    files
}

/// The rights of an operator, as [`files`] grants them.
#[must_use]
pub fn rights_of(handlers: &[Handler], settings: &Settings, options: &Options) -> Vec<Right> {
    let serves = match options.serves {
        None => rights::Serves::Cluster,
        Some(_) => rights::Serves::Namespaces,
    };
    rights::of(handlers, settings, serves)
}

/// The custom resource definitions of all typed handlers, one per name, with all versions.
#[must_use]
pub fn definitions(handlers: &[Handler]) -> Vec<Value> {
    definition::typed(handlers)
}

/// The same definitions, with a conversion webhook that points to the operator before it has
/// started.
///
/// The operator adds its certificate itself. Until then, requests that need a conversion fail.
/// Without the webhook, the cluster would treat one version as another and lose data.
fn pointed_definitions(handlers: &[Handler], options: &Options) -> Vec<Value> {
    let conversions: Vec<Arc<Handler>> = handlers
        .iter()
        .filter(|handler| handler.kind.family() == Family::Conversion)
        .map(|handler| Arc::new(handler.clone()))
        .collect();
    let converted: Vec<String> =
        convert::charts(&conversions).iter().map(convert::Chart::name).collect();
    let mut definitions = definitions(handlers);
    for definition in &mut definitions {
        let name = definition["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        if converted.contains(&name) {
            let service = endpoint::service(&options.namespace, &options.name);
            let config = json!({"service": service});
            definition["spec"]["conversion"] = endpoint::conversion(&config, &name);
        }
    }
    definitions
}

fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

fn kustomization(files: &[File]) -> Value {
    let resources: Vec<&str> = files.iter().map(|file| file.name).collect();
    json!({
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": resources,
    })
}

impl Options {
    /// Whether the replicas have to elect a leader or share objects.
    pub(crate) fn has_replicas(&self) -> bool {
        self.replicas > 1 || self.shards
    }
}

impl File {
    /// The text of the file.
    ///
    /// # Errors
    /// Fails only if a value cannot be written as YAML, which never happens for JSON trees.
    pub fn text(&self) -> Result<String, serde_norway::Error> {
        let text = match &self.content {
            Content::Documents(documents) => to_yaml(documents)?,
            Content::Kustomization(document) => to_yaml(std::slice::from_ref(document))?,
            Content::Dockerfile(text) => text.clone(),
        };
        Ok(self.notes.iter().map(|note| comment(note)).collect::<String>() + &text)
    }
}

/// A text as comment lines.
fn comment(text: &str) -> String {
    let mut lines = vec!["#".to_owned()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is at least the first one");
        if line.len() > 1 && line.len() + 1 + word.len() > COMMENT_MAX {
            lines.push(format!("# {word}"));
        } else {
            line.push(' ');
            line.push_str(word);
        }
    }
    lines.join("\n") + "\n"
}

/// Several documents as one YAML text.
///
/// # Errors
/// Fails only if a value cannot be written as YAML, which never happens for JSON trees.
pub fn to_yaml(documents: &[Value]) -> Result<String, serde_norway::Error> {
    let texts: Result<Vec<String>, _> = documents.iter().map(serde_norway::to_string).collect();
    Ok(texts?.join("---\n"))
}

#[cfg(test)]
mod tests;
