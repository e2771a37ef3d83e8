//! The objects that exist before the first request.

use serde_json::json;

use crate::apply::ManagedFields;
use crate::clock::{Clock, IdSource};
use crate::kinds::shape;
use crate::meta::format_time;
use crate::store::{Change, ObjectKey, Store};

/// Creates what every cluster has: namespaces, a node, a storage class, roles.
pub(super) fn seed(store: &Store, clock: &dyn Clock, ids: &dyn IdSource, nodes: bool) {
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
                managed: ManagedFields::default(),
            })
            .expect("the store is empty, so the name is free");
    }
    let now = format_time(clock.now());
    let others = crate::controllers::bootstrap::objects(&now, nodes).into_iter();
    for (table, mut object) in others.chain(crate::rbac::bootstrap_objects()) {
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
        object["metadata"]["uid"] = json!(ids.uid());
        object["metadata"]["creationTimestamp"] = json!(now);
        if let Some(condition) = object.pointer_mut("/status/conditions/0")
            && condition.get("lastTransitionTime").is_none()
        {
            condition["lastTransitionTime"] = json!(now);
        }
        shape::normalise(&mut object);
        store
            .commit(Change {
                table: table.into(),
                key: ObjectKey::new(&namespace, &name),
                expected: 0,
                value: Some(object),
                managed: ManagedFields::default(),
            })
            .expect("the store is empty, so the name is free");
    }
    store.forget_events();
}
