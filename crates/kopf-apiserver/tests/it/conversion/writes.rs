//! Writes in a version other than the stored one, and what admission sees of them.

use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kopf_apiserver::WebhookTarget;
use serde_json::{Value, json};

use super::{MERGE, World, one, path, v1, v2};

const APPLY: &str = "application/apply-patch+yaml";

#[tokio::test]
async fn creations_are_stored_in_the_storage_version() {
    let world = World::new().await;
    let (status, created) = world.post(&path("v2", ""), &v2("a", "h", "1")).await;
    assert_eq!((status, &created["apiVersion"]), (201, &json!("example.com/v2")));
    assert_eq!(created["spec"], json!({ "host": "h", "port": "1" }));
    assert_eq!(created["metadata"]["managedFields"][0]["apiVersion"], "example.com/v2");
    // Once to store it and once for the response.
    assert_eq!(world.asked(), [one("v1", "a"), one("v2", "a")]);
    let stored = world.stored("a").await;
    assert_eq!(stored["apiVersion"], "example.com/v1");
    assert_eq!(stored["spec"], json!({ "hostPort": "h:1" }));
    assert_eq!(stored["metadata"]["uid"], created["metadata"]["uid"]);
    let (status, dry) = world.post(&path("v2", "?dryRun=All"), &v2("b", "h", "1")).await;
    assert_eq!((status, &dry["spec"]["port"]), (201, &json!("1")));
}

#[tokio::test]
async fn every_kind_of_write_is_made_in_the_requested_version() {
    let world = World::new().await;
    world.create("a", "h:1").await;
    let place = path("v2", "/a");
    let (_, mut read) = world.get(&place).await;
    read["spec"]["port"] = json!("2");
    let (status, put) = world.put(&place, &read).await;
    assert_eq!((status, &put["spec"]), (200, &json!({ "host": "h", "port": "2" })));
    assert_eq!(put["metadata"]["generation"], 2);
    let (status, merged) = world.patch(&place, MERGE, &json!({ "spec": { "port": "3" } })).await;
    assert_eq!((status, &merged["spec"]["port"]), (200, &json!("3")));
    let patch = json!([{ "op": "test", "path": "/spec/port", "value": "3" },
                       { "op": "replace", "path": "/spec/port", "value": "4" }]);
    let (status, patched) = world.patch(&place, "application/json-patch+json", &patch).await;
    assert_eq!((status, &patched["spec"]["port"]), (200, &json!("4")));
    let status_patch = json!({ "status": { "replicas": 7 } });
    let (status, patched) = world.patch(&path("v2", "/a/status"), MERGE, &status_patch).await;
    assert_eq!((status, &patched["status"]["replicas"]), (200, &json!(7)), "{patched}");
    assert_eq!(patched["spec"], json!({ "host": "h", "port": "4" }));
    let stored = world.stored("a").await;
    assert_eq!(stored["spec"], json!({ "hostPort": "h:4" }));
    assert_eq!(stored["status"], json!({ "replicas": 7 }));
    // A write that changes nothing is a no-op.
    let (_, same) = world.put(&place, &patched).await;
    assert_eq!(same["metadata"]["resourceVersion"], patched["metadata"]["resourceVersion"]);
}

#[tokio::test]
async fn scales_are_read_and_written_through_the_requested_version() {
    let world = World::new().await;
    world.create("a", "h:1").await;
    let scale = json!({ "spec": { "replicas": 3 } });
    let (status, scaled) = world.patch(&path("v2", "/a/scale"), MERGE, &scale).await;
    assert_eq!((status, &scaled["spec"]), (200, &json!({ "replicas": 3 })), "{scaled}");
    assert_eq!(world.stored("a").await["spec"], json!({ "hostPort": "h:1", "replicas": 3 }));
    let (status, read) = world.get(&path("v2", "/a/scale")).await;
    assert_eq!((status, &read["spec"]), (200, &json!({ "replicas": 3 })));
}

#[tokio::test]
async fn configurations_are_applied_in_any_version() {
    let world = World::new().await;
    let place = |version: &str, manager: &str| path(version, &format!("/a?fieldManager={manager}"));
    let first = v1("a", "h:1");
    let (status, applied) = world.patch(&place("v1", "one"), APPLY, &first).await;
    assert_eq!(status, 201, "{applied}");
    let mut second = v2("a", "h", "1");
    second["metadata"]["labels"] = json!({ "by": "two" });
    let (status, applied) = world.patch(&place("v2", "two"), APPLY, &second).await;
    assert_eq!((status, &applied["spec"]), (200, &json!({ "host": "h", "port": "1" })));
    let entries = applied["metadata"]["managedFields"].as_array().unwrap();
    let owners: Vec<(&Value, &Value)> =
        entries.iter().map(|entry| (&entry["manager"], &entry["apiVersion"])).collect();
    let texts = ["one", "example.com/v1", "two", "example.com/v2"].map(Value::from);
    assert_eq!(owners, [(&texts[0], &texts[1]), (&texts[2], &texts[3])]);
    // The same manager in another version.
    let (status, applied) = world.patch(&place("v2", "one"), APPLY, &v2("a", "h", "1")).await;
    assert_eq!((status, &applied["metadata"]["labels"]["by"]), (200, &json!("two")));
    assert_eq!(world.stored("a").await["spec"], json!({ "hostPort": "h:1" }));
}

#[tokio::test]
async fn deletions_are_answered_in_the_requested_version() {
    let world = World::new().await;
    let mut held = v1("a", "h:1");
    held["metadata"]["finalizers"] = json!(["example.com/wait"]);
    world.post(&path("v1", ""), &held).await;
    world.create("b", "h:2").await;
    let (status, deleted) = world.send("DELETE", &path("v2", "/a"), "", String::new()).await;
    assert_eq!((status, &deleted["spec"]), (200, &json!({ "host": "h", "port": "1" })));
    assert!(deleted["metadata"]["deletionTimestamp"].is_string());
    let none = json!({ "metadata": { "finalizers": null } });
    let (status, last) = world.patch(&path("v2", "/a"), MERGE, &none).await;
    assert_eq!((status, &last["spec"]["port"]), (200, &json!("1")));
    assert_eq!(world.get(&path("v1", "/a")).await.0, 404);
    let (status, list) = world.send("DELETE", &path("v2", ""), "", String::new()).await;
    assert_eq!((status, &list["items"][0]["spec"]), (200, &json!({ "host": "h", "port": "2" })));
    assert_eq!(world.get(&path("v1", "/b")).await.0, 404);
}

#[tokio::test]
async fn labels_and_annotations_may_change_and_other_metadata_not() {
    let world = World::new().await;
    world.create("a", "h:1").await;
    *world.twist.lock().unwrap() = Some(Box::new(|answer| {
        let metadata = &mut answer["response"]["convertedObjects"][0]["metadata"];
        metadata["labels"] = json!({ "new": "label" });
        metadata["annotations"] = json!({ "new": "annotation" });
        metadata["generation"] = json!(9);
        metadata["finalizers"] = json!(["example.com/new"]);
        metadata["managedFields"] = json!([]);
    }));
    let (_, read) = world.get(&path("v2", "/a")).await;
    let stored = world.stored("a").await;
    let mut expected = stored["metadata"].clone();
    expected["labels"] = json!({ "new": "label" });
    expected["annotations"] = json!({ "new": "annotation" });
    assert_eq!(read["metadata"], expected);
}

/// Registers an admission webhook `NAME` that accepts only v1.
async fn admit(world: &World, kind: &str, patch: Option<Value>) -> Arc<Mutex<Vec<Value>>> {
    let log: Arc<Mutex<Vec<Value>>> = Arc::default();
    let own = Arc::clone(&log);
    let function = move |review: Value| -> futures::future::BoxFuture<'static, Value> {
        let mut response = json!({ "uid": review["request"]["uid"], "allowed": true });
        if let Some(patch) = &patch {
            response["patchType"] = json!("JSONPatch");
            response["patch"] = STANDARD.encode(patch.to_string()).into();
        }
        own.lock().unwrap().push(review["request"].clone());
        Box::pin(async move {
            json!({ "kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1",
                    "response": response })
        })
    };
    let url = format!("https://webhook.test/{kind}");
    world.server.webhook_url(&url, WebhookTarget::Function(Arc::new(function)));
    let rules = json!([{ "apiGroups": ["example.com"], "apiVersions": ["v1"],
                         "resources": ["foos"], "operations": ["*"] }]);
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": format!("{kind}WebhookConfiguration"), "metadata": { "name": "w" },
        "webhooks": [{ "name": "w.example.com", "admissionReviewVersions": ["v1"],
                       "sideEffects": "None", "clientConfig": { "url": url }, "rules": rules }],
    });
    let lower = kind.to_lowercase();
    let place = format!("/apis/admissionregistration.k8s.io/v1/{lower}webhookconfigurations");
    let (status, answer) = world.post(&place, &configuration).await;
    assert_eq!(status, 201, "{answer}");
    log
}

#[tokio::test]
async fn admission_sees_the_version_that_it_asked_for() {
    let world = World::new().await;
    let patch = json!([{ "op": "replace", "path": "/spec/hostPort", "value": "i:2" }]);
    let mutating = admit(&world, "Mutating", Some(patch)).await;
    let validating = admit(&world, "Validating", None).await;
    let (status, created) = world.post(&path("v2", ""), &v2("a", "h", "1")).await;
    assert_eq!((status, &created["spec"]), (201, &json!({ "host": "i", "port": "2" })));
    let first = mutating.lock().unwrap()[0].clone();
    assert_eq!(first["object"]["spec"], json!({ "hostPort": "h:1" }));
    assert_eq!(first["requestKind"]["version"], "v2");
    let last = validating.lock().unwrap()[0].clone();
    assert_eq!(last["object"]["spec"], json!({ "hostPort": "i:2" }));
    world.send("DELETE", &path("v2", "/a"), "", String::new()).await;
    let deletion = validating.lock().unwrap()[1].clone();
    assert_eq!(deletion["oldObject"]["spec"], json!({ "hostPort": "i:2" }));
}

/// Manager, version and fields of `spec` of every entry.
fn owners(object: &Value) -> Vec<(String, String, String)> {
    let entries = object["metadata"]["managedFields"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let owner = |entry: &Value| {
        let spec = entry["fieldsV1"]["f:spec"].to_string();
        (text(&entry["manager"]), text(&entry["apiVersion"]), spec)
    };
    entries.iter().map(owner).collect()
}

#[tokio::test]
async fn managers_of_another_version_lose_what_is_changed_there() {
    let world = World::new().await;
    let mut object = v1("a", "h:1");
    object["spec"]["replicas"] = json!(1);
    world.post(&path("v1", "?fieldManager=one"), &object).await;
    let port = json!({ "spec": { "port": "2" } });
    let (status, patched) = world.patch(&path("v2", "/a?fieldManager=two"), MERGE, &port).await;
    assert_eq!(status, 200, "{patched}");
    let expected = [
        ("one", "example.com/v1", r#"{".":{},"f:replicas":{}}"#),
        ("two", "example.com/v2", r#"{"f:port":{}}"#),
    ];
    let expected = expected.map(|(one, two, three)| (one.into(), two.into(), three.into()));
    assert_eq!(owners(&patched), expected);
    // An empty list is lost when a custom resource is decoded, as in upstream.
    let empty = json!({ "metadata": { "managedFields": [] } });
    let (_, patched) = world.patch(&path("v2", "/a?fieldManager=two"), MERGE, &empty).await;
    assert_eq!(owners(&patched), expected);
    // A client that resets them gets none back.
    let reset = json!({ "metadata": { "managedFields": [{}] } });
    let (_, patched) = world.patch(&path("v2", "/a?fieldManager=two"), MERGE, &reset).await;
    assert_eq!(patched["metadata"].get("managedFields"), None);
}

#[tokio::test]
async fn applied_configurations_conflict_with_those_of_other_versions() {
    let world = World::new().await;
    world.patch(&path("v1", "/a?fieldManager=one"), APPLY, &v1("a", "h:1")).await;
    let place = path("v2", "/a?fieldManager=two");
    let (status, refused) = world.patch(&place, APPLY, &v2("a", "i", "1")).await;
    assert_eq!((status, &refused["reason"]), (409, &json!("Conflict")), "{refused}");
    assert_eq!(
        refused["message"],
        "Apply failed with 1 conflict: conflict with \"one\": .spec.hostPort"
    );
    assert_eq!(world.stored("a").await["spec"], json!({ "hostPort": "h:1" }));
    let place = format!("{place}&force=true");
    let (status, forced) = world.patch(&place, APPLY, &v2("a", "i", "1")).await;
    assert_eq!((status, &forced["spec"]["host"]), (200, &json!("i")), "{forced}");
    let names: Vec<String> = owners(&forced).into_iter().map(|(name, ..)| name).collect();
    assert_eq!(names, ["two"]);
}

fn applying(version: &str, manager: &str) -> String {
    path(version, &format!("/a?fieldManager={manager}"))
}

#[tokio::test]
async fn what_was_stated_in_other_names_and_is_not_any_more_is_removed() {
    let world = World::new().await;
    let mut first = v1("a", "h:1");
    first["spec"]["replicas"] = json!(2);
    let (status, applied) = world.patch(&applying("v1", "one"), APPLY, &first).await;
    assert_eq!(status, 201, "{applied}");
    let mut second = v2("a", "", "");
    second["spec"] = json!({ "replicas": 2 });
    let (status, applied) = world.patch(&applying("v2", "one"), APPLY, &second).await;
    assert_eq!((status, &applied["spec"]), (200, &json!({ "replicas": 2 })), "{applied}");
    assert_eq!(applied["metadata"]["generation"], 2);
    assert_eq!(world.stored("a").await["spec"], json!({ "replicas": 2 }));
    let expected = ("one".into(), "example.com/v2".into(), r#"{"f:replicas":{}}"#.into());
    assert_eq!(owners(&applied), [expected]);
    // And back again, with other fields.
    let (status, applied) = world.patch(&applying("v1", "one"), APPLY, &v1("a", "i:2")).await;
    assert_eq!((status, &applied["spec"]), (200, &json!({ "hostPort": "i:2" })), "{applied}");
}

#[tokio::test]
async fn what_others_own_in_other_names_stays() {
    let world = World::new().await;
    world.patch(&applying("v1", "one"), APPLY, &v1("a", "h:1")).await;
    let (status, shared) = world.patch(&applying("v2", "two"), APPLY, &v2("a", "h", "1")).await;
    assert_eq!(status, 200, "{shared}");
    let mut other = v2("a", "", "");
    other["spec"] = json!({ "replicas": 3 });
    let (status, applied) = world.patch(&applying("v2", "one"), APPLY, &other).await;
    let expected = json!({ "host": "h", "port": "1", "replicas": 3 });
    assert_eq!((status, &applied["spec"]), (200, &expected), "{applied}");
    assert_eq!(world.stored("a").await["spec"], json!({ "hostPort": "h:1", "replicas": 3 }));
    let managers: Vec<String> = owners(&applied).into_iter().map(|(name, ..)| name).collect();
    assert_eq!(managers, ["two", "one"]);
}
