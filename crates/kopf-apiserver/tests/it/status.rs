//! Which metadata `/status` accepts, and who then owns it, as recorded from a real 1.33 server.

use kopf_apiserver::{LocalClient, Patch, Server, Target, User};
use serde_json::{Value, json};

const UID: &str = "11111111-1111-1111-1111-111111111111";

/// The part of metadata that a kind's status endpoint does not change.
#[derive(Clone, Copy, PartialEq)]
enum Kept {
    Nothing,
    Labels,
    Owners,
    Everything,
}

fn template() -> Value {
    json!({ "metadata": { "labels": { "a": "b" } },
            "spec": { "restartPolicy": "Always", "containers": [{ "name": "c", "image": "i" }] } })
}

/// Tables with apiVersion, kind, namespace and spec of an object.
fn kinds() -> Vec<(&'static str, &'static str, &'static str, &'static str, Value, Kept)> {
    let mut job = template();
    job["spec"]["restartPolicy"] = "Never".into();
    let workload = json!({ "selector": { "matchLabels": { "a": "b" } }, "template": template() });
    let definition = json!({ "group": "t.io", "scope": "Cluster",
        "names": { "plural": "xs", "kind": "X" },
        "versions": [{ "name": "v1", "served": true, "storage": true,
            "subresources": { "status": {} },
            "schema": { "openAPIV3Schema": { "type": "object",
                        "x-kubernetes-preserve-unknown-fields": true } } }] });
    vec![
        ("pods", "v1", "Pod", "ns", template()["spec"].clone(), Kept::Owners),
        ("deployments.apps", "apps/v1", "Deployment", "ns", workload.clone(), Kept::Labels),
        ("statefulsets.apps", "apps/v1", "StatefulSet", "ns", workload, Kept::Nothing),
        ("nodes", "v1", "Node", "", json!({}), Kept::Nothing),
        ("services", "v1", "Service", "ns", json!({ "ports": [{ "port": 80 }] }), Kept::Nothing),
        ("jobs.batch", "batch/v1", "Job", "ns", json!({ "template": job }), Kept::Nothing),
        (
            "flowschemas.flowcontrol.apiserver.k8s.io",
            "flowcontrol.apiserver.k8s.io/v1",
            "FlowSchema",
            "",
            json!({ "priorityLevelConfiguration": { "name": "exempt" } }),
            Kept::Everything,
        ),
        (
            "customresourcedefinitions.apiextensions.k8s.io",
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            "",
            definition,
            Kept::Nothing,
        ),
    ]
}

async fn world() -> LocalClient {
    let server = Server::builder().controllers(false).build();
    let client = server.local();
    let namespace = json!({ "metadata": { "name": "ns" } });
    client.create("namespaces", "", namespace).await.expect("a new namespace");
    client
}

/// The metadata that a status writer sends.
fn sent(name: &str) -> Value {
    json!({ "name": name, "labels": { "n": "1" }, "annotations": { "an": "1" },
            "ownerReferences": [{ "apiVersion": "v1", "kind": "ConfigMap", "name": "own",
                                  "uid": UID }] })
}

/// The names of the metadata fields that a manager owns.
fn owned(object: &Value, manager: &str) -> Vec<String> {
    let entries = object["metadata"]["managedFields"].as_array().expect("a list");
    let fields = entries
        .iter()
        .filter(|entry| entry["manager"] == manager)
        .filter_map(|entry| entry["fieldsV1"]["f:metadata"].as_object());
    let mut names: Vec<String> = fields.flat_map(|fields| fields.keys().cloned()).collect();
    names.sort();
    names
}

fn check(kind: &str, kept: Kept, object: &Value) {
    let metadata = &object["metadata"];
    let labels = match kept {
        Kept::Labels | Kept::Everything => json!({ "o": "1" }),
        Kept::Nothing | Kept::Owners => json!({ "n": "1", "o": "1" }),
    };
    assert_eq!(metadata["labels"], labels, "{kind}");
    let is_annotated = metadata["annotations"]["an"] == "1";
    assert_eq!(is_annotated, kept != Kept::Everything, "{kind}");
    let is_owned = metadata["ownerReferences"][0]["uid"] == UID;
    assert_eq!(is_owned, matches!(kept, Kept::Nothing | Kept::Labels), "{kind}");
    let mut expected = vec!["f:annotations"];
    if kept != Kept::Labels {
        expected.push("f:labels");
    }
    if kept != Kept::Owners {
        expected.push("f:ownerReferences");
    }
    // The real server assigns no owner to these, although definitions accept them.
    if kept == Kept::Everything || kind == "CustomResourceDefinition" {
        expected.clear();
    }
    assert_eq!(owned(object, "writer"), expected, "{kind}");
}

#[tokio::test]
async fn status_writers_change_metadata_of_most_built_in_kinds() {
    for is_apply in [false, true] {
        let client = world().await;
        let writer = client.acting_as(User::new("admin", ["system:masters"]), "writer");
        for (table, api_version, kind, namespace, spec, kept) in kinds() {
            let name = if table.starts_with("custom") { "xs.t.io" } else { "x" };
            let object = json!({ "apiVersion": api_version, "kind": kind, "spec": spec,
                                 "metadata": { "name": name, "labels": { "o": "1" } } });
            let created = client.create(table, namespace, object).await;
            created.unwrap_or_else(|error| panic!("{kind}: {error}"));
            let target = Target::new(table, namespace, name).through("status");
            let patch = match is_apply {
                true => Patch::Apply(
                    json!({ "apiVersion": api_version, "kind": kind, "metadata": sent(name) }),
                    false,
                ),
                false => Patch::Merge(json!({ "metadata": sent(name) })),
            };
            let patched = writer.patch(target, patch).await;
            let patched = patched.unwrap_or_else(|error| panic!("{kind}: {error}"));
            check(kind, kept, &serde_json::from_slice(patched.encoded()).expect("JSON"));
        }
    }
}

#[tokio::test]
async fn status_writers_own_metadata_of_custom_kinds_but_change_none() {
    let client = world().await;
    let (table, _, _, _, spec, _) = kinds().pop().expect("the definition is the last");
    let definition = json!({ "metadata": { "name": "xs.t.io" }, "spec": spec });
    client.create(table, "", definition).await.expect("a definition");
    let writer = client.acting_as(User::new("admin", ["system:masters"]), "writer");
    let object = json!({ "apiVersion": "t.io/v1", "kind": "X",
                         "metadata": { "name": "x", "labels": { "o": "1" } } });
    client.create("xs.t.io", "", object).await.expect("an object");
    let applied = json!({ "apiVersion": "t.io/v1", "kind": "X", "metadata": sent("x"),
                          "spec": { "a": 1 }, "status": { "b": 1 } });
    let target = Target::new("xs.t.io", "", "x").through("status");
    let patched = writer.patch(target, Patch::Apply(applied, false)).await.expect("it applies");
    let object: Value = serde_json::from_slice(patched.encoded()).expect("JSON");
    assert_eq!(object["metadata"]["labels"], json!({ "o": "1" }));
    assert_eq!(object["metadata"].get("annotations"), None);
    assert_eq!((object.get("spec"), &object["status"]), (None, &json!({ "b": 1 })));
    assert_eq!(owned(&object, "writer"), ["f:annotations", "f:labels", "f:ownerReferences"]);
}

#[tokio::test]
async fn a_status_that_is_applied_to_the_object_itself_is_ignored() {
    let client = world().await;
    let writer = client.acting_as(User::new("admin", ["system:masters"]), "writer");
    let applied = |status: Value| {
        let object = json!({ "apiVersion": "v1", "kind": "Node", "status": status,
                             "metadata": { "name": "x", "labels": { "n": "1" } } });
        Patch::Apply(object, false)
    };
    let target = Target::new("nodes", "", "x");
    for _ in 0..2 {
        let phase = applied(json!({ "phase": "Running" }));
        let patched = writer.patch(target, phase).await.expect("it applies");
        let object: Value = serde_json::from_slice(patched.encoded()).expect("JSON");
        assert_eq!(object["metadata"]["managedFields"][0]["fieldsV1"].get("f:status"), None);
    }
    let error = writer.patch(target, applied(json!({ "bogus": 1 }))).await.expect_err("no field");
    assert_eq!(
        error.message,
        "failed to create typed patch object (/x; /v1, Kind=Node): .status.bogus: field not \
         declared in schema"
    );
}

/// The response to a merge patch: its code, and the invalid fields.
async fn refusal(client: &LocalClient, target: Target<'_>, metadata: Value) -> (u16, Vec<String>) {
    let patch = json!({ "metadata": metadata, "status": { "phase": "Running" } });
    match client.patch(target, Patch::Merge(patch)).await {
        Ok(_) => (200, Vec::new()),
        Err(error) => {
            let causes = error.details.map(|details| details.causes).unwrap_or_default();
            (error.code, causes.into_iter().map(|cause| cause.field).collect())
        }
    }
}

/// Controllers rely on this: a patch with a uid applies only to that object, not to another one
/// with its name.
#[tokio::test]
async fn a_uid_in_a_merge_patch_is_a_condition_except_in_the_status_of_custom_kinds() {
    let client = world().await;
    let (table, _, _, _, spec, _) = kinds().pop().expect("the definition is the last");
    let definition = json!({ "metadata": { "name": "xs.t.io" }, "spec": spec });
    client.create(table, "", definition).await.expect("a definition");
    let custom = json!({ "apiVersion": "t.io/v1", "kind": "X", "metadata": { "name": "x" } });
    client.create("xs.t.io", "", custom).await.expect("an object");
    client.create("nodes", "", json!({ "metadata": { "name": "x" } })).await.expect("a node");
    let wrong = vec!["metadata.uid".to_owned(); 2];
    for table in ["xs.t.io", "nodes"] {
        for subresource in ["", "status"] {
            let target = Target::new(table, "", "x").through(subresource);
            let stored = client.get(target).await.expect("it is there");
            let own = json!({ "uid": stored.uid() });
            assert_eq!(refusal(&client, target, own).await, (200, Vec::new()));
            let version = client.get(target).await.expect("it is there").resource_version();
            assert_eq!(version == stored.resource_version(), subresource.is_empty(), "{table}");
            let expected = match (table, subresource) {
                ("xs.t.io", "status") => (200, Vec::new()),
                _ => (422, wrong.clone()),
            };
            assert_eq!(refusal(&client, target, json!({ "uid": UID })).await, expected);
            let (code, _) = refusal(&client, target, json!({ "resourceVersion": "1" })).await;
            assert_eq!(code, 409, "{table} {subresource}");
        }
    }
}
