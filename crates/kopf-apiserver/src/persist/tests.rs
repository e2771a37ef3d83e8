//! Tests for data directories.

use std::path::Path;

use crate::{DataDirError, Patch, Server, Target};
use serde_json::json;

/// Opens a directory that another server has just used.
async fn reopen(directory: &Path) -> Server {
    loop {
        // The journal's thread closes the file shortly after the last handle is dropped.
        match Server::builder().controllers(false).open(directory) {
            Ok(server) => return server,
            Err(DataDirError::Open { .. }) => tokio::task::yield_now().await,
            Err(error) => panic!("{error}"),
        }
    }
}

#[tokio::test]
async fn a_world_survives_its_server() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::builder().controllers(false).open(directory.path()).unwrap();
    let client = server.local();
    let map = json!({"metadata": {"name": "a"}, "data": {"k": "1"}});
    client.create("configmaps", "default", map.clone()).await.unwrap();
    let target = Target::new("configmaps", "default", "a");
    client.patch(target, Patch::Merge(json!({"data": {"k": "2"}}))).await.unwrap();
    let version = server.resource_version();
    drop((server, client));
    let again = reopen(directory.path()).await;
    assert_eq!(again.resource_version(), version);
    let stored = again.local().get(target).await.unwrap();
    assert_eq!(stored.value()["data"]["k"], "2");
    assert!(again.local().create("configmaps", "default", map).await.is_err());
}

#[tokio::test]
async fn a_broken_file_is_reported_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("world.redb");
    std::fs::write(&file, b"not a database").unwrap();
    let outcome = Server::builder().open(directory.path());
    assert!(matches!(outcome.err(), Some(DataDirError::Open { .. })));
    assert_eq!(std::fs::read(&file).unwrap(), b"not a database");
}

/// Deeper than the general JSON decoder allows.
const DEPTH: usize = 300;

#[tokio::test]
async fn deep_objects_survive_their_server() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::builder().controllers(false).open(directory.path()).unwrap();
    let client = server.local();
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let crd = json!({
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                          "schema": {"openAPIV3Schema": schema}}],
        },
    });
    client.create("customresourcedefinitions.apiextensions.k8s.io", "", crd).await.unwrap();
    let deep = (0..DEPTH).fold(json!(1), |inside, _| json!({ "a": inside }));
    let thing = json!({"apiVersion": "example.com/v1", "kind": "Thing",
                       "metadata": {"name": "deep"}, "spec": deep});
    let target = Target::new("things.example.com", "default", "deep");
    client.patch(target, Patch::Apply(thing, false)).await.unwrap();
    let before = client.get(target).await.unwrap().value().clone();
    drop((server, client));
    let again = reopen(directory.path()).await;
    assert_eq!(again.local().get(target).await.unwrap().value(), &before);
}

#[test]
fn broken_texts_are_no_objects() {
    let deep = format!("{}1{}", "[".repeat(DEPTH), "]".repeat(DEPTH));
    assert!(super::archive::decode(deep.as_bytes()).is_ok());
    for broken in [&deep[..deep.len() - 1], &deep.replace('1', "?"), "{\"a\":1", ""] {
        assert!(super::archive::decode(broken.as_bytes()).is_err(), "{broken}");
    }
}
