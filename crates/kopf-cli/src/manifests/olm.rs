//! A bundle for the Operator Lifecycle Manager: the same rights, definitions and Deployment, in its
//! own format.
//!
//! Pure. A catalogue installs the bundle in a namespace that is not known here.

use kopf_core::{Handler, Settings};
use serde_json::{Value, json};

use super::helm::ChartFile;
use super::{Options, definitions, deployment, rights_of, to_yaml};

/// The default version of the bundle, until its author chooses one.
const VERSION: &str = "0.1.0";
/// The environment variable with the namespace that the catalogue chooses.
const NAMESPACE: &str = "POD_NAMESPACE";
/// The channel of the bundle.
const CHANNEL: &str = "candidate";

/// The default icon, as SVG in Base64: catalogues reject bundles without an icon.
const ICON: &str = "\
    PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciIHZpZXdCb3g9IjAgMCAzMiAzMiI+PHJlY3Qgd2\
    lkdGg9IjMyIiBoZWlnaHQ9IjMyIiByeD0iNyIgZmlsbD0iIzRmNDZlNSIvPjxwYXRoIGQ9Ik0xMCA4djE2TTEwIDE3\
    bDEwLTlNMTMuNSAxNCAyMSAyNCIgc3Ryb2tlPSIjZmZmIiBzdHJva2Utd2lkdGg9IjMiIHN0cm9rZS1saW5lY2FwPS\
    Jyb3VuZCIgc3Ryb2tlLWxpbmVqb2luPSJyb3VuZCIgZmlsbD0ibm9uZSIvPjwvc3ZnPg==";

/// The files of the bundle.
///
/// # Errors
/// Fails only if a value cannot be written as YAML, which never happens for JSON trees.
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
    for mut service in deployments(handlers, options).into_iter().skip(1) {
        // It is created in the operator's namespace.
        if service["kind"] == "Service"
            && let Some(metadata) = service["metadata"].as_object_mut()
        {
            metadata.remove("namespace");
            files.push(file(&format!("manifests/{name}.service.yaml"), to_yaml(&[service])?));
        }
    }
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

/// The ClusterServiceVersion: owned definitions, rights, and deployment.
fn service_version(handlers: &[Handler], settings: &Settings, options: &Options) -> Value {
    let name = &options.name;
    let everywhere = Options { serves: None, ..options.clone() };
    let deployments = deployments(handlers, options);
    let spec = deployments.first().map(|it| it["spec"].clone()).unwrap_or_default();
    let owned: Vec<Value> = definitions(handlers).iter().flat_map(owned).collect();
    let [cluster_permissions, permissions] = ["ClusterRole", "Role"].map(|kind| {
        let rules = rules(handlers, settings, &everywhere, kind);
        let permissions = json!({"serviceAccountName": name, "rules": rules});
        if rules.is_empty() { json!([]) } else { json!([permissions]) }
    });
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
                "alm-examples": examples(handlers),
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
            "icon": [{"base64data": ICON, "mediatype": "image/svg+xml"}],
            "installModes": modes,
            "customresourcedefinitions": {"owned": owned},
            "install": {
                "strategy": "deployment",
                "spec": {
                    "clusterPermissions": cluster_permissions,
                    "permissions": permissions,
                    "deployments": [{"name": name, "spec": spec}],
                },
            },
        },
    })
}

/// An object of each kind, with the fields that the schema requires.
fn examples(handlers: &[Handler]) -> String {
    let example = |definition: &Value| {
        let spec = &definition["spec"];
        let versions = spec["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
        let versions: Vec<Value> = versions
            .iter()
            .map(|version| {
                let group = spec["group"].as_str().unwrap_or_default();
                let name = version["name"].as_str().unwrap_or_default();
                let schema = &version["schema"]["openAPIV3Schema"]["properties"]["spec"];
                json!({
                    "apiVersion": format!("{group}/{name}"),
                    "kind": spec["names"]["kind"],
                    "metadata": {"name": "example"},
                    "spec": required(schema),
                })
            })
            .collect();
        versions
    };
    let examples: Vec<Value> = definitions(handlers).iter().flat_map(example).collect();
    json!(examples).to_string()
}

/// The minimal value of a schema.
fn required(schema: &Value) -> Value {
    if let Some(value) = schema.get("default").or_else(|| schema["enum"].get(0)) {
        return value.clone();
    }
    match schema["type"].as_str() {
        Some("string") => json!("example"),
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or_else(|| json!(1)),
        Some("boolean") => json!(false),
        Some("array") => json!([]),
        _ => {
            let names = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
            let names = names.iter().filter_map(Value::as_str);
            names.map(|name| (name.to_owned(), required(&schema["properties"][name]))).collect()
        }
    }
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

/// The rules of all roles of a kind that are bound to the operator, as for kubectl.
fn rules(handlers: &[Handler], settings: &Settings, options: &Options, kind: &str) -> Vec<Value> {
    let documents = super::rights_documents(&rights_of(handlers, settings, options), options);
    let is_bound = |role: &Value| {
        let is_binding = |it: &&Value| it["kind"] == format!("{kind}Binding");
        documents
            .iter()
            .filter(is_binding)
            .any(|it| it["roleRef"]["name"] == role["metadata"]["name"])
    };
    let roles = documents.iter().filter(|it| it["kind"] == kind && is_bound(it));
    roles.flat_map(|role| role["rules"].as_array().cloned().unwrap_or_default()).collect()
}

/// The Deployment and related objects, in the namespace that the catalogue chooses.
fn deployments(handlers: &[Handler], options: &Options) -> Vec<Value> {
    let has_webhooks = handlers.iter().any(|it| it.kind.family().is_asked());
    let options = Options { serves: None, namespace: format!("$({NAMESPACE})"), ..options.clone() };
    let mut documents = deployment::documents(&options, has_webhooks);
    let container = &mut documents[0]["spec"]["template"]["spec"]["containers"][0];
    if container["env"].is_null() {
        container["env"] = json!([deployment::own_namespace(NAMESPACE)]);
    }
    documents
}
