//! The objects that exist before the first request.

use std::sync::{Arc, LazyLock};

use serde_json::{Value, json};

use crate::apply::{self, ManagedFields, Manager, Owned};
use crate::clock::{Clock, IdSource};
use crate::fields;
use crate::meta::format_time;
use crate::registry::Registry;
use crate::shape;
use crate::store::{Change, ObjectKey, Store};

/// The time in prepared objects, which is replaced by the current time.
const ANY_TIME: &str = "2000-01-01T00:00:00Z";

/// An initial object, without its uid and times.
#[derive(Clone)]
struct Prepared {
    table: Arc<str>,
    key: ObjectKey,
    object: Value,
    managed: ManagedFields,
}

/// Creates the objects that every cluster has: namespaces, a node, a storage class, roles.
pub(super) fn seed(store: &Store, clock: &dyn Clock, ids: &dyn IdSource, nodes: bool) {
    // They are the same for all servers of a process.
    static WITHOUT_NODES: LazyLock<Vec<Prepared>> = LazyLock::new(|| prepare(false));
    static WITH_NODES: LazyLock<Vec<Prepared>> = LazyLock::new(|| prepare(true));
    let prepared = if nodes { &*WITH_NODES } else { &*WITHOUT_NODES };
    let now = format_time(clock.now());
    for Prepared { table, key, mut object, managed } in prepared.iter().cloned() {
        object["metadata"]["uid"] = ids.uid().into();
        set_times(&mut object, &now);
        let managed = managed.moved_in_time(ANY_TIME, &now);
        store
            .commit(Change { table, key, expected: 0, value: Some(object), managed })
            .expect("the store is empty, so the name is free");
    }
    store.forget_events();
}

fn prepare(nodes: bool) -> Vec<Prepared> {
    let namespaces = ["kube-system", "kube-public", "kube-node-lease", "default"]
        .map(|name| ("namespaces", namespace(name)));
    let others = super::bootstrap::objects(ANY_TIME, nodes)
        .into_iter()
        .chain(crate::rbac::bootstrap_objects());
    let others = others.map(|(table, mut object)| {
        object["metadata"]["uid"] = "".into();
        object["metadata"]["creationTimestamp"] = ANY_TIME.into();
        if let Some(condition) = object.pointer_mut("/status/conditions/0")
            && condition.get("lastTransitionTime").is_none()
        {
            condition["lastTransitionTime"] = ANY_TIME.into();
        }
        shape::normalise(&mut object);
        (table, object)
    });
    let prepared = namespaces.into_iter().chain(others).map(|(table, mut object)| {
        let managed = tracked(table, &mut object, ANY_TIME);
        let key = ObjectKey::new(fields::namespace(&object), fields::name(&object));
        Prepared { table: table.into(), key, object, managed }
    });
    prepared.collect()
}

fn namespace(name: &str) -> Value {
    json!({
        "kind": "Namespace",
        "apiVersion": "v1",
        "metadata": {
            "name": name,
            "uid": "",
            "creationTimestamp": ANY_TIME,
            "labels": { "kubernetes.io/metadata.name": name },
        },
        "spec": { "finalizers": ["kubernetes"] },
        "status": { "phase": "Active" },
    })
}

/// Sets the times of an object and of its conditions.
fn set_times(object: &mut Value, now: &str) {
    object["metadata"]["creationTimestamp"] = now.into();
    let conditions = object.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten() {
        for time in ["lastHeartbeatTime", "lastTransitionTime"] {
            if let Some(value) = condition.get_mut(time) {
                *value = now.into();
            }
        }
    }
}

/// The managed fields of such an object: owned by the server and by those that fill in a part.
fn tracked(table: &str, object: &mut Value, now: &str) -> ManagedFields {
    let registry = Registry::builtin();
    let Some(resource) = registry.of_table(table) else { return ManagedFields::default() };
    let api_version = resource.api_version();
    let is_flow_control = table.ends_with("flowcontrol.apiserver.k8s.io");
    let name = match is_flow_control {
        true => "api-priority-and-fairness-config-producer-v1",
        false => "kube-apiserver",
    };
    let manager = Manager {
        name,
        api_version: &api_version,
        kind: &resource.kind,
        subresource: "",
        has_status: resource.has_status(),
        has_versions: false,
        time: now,
    };
    let applied = if object["aggregationRule"].is_object() {
        Some(("rules", Manager { name: "clusterrole-aggregation-controller", ..manager }))
    } else if is_flow_control && object["kind"] == "FlowSchema" {
        let name = "api-priority-and-fairness-config-consumer-v1";
        Some(("status", Manager { name, subresource: "status", ..manager }))
    } else {
        None
    };
    let part = applied.and_then(|(field, applier)| {
        let value = object.as_object_mut()?.shift_remove(field)?;
        Some((field, value, applier))
    });
    let schema = resource.schema.as_deref();
    let managed = apply::track_update(&manager, schema, None, object);
    let Some((field, value, applier)) = part else { return managed };
    let part = json!({
        "apiVersion": api_version,
        "kind": resource.kind,
        "metadata": { "name": object["metadata"]["name"] },
        field: value,
    });
    let live = Owned { object, managed: &managed };
    let (merged, managed) = apply::apply(&applier, true, schema, Some(live), &part)
        .expect("recorded objects fit their schema");
    *object = merged;
    managed
}
