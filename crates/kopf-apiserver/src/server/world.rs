//! The objects that exist before the first request.

use serde_json::json;

use crate::clock::{Clock, IdSource};
use crate::kinds::shape;
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
    seed_node(store, clock, ids);
    store.forget_events();
}

/// The node on which pods run, ready and large.
fn seed_node(store: &Store, clock: &dyn Clock, ids: &dyn IdSource) {
    const NODE: &str = "kopf-node";
    let now = format_time(clock.now());
    let resources = json!({
        "cpu": "64", "memory": "256Gi", "pods": "10000", "ephemeral-storage": "1Ti",
    });
    let mut node = json!({
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {
            "name": NODE,
            "uid": ids.uid(),
            "creationTimestamp": now,
            "labels": {
                "kubernetes.io/hostname": NODE,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
            },
        },
        "spec": {},
        "status": {
            "capacity": resources,
            "allocatable": resources,
            "conditions": [{
                "type": "Ready", "status": "True", "lastHeartbeatTime": now,
                "lastTransitionTime": now, "reason": "KubeletReady", "message": "emulated node",
            }],
            "addresses": [
                { "type": "InternalIP", "address": "10.0.0.1" },
                { "type": "Hostname", "address": NODE },
            ],
            "nodeInfo": {
                "machineID": "", "systemUUID": "", "bootID": "", "kernelVersion": "emulated",
                "osImage": "emulated", "containerRuntimeVersion": "kopf://0",
                "kubeletVersion": "v1.33.0", "kubeProxyVersion": "", "operatingSystem": "linux",
                "architecture": "amd64",
            },
        },
    });
    shape::normalise(&mut node);
    store
        .commit(Change {
            table: "nodes".into(),
            key: ObjectKey::new("", NODE),
            expected: 0,
            value: Some(node),
        })
        .expect("the store has no nodes yet");
}
