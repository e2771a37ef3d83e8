//! Defaults of custom resources that readers get although they are not stored.

use kopf_apiserver::{Patch, Server, Target};
use serde_json::{Value, json};

use crate::foos;

const CRDS: &str = "customresourcedefinitions.apiextensions.k8s.io";
const FOOS: &str = "foos.t.io";

fn schema(properties: Value) -> Value {
    json!({"openAPIV3Schema": {"type": "object", "properties": properties}})
}

/// A `Foo` named `a` with some content.
fn foo(mut content: Value) -> Value {
    content["apiVersion"] = "t.io/v1".into();
    content["kind"] = "Foo".into();
    content["metadata"] = json!({"name": "a"});
    content
}

async fn server(version: Value) -> Server {
    let server = Server::builder().controllers(false).build();
    server.load_yaml(&foos::definition(version).to_string()).await.unwrap();
    server
}

async fn read(server: &Server, path: &str) -> Value {
    let client = kube::Client::new(server.service(), "default");
    let request = http::Request::get(path).body(Vec::new()).unwrap();
    client.request(request).await.unwrap()
}

#[tokio::test]
async fn a_new_default_is_seen_in_old_objects() {
    let spec = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let server = server(json!({"schema": schema(json!({"spec": spec}))})).await;
    let foo = foo(json!({"spec": {"n": 1}}));
    server.local().create(FOOS, "default", foo).await.unwrap();
    let late = json!([{"op": "add", "value": {"type": "string", "default": "added"},
        "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/late"}]);
    let definition = Target::new(CRDS, "", FOOS);
    server.local().patch(definition, Patch::Json(late)).await.unwrap();
    let path = "/apis/t.io/v1/namespaces/default/foos";
    let listed = read(&server, path).await;
    assert_eq!(listed["items"][0]["spec"]["late"], "added");
    let object = read(&server, &format!("{path}/a")).await;
    assert_eq!(object["spec"], json!({"n": 1, "late": "added"}));
    // Writing back what was read stores the defaults, once.
    let target = Target::new(FOOS, "default", "a");
    let nothing = || Patch::Merge(json!({"spec": {"n": 1}}));
    let first = server.local().patch(target, nothing()).await.unwrap();
    assert_ne!(first.resource_version().to_string(), object["metadata"]["resourceVersion"]);
    let second = server.local().patch(target, nothing()).await.unwrap();
    assert_eq!(first.resource_version(), second.resource_version());
}

#[tokio::test]
async fn the_default_of_a_status_is_stored_by_the_first_update() {
    let status = json!({"type": "object", "default": {"phase": "Unknown"},
        "properties": {"phase": {"type": "string"}}});
    let version =
        json!({"schema": schema(json!({"status": status})), "subresources": {"status": {}}});
    let server = server(version).await;
    let foo = foo(json!({"status": {"phase": "Mine"}}));
    let created = server.local().create(FOOS, "default", foo).await.unwrap();
    let path = "/apis/t.io/v1/namespaces/default/foos/a";
    assert_eq!(read(&server, path).await["status"]["phase"], "Unknown");
    let target = Target::new(FOOS, "default", "a");
    let patched = server.local().patch(target, Patch::Merge(json!({"spec": null}))).await.unwrap();
    assert_ne!(created.resource_version(), patched.resource_version());
}

#[tokio::test]
async fn names_go_to_the_next_definition() {
    let definition = |plural: &str, kind: &str| {
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.t.io")},
            "spec": {"group": "t.io", "scope": "Namespaced",
                "names": {"plural": plural, "kind": kind, "shortNames": ["s"]},
                "versions": [{"name": "v1", "served": true, "storage": true,
                    "schema": schema(json!({}))}]}})
    };
    let server = Server::builder().controllers(false).build();
    for object in [definition("ones", "One"), definition("twos", "Two")] {
        server.load_yaml(&object.to_string()).await.unwrap();
    }
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/twos.t.io";
    let accepted = |crd: Value| {
        let mut conditions = crd["status"]["conditions"].as_array().unwrap().clone();
        conditions.retain(|condition| condition["type"] == "NamesAccepted");
        conditions[0]["status"].clone()
    };
    assert_eq!(accepted(read(&server, path).await), "False");
    let gone = Target::new(CRDS, "", "ones.t.io");
    server.local().delete(gone, kopf_apiserver::DeleteOptions::default()).await.unwrap();
    assert_eq!(accepted(read(&server, path).await), "True");
}

/// Without a conversion webhook, fields that another version does not declare cannot be tracked.
#[tokio::test]
async fn managers_of_versions_that_differ_are_forgotten() {
    let version = |name: &str, storage: bool, field: &str| {
        let spec = json!({"type": "object", "properties": {field: {"type": "string"}}});
        json!({"name": name, "served": true, "storage": storage,
            "schema": schema(json!({"spec": spec}))})
    };
    let mut definition = foos::definition(json!({}));
    definition["spec"]["versions"] =
        json!([version("v1", true, "a"), version("v1beta1", false, "b")]);
    let server = Server::builder().controllers(false).build();
    server.load_yaml(&definition.to_string()).await.unwrap();
    let client = kube::Client::new(server.service(), "default");
    let send = |method: &'static str, kind: &'static str, version: &'static str, body: Value| {
        let client = client.clone();
        async move {
            let name = if method == "POST" { "" } else { "/x?fieldManager=m" };
            let path = format!("/apis/t.io/{version}/namespaces/default/foos{name}");
            let request = http::Request::builder().method(method).uri(path);
            let request = request.header("content-type", kind).body(body.to_string().into_bytes());
            client.request::<Value>(request.unwrap()).await
        }
    };
    let object = |version: &str, spec: Value| {
        json!({"apiVersion": format!("t.io/{version}"), "kind": "Foo",
            "metadata": {"name": "x"}, "spec": spec})
    };
    let json_type = "application/json";
    let first = object("v1beta1", json!({"b": "1"}));
    send("POST", json_type, "v1beta1", first).await.unwrap();
    let merge = "application/merge-patch+json";
    let patched = send("PATCH", merge, "v1", json!({"spec": {"a": "1"}})).await.unwrap();
    assert_eq!(patched["metadata"].get("managedFields"), None);
    let apply = "application/apply-patch+yaml";
    let stated = object("v1beta1", json!({"b": "2"}));
    send("PATCH", apply, "v1beta1", stated).await.unwrap();
    let refused = send("PATCH", apply, "v1", object("v1", json!({"a": "2"}))).await;
    let Err(kube::Error::Api(status)) = refused else { panic!("{refused:?}") };
    assert_eq!(
        status.message,
        "failed to prune fields: failed to convert merged object to last applied version: \
         .spec.a: field not declared in schema"
    );
}
