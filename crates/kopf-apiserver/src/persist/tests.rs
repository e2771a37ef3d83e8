//! Claims about data directories.

use crate::{DataDirError, Patch, Server, Target};
use serde_json::json;

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
    let again = loop {
        // The journal's thread lets go of the file a moment after the last handle.
        match Server::builder().controllers(false).open(directory.path()) {
            Ok(server) => break server,
            Err(DataDirError::Open { .. }) => tokio::task::yield_now().await,
            Err(error) => panic!("{error}"),
        }
    };
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
