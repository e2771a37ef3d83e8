//! The objects that exist before the first request: a node, a storage class, priority classes, flow
//! schemas and their priority levels, the Service and the APIs of the server itself.

use serde_json::{Value, json};

/// The name of the only node.
const NODE: &str = "kopf-node";

/// The table and the object of each, without uid and times; `now` is a formatted time.
pub(super) fn objects(now: &str) -> Vec<(&'static str, Value)> {
    let mut objects = vec![
        ("nodes", node(now)),
        ("storageclasses.storage.k8s.io", storage_class()),
        ("services", api_service()),
    ];
    objects.push(("servicecidrs.networking.k8s.io", service_range(now)));
    objects.extend(priority_classes().map(|class| ("priorityclasses.scheduling.k8s.io", class)));
    objects.extend(flow_control());
    objects.extend(local_apis().map(|api| ("apiservices.apiregistration.k8s.io", api)));
    objects
}

/// The Service through which pods reach the API server.
fn api_service() -> Value {
    let address = "10.96.0.1";
    json!({
        "kind": "Service",
        "apiVersion": "v1",
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": { "component": "apiserver", "provider": "kubernetes" },
        },
        "spec": {
            "ports": [{ "name": "https", "protocol": "TCP", "port": 443, "targetPort": 6443 }],
            "clusterIP": address,
            "clusterIPs": [address],
            "type": "ClusterIP",
            "sessionAffinity": "None",
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
            "internalTrafficPolicy": "Cluster",
        },
        "status": { "loadBalancer": {} },
    })
}

/// The address range of services.
fn service_range(now: &str) -> Value {
    json!({
        "kind": "ServiceCIDR",
        "apiVersion": "networking.k8s.io/v1",
        "metadata": {
            "name": "kubernetes",
            "finalizers": ["networking.k8s.io/service-cidr-finalizer"],
        },
        "spec": { "cidrs": ["10.96.0.0/16"] },
        "status": { "conditions": [{
            "type": "Ready",
            "status": "True",
            "lastTransitionTime": now,
            "reason": "",
            "message": "Kubernetes Service CIDR is ready",
        }] },
    })
}

fn priority_classes() -> impl Iterator<Item = Value> {
    let classes = [
        (
            "system-cluster-critical",
            2_000_000_000,
            "Used for system critical pods that must run in the cluster, but can be moved to \
             another node if necessary.",
        ),
        (
            "system-node-critical",
            2_000_001_000,
            "Used for system critical pods that must not be moved from their current node.",
        ),
    ];
    classes.into_iter().map(|(name, value, description)| {
        json!({
            "kind": "PriorityClass",
            "apiVersion": "scheduling.k8s.io/v1",
            "metadata": { "name": name, "generation": 1 },
            "value": value,
            "description": description,
            "preemptionPolicy": "PreemptLowerPriority",
        })
    })
}

/// The mandatory and the suggested priority levels and flow schemas, as on a real 1.33 server.
fn flow_control() -> impl Iterator<Item = (&'static str, Value)> {
    crate::kinds::flow_control::recorded().map(|recorded| {
        let (kind, spec) = (&recorded["kind"], &recorded["spec"]);
        let mut object = json!({
            "kind": kind,
            "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
            "metadata": {
                "name": recorded["name"],
                "generation": 1,
                "annotations": { "apf.kubernetes.io/autoupdate-spec": "true" },
            },
            "spec": spec,
        });
        if kind == "PriorityLevelConfiguration" {
            return ("prioritylevelconfigurations.flowcontrol.apiserver.k8s.io", object);
        }
        let level = &spec["priorityLevelConfiguration"]["name"];
        let message = format!(
            "This FlowSchema references the PriorityLevelConfiguration object named {level} and it \
             exists"
        );
        object["status"] = json!({ "conditions": [{
            "type": "Dangling", "status": "False", "reason": "Found", "message": message,
        }] });
        ("flowschemas.flowcontrol.apiserver.k8s.io", object)
    })
}

/// The APIs that the server itself serves, with their discovery priorities.
fn local_apis() -> impl Iterator<Item = Value> {
    let apis = [
        ("", "v1", 18000, 1),
        ("admissionregistration.k8s.io", "v1", 16700, 15),
        ("apiextensions.k8s.io", "v1", 16700, 15),
        ("apps", "v1", 17800, 15),
        ("authentication.k8s.io", "v1", 17700, 15),
        ("authorization.k8s.io", "v1", 17600, 15),
        ("autoscaling", "v1", 17500, 15),
        ("autoscaling", "v2", 17500, 30),
        ("batch", "v1", 17400, 15),
        ("certificates.k8s.io", "v1", 17300, 15),
        ("coordination.k8s.io", "v1", 16500, 15),
        ("discovery.k8s.io", "v1", 16200, 15),
        ("events.k8s.io", "v1", 17750, 15),
        ("flowcontrol.apiserver.k8s.io", "v1", 16100, 21),
        ("networking.k8s.io", "v1", 17200, 15),
        ("node.k8s.io", "v1", 16300, 15),
        ("policy", "v1", 17100, 15),
        ("rbac.authorization.k8s.io", "v1", 17000, 15),
        ("scheduling.k8s.io", "v1", 16600, 15),
        ("storage.k8s.io", "v1", 16800, 15),
    ];
    apis.into_iter().map(|(group, version, group_priority, version_priority)| {
        let mut spec = json!({ "version": version });
        if !group.is_empty() {
            spec["group"] = json!(group);
        }
        spec["groupPriorityMinimum"] = json!(group_priority);
        spec["versionPriority"] = json!(version_priority);
        json!({
            "kind": "APIService",
            "apiVersion": "apiregistration.k8s.io/v1",
            "metadata": {
                "name": format!("{version}.{group}"),
                "labels": { "kube-aggregator.kubernetes.io/automanaged": "onstart" },
            },
            "spec": spec,
            "status": { "conditions": [{
                "type": "Available",
                "status": "True",
                "reason": "Local",
                "message": "Local APIServices are always available",
            }] },
        })
    })
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
