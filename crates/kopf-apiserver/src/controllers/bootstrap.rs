//! The objects that workloads need before the first request: a node, a storage class.

use serde_json::{Value, json};

/// Name of the only node of the embedded world.
const NODE: &str = "kopf-node";

/// Table and object of each, without uid and times; `now` is the time as the API writes it.
pub(crate) fn objects(now: &str, nodes: bool) -> Vec<(&'static str, Value)> {
    let mut objects = vec![("storageclasses.storage.k8s.io", storage_class())];
    if nodes {
        objects.insert(0, ("nodes", node(now)));
    }
    objects
}

fn node(now: &str) -> Value {
    let condition = |kind: &str, status: &str, reason: &str, message: &str| {
        json!({
            "type": kind,
            "status": status,
            "lastHeartbeatTime": now,
            "lastTransitionTime": now,
            "reason": reason,
            "message": message,
        })
    };
    let sufficient = |kind: &str, what: &str, reason: &str| {
        condition(kind, "False", reason, &format!("kubelet has {what}"))
    };
    let resources = json!({
        "cpu": "8", "ephemeral-storage": "100Gi", "memory": "16Gi", "pods": "10000",
    });
    json!({
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {
            "name": NODE,
            "labels": {
                "beta.kubernetes.io/arch": "amd64",
                "beta.kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/hostname": NODE,
                "kubernetes.io/os": "linux",
            },
        },
        "spec": { "podCIDR": "10.244.0.0/16", "podCIDRs": ["10.244.0.0/16"] },
        "status": {
            "capacity": resources,
            "allocatable": resources,
            "conditions": [
                sufficient("MemoryPressure", "sufficient memory available", "KubeletHasSufficientMemory"),
                sufficient("DiskPressure", "no disk pressure", "KubeletHasNoDiskPressure"),
                sufficient("PIDPressure", "sufficient PID available", "KubeletHasSufficientPID"),
                condition("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
            ],
            "addresses": [
                { "type": "InternalIP", "address": "172.18.0.2" },
                { "type": "Hostname", "address": NODE },
            ],
            "daemonEndpoints": { "kubeletEndpoint": { "Port": 10250 } },
            "nodeInfo": {
                "machineID": "", "systemUUID": "", "bootID": "",
                "kernelVersion": "", "osImage": "kopf embedded", "containerRuntimeVersion": "kopf://1",
                "kubeletVersion": "v1.33.0", "kubeProxyVersion": "",
                "operatingSystem": "linux", "architecture": "amd64",
            },
        },
    })
}

fn storage_class() -> Value {
    json!({
        "kind": "StorageClass",
        "apiVersion": "storage.k8s.io/v1",
        "metadata": {
            "name": "standard",
            "annotations": { "storageclass.kubernetes.io/is-default-class": "true" },
        },
        "provisioner": "kopf.dev/nowhere",
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "Immediate",
    })
}
