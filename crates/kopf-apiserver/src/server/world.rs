//! The objects that exist before the first request.

use serde_json::{Value, json};

use crate::apply::{self, ManagedFields, Manager, Owned};
use crate::clock::{Clock, IdSource};
use crate::meta::format_time;
use crate::registry::Registry;
use crate::shape;
use crate::store::{Change, ObjectKey, Store};

/// Creates the objects that every cluster has: namespaces, a node, a storage class, roles.
pub(super) fn seed(store: &Store, clock: &dyn Clock, ids: &dyn IdSource, nodes: bool) {
    for name in ["kube-system", "kube-public", "kube-node-lease", "default"] {
        let mut namespace = json!({
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
        let managed = tracked("namespaces", &mut namespace, &format_time(clock.now()));
        store
            .commit(Change {
                table: "namespaces".into(),
                key: ObjectKey::new("", name),
                expected: 0,
                value: Some(namespace),
                managed,
            })
            .expect("the store is empty, so the name is free");
    }
    let now = format_time(clock.now());
    let others = super::bootstrap::objects(&now, nodes).into_iter();
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
        let managed = tracked(table, &mut object, &now);
        store
            .commit(Change {
                table: table.into(),
                key: ObjectKey::new(&namespace, &name),
                expected: 0,
                value: Some(object),
                managed,
            })
            .expect("the store is empty, so the name is free");
    }
    store.forget_events();
}

/// The managed fields of such an object: owned by the server and by the role aggregation
/// controller.
fn tracked(table: &str, object: &mut Value, now: &str) -> ManagedFields {
    let registry = Registry::builtin();
    let Some(resource) = registry.of_table(table) else { return ManagedFields::default() };
    let api_version = resource.api_version();
    let manager = Manager {
        name: "kube-apiserver",
        api_version: &api_version,
        kind: &resource.kind,
        subresource: "",
        has_status: resource.has_status(),
        has_versions: false,
        time: now,
    };
    let schema = resource.schema.as_deref();
    let rules = match object["aggregationRule"].is_object() {
        true => object.as_object_mut().and_then(|fields| fields.shift_remove("rules")),
        false => None,
    };
    let managed = apply::track_update(&manager, schema, None, object);
    let Some(rules) = rules else { return managed };
    let part = json!({
        "apiVersion": api_version,
        "kind": resource.kind,
        "metadata": { "name": object["metadata"]["name"] },
        "rules": rules,
    });
    let aggregator = Manager { name: "clusterrole-aggregation-controller", ..manager };
    let live = Owned { object, managed: &managed };
    let (aggregated, managed) = apply::apply(&aggregator, true, schema, Some(live), &part)
        .expect("recorded roles fit their schema");
    *object = aggregated;
    managed
}
