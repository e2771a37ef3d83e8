//! The objects that exist before the first request.

use serde_json::json;

use crate::clock::{Clock, IdSource};
use crate::meta::format_time;
use crate::store::{Change, ObjectKey, Store};

/// Creates the namespaces that every cluster has.
pub(super) fn seed(store: &Store, clock: &dyn Clock, ids: &dyn IdSource) {
    for name in ["kube-system", "kube-public", "kube-node-lease", "default"] {
        let namespace = json!({
            "kind": "Namespace",
            "apiVersion": "v1",
            "metadata": {
                "name": name,
                "uid": ids.uid(),
                "creationTimestamp": format_time(clock.now()),
                "labels": { "kubernetes.io/metadata.name": name },
            },
            "spec": { "finalizers": ["kubernetes"] },
            "status": { "phase": "Active" },
        });
        store
            .commit(Change {
                table: "namespaces".into(),
                key: ObjectKey::new("", name),
                expected: 0,
                value: Some(namespace),
            })
            .expect("the store is empty, so the name is free");
    }
    store.forget_events();
}
