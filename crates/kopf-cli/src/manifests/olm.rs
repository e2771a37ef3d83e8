//! A bundle for the Operator Lifecycle Manager: the same rights, definitions and Deployment, in its
//! own format.
//!
//! Pure. The bundle is installed by a catalogue, into a namespace that is not known here.

use kopf_core::{Handler, Settings};
use serde_json::{Value, json};

use super::helm::ChartFile;
use super::{Options, definitions, deployment, rights_of, to_yaml};

/// The version of the bundle, until its author chooses one.
const VERSION: &str = "0.1.0";
/// The channel of the bundle.
const CHANNEL: &str = "alpha";

/// The files of the bundle.
///
/// # Errors
/// Fails only if a value cannot be written as YAML, which JSON trees always can.
pub fn files(
    handlers: &[Handler],
    settings: &Settings,
    options: &Options,
) -> Result<Vec<ChartFile>, serde_norway::Error> {
    let name = &options.name;
    let service_version = service_version(handlers, settings, options);
    let mut files = vec![
        file("metadata/annotations.yaml", to_yaml(&[annotations(name)])?),
        file(&format!("manifests/{name}.clusterserviceversion.yaml"), to_yaml(&[service_version])?),
        file("tests/scorecard/config.yaml", to_yaml(&[scorecard()])?),
        file("bundle.Dockerfile", dockerfile(name)),
    ];
    for definition in definitions(handlers) {
        let plural = definition["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        files.push(file(&format!("manifests/{plural}.crd.yaml"), to_yaml(&[definition])?));
    }
    Ok(files)
}

fn file(path: &str, text: String) -> ChartFile {
    ChartFile { path: path.to_owned(), text }
}

fn bundle_annotations(name: &str) -> [(&'static str, String); 6] {
    [
        ("operators.operatorframework.io.bundle.mediatype.v1", "registry+v1".to_owned()),
        ("operators.operatorframework.io.bundle.manifests.v1", "manifests/".to_owned()),
        ("operators.operatorframework.io.bundle.metadata.v1", "metadata/".to_owned()),
        ("operators.operatorframework.io.bundle.package.v1", name.to_owned()),
        ("operators.operatorframework.io.bundle.channels.v1", CHANNEL.to_owned()),
        ("operators.operatorframework.io.bundle.channel.default.v1", CHANNEL.to_owned()),
    ]
}

fn annotations(name: &str) -> Value {
    let annotations = bundle_annotations(name);
    let annotations: serde_json::Map<String, Value> =
        annotations.into_iter().map(|(name, value)| (name.to_owned(), json!(value))).collect();
    json!({"annotations": annotations})
}

fn dockerfile(name: &str) -> String {
    let labels = bundle_annotations(name).map(|(name, value)| format!("LABEL {name}={value}\n"));
    format!(
        "FROM scratch\n{}COPY manifests /manifests/\nCOPY metadata /metadata/\n",
        labels.concat()
    )
}

fn scorecard() -> Value {
    json!({
        "apiVersion": "scorecard.operatorframework.io/v1alpha3",
        "kind": "Configuration",
        "metadata": {"name": "config"},
        "stages": [{"parallel": true, "tests": []}],
    })
}

/// The ClusterServiceVersion: what the operator owns, may do, and how it is deployed.
fn service_version(handlers: &[Handler], settings: &Settings, options: &Options) -> Value {
    let name = &options.name;
    let everywhere = Options { serves: None, ..options.clone() };
    let has_webhooks = handlers.iter().any(|it| it.kind.family().is_asked());
    let deployments = deployment::documents(&everywhere, has_webhooks);
    let spec = deployments.first().map(|it| it["spec"].clone()).unwrap_or_default();
    let owned: Vec<Value> = definitions(handlers).iter().flat_map(owned).collect();
    let permissions = json!([{
        "serviceAccountName": name, "rules": rules(handlers, settings, &everywhere),
    }]);
    let modes = ["OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"];
    let modes: Vec<Value> = modes
        .iter()
        .map(|mode| json!({"type": mode, "supported": *mode == "AllNamespaces"}))
        .collect();
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {
            "name": format!("{name}.v{VERSION}"),
            "namespace": "placeholder",
            "annotations": {
                "alm-examples": "[]",
                "capabilities": "Basic Install",
                "containerImage": options.image,
            },
        },
        "spec": {
            "displayName": name,
            "description": format!("The Kubernetes operator {name}."),
            "version": VERSION,
            "maturity": "alpha",
            "minKubeVersion": "1.25.0",
            "keywords": [name],
            "maintainers": [{"name": "the authors", "email": "authors@example.com"}],
            "provider": {"name": "the authors"},
            "icon": [{"base64data": "", "mediatype": "image/svg+xml"}],
            "installModes": modes,
            "customresourcedefinitions": {"owned": owned},
            "install": {
                "strategy": "deployment",
                "spec": {
                    "clusterPermissions": permissions,
                    "deployments": [{"name": name, "spec": spec}],
                },
            },
        },
    })
}

/// One entry per version of a definition.
fn owned(definition: &Value) -> Vec<Value> {
    let spec = &definition["spec"];
    let versions = spec["versions"].as_array().cloned().unwrap_or_default();
    let entry = |version: &Value| {
        json!({
            "name": definition["metadata"]["name"], "version": version["name"],
            "kind": spec["names"]["kind"], "displayName": spec["names"]["kind"],
            "description": format!("A {}.", spec["names"]["kind"].as_str().unwrap_or_default()),
        })
    };
    versions.iter().map(entry).collect()
}

/// The rules of the one ClusterRole, as for kubectl.
fn rules(handlers: &[Handler], settings: &Settings, options: &Options) -> Value {
    let documents = super::rights_documents(&rights_of(handlers, settings, options), options);
    let role = documents.into_iter().find(|document| document["kind"] == "ClusterRole");
    role.map(|role| role["rules"].clone()).unwrap_or_else(|| json!([]))
}
