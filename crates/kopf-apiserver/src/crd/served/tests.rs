//! Tests for the order of refreshes.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use serde_json::json;

use super::{TABLE, refresh};
use crate::Server;
use crate::apply::ManagedFields;
use crate::store::{Change, ObjectKey};

/// How long a thread may take to reach a lock; correct code passes regardless of this value.
const LOCK_TIME: Duration = Duration::from_millis(100);

#[test]
fn a_refresh_that_had_to_wait_serves_what_came_meanwhile() {
    let server = Server::builder().controllers(false).build();
    let inner = server.inner();
    let busy = inner.custom_resources.lock();
    let (started, starts) = mpsc::channel();
    let waiting = std::thread::spawn({
        let inner = Arc::clone(inner);
        move || {
            started.send(()).unwrap();
            refresh(&inner);
        }
    });
    starts.recv().unwrap();
    std::thread::sleep(LOCK_TIME);
    let crd = json!({
        "metadata": {"name": "things.example.com", "uid": "u"},
        "spec": {"group": "example.com", "scope": "Namespaced", "versions": [
            {"name": "v1", "served": true, "storage": true,
             "schema": {"openAPIV3Schema": {"type": "object"}}},
        ]},
        "status": {
            "acceptedNames": {"plural": "things", "kind": "Thing"},
            "conditions": [{"type": "Established", "status": "True"}],
        },
    });
    let change = Change {
        table: TABLE.into(),
        key: ObjectKey::new("", "things.example.com"),
        expected: 0,
        value: Some(crd),
        managed: ManagedFields::default(),
    };
    assert!(inner.store.commit(change).is_ok());
    drop(busy);
    waiting.join().unwrap();
    assert!(inner.resource_of_table("things.example.com").is_ok());
}
