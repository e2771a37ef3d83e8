//! The objects that run the operator in a cluster: its Deployment, its webhook Service, its image.

use kopf_core::endpoint;
use serde_json::{Value, json};

use super::Options;

/// The port of probes and metrics inside the container.
const PROBE_PORT: u16 = 8080;
/// The port of protected metrics inside the container.
pub(super) const METRICS_PORT: u16 = 8443;
/// The port of webhooks inside the container.
const WEBHOOK_PORT: u16 = 9443;
/// A user without rights, by number, so that the cluster can verify that it is not root.
const USER: u32 = 65532;

/// The Deployment, and the Service for webhooks if there are any.
pub(super) fn documents(options: &Options, has_webhooks: bool) -> Vec<Value> {
    let mut documents = vec![deployment(options, has_webhooks)];
    if has_webhooks {
        // The operator registers this port in the cluster, so the two must match.
        let port = endpoint::SERVICE_PORT;
        documents.push(json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": options.name, "namespace": options.namespace},
            "spec": {
                "selector": labels(options),
                "ports": [{"name": "webhooks", "port": port, "targetPort": "webhooks"}],
            },
        }));
    }
    if options.replicas > 1 {
        documents.push(json!({
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": options.name, "namespace": options.namespace},
            "spec": {"maxUnavailable": 1, "selector": {"matchLabels": labels(options)}},
        }));
    }
    documents
}

/// Spreads replicas over nodes, so that the failure of one node does not affect all of them.
fn affinity(options: &Options) -> Value {
    json!({"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{
        "weight": 100,
        "podAffinityTerm": {
            "topologyKey": "kubernetes.io/hostname",
            "labelSelector": {"matchLabels": labels(options)},
        },
    }]}})
}

/// The identity of the replica and the namespace of its Leases.
fn environment() -> Value {
    let name = json!({"fieldRef": {"fieldPath": "metadata.name"}});
    json!([{"name": "POD_NAME", "valueFrom": name}, own_namespace("POD_NAMESPACE")])
}

/// A variable with the namespace of the Pod.
pub(super) fn own_namespace(variable: &str) -> Value {
    json!({"name": variable, "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}})
}

fn labels(options: &Options) -> Value {
    json!({"app.kubernetes.io/name": options.name})
}

fn deployment(options: &Options, has_webhooks: bool) -> Value {
    let labels = labels(options);
    let mut ports = vec![json!({"name": "probes", "containerPort": PROBE_PORT})];
    if has_webhooks {
        ports.push(json!({"name": "webhooks", "containerPort": WEBHOOK_PORT}));
    }
    if options.secure_metrics {
        ports.push(json!({"name": "metrics", "containerPort": METRICS_PORT}));
    }
    let probe =
        |path: &str| json!({"httpGet": {"path": path, "port": "probes"}, "periodSeconds": 10});
    let mut deployment = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": options.name, "namespace": options.namespace, "labels": labels},
        "spec": {
            "replicas": 1,
            // Two operators at once would handle everything twice.
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "serviceAccountName": options.name,
                    "securityContext": {
                        "runAsNonRoot": true,
                        "runAsUser": USER,
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    "containers": [{
                        "name": "operator",
                        "image": options.image,
                        "args": arguments(options, has_webhooks),
                        "ports": ports,
                        "livenessProbe": probe("/healthz"),
                        "readinessProbe": probe("/readyz"),
                        "resources": {
                            "requests": {"cpu": "10m", "memory": "32Mi"},
                            "limits": {"memory": "128Mi"},
                        },
                        "securityContext": {
                            "allowPrivilegeEscalation": false,
                            "readOnlyRootFilesystem": true,
                            "capabilities": {"drop": ["ALL"]},
                        },
                    }],
                },
            },
        },
    });
    if options.has_replicas() {
        let spec = &mut deployment["spec"];
        spec["replicas"] = json!(options.replicas.max(1));
        // A new replica stands by before an old one ends, and takes over when it leaves.
        spec["strategy"] = json!({
            "type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1},
        });
        let pod = &mut spec["template"]["spec"];
        pod["affinity"] = affinity(options);
        pod["containers"][0]["env"] = environment();
    }
    deployment
}

fn arguments(options: &Options, has_webhooks: bool) -> Vec<String> {
    // The rights do not include the peering objects of other operators.
    let mut arguments = vec![
        "run".to_owned(),
        "--standalone".to_owned(),
        format!("--liveness=http://0.0.0.0:{PROBE_PORT}/healthz"),
    ];
    match &options.serves {
        None => arguments.push("--all-namespaces".to_owned()),
        Some(namespaces) => {
            arguments.extend(namespaces.iter().map(|name| format!("--namespace={name}")));
        }
    }
    if options.secure_metrics {
        arguments.push(format!("--metrics=https://0.0.0.0:{METRICS_PORT}"));
    }
    if options.shards {
        arguments.push("--shards=auto".to_owned());
    }
    if options.has_replicas() {
        arguments.push(format!("--leader-elect={}", options.name));
    }
    if has_webhooks {
        arguments.push(format!("--webhook=0.0.0.0:{WEBHOOK_PORT}"));
        arguments.push(format!("--webhook-service={}/{}", options.namespace, options.name));
    }
    arguments
}

/// Builds a static program, which is the only file in the image, like the Dockerfile of `kopf new`.
pub(super) fn dockerfile(program: &str) -> String {
    format!(
        "FROM rust:1-alpine AS build\n\
         RUN apk add --no-cache musl-dev\n\
         WORKDIR /src\n\
         COPY . .\n\
         RUN cargo build --release --bin {program}\n\
         \n\
         FROM scratch\n\
         COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/\n\
         COPY --from=build /src/target/release/{program} /operator\n\
         USER {USER}\n\
         ENTRYPOINT [\"/operator\"]\n"
    )
}
