//! Optional objects besides the operator itself: access to its metrics, a network policy, and a
//! disruption budget.
//!
//! Pure. `monitoring` creates rules and dashboards.

use kopf_core::Handler;
use serde_json::{Value, json};

use super::deployment::METRICS_PORT as SECURE_PORT_NUMBER;
use super::{File, Options, monitoring};
use crate::manifests::Content;

/// The port of probes, and of unprotected metrics.
const PROBE_PORT_NUMBER: u16 = 8080;
/// The file with the token of Prometheus.
const TOKEN_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";
/// The port of webhooks.
const WEBHOOK_PORT_NUMBER: u16 = 9443;

/// The files besides those of the operator itself; each is applied only where its kinds exist.
#[must_use]
pub fn files(handlers: &[Handler], options: &Options) -> Vec<File> {
    let has_webhooks = handlers.iter().any(|it| it.kind.family().is_asked());
    let documents =
        |name, documents| File { name, notes: Vec::new(), content: Content::Documents(documents) };
    vec![
        documents("metrics.yaml", vec![metrics_service(options), service_monitor(options)]),
        documents("alerts.yaml", vec![monitoring::rules(handlers, options)]),
        documents("dashboard.yaml", vec![dashboard_map(handlers, options)]),
        documents("network-policy.yaml", vec![network_policy(options, has_webhooks)]),
    ]
}

pub(super) fn labels(options: &Options) -> Value {
    json!({"app.kubernetes.io/name": options.name})
}

/// The port of metrics: its name in the Deployment and its number.
fn metrics_port(options: &Options) -> (&'static str, u16) {
    match options.secure_metrics {
        true => ("metrics", SECURE_PORT_NUMBER),
        false => ("probes", PROBE_PORT_NUMBER),
    }
}

/// The Service through which Prometheus finds the metrics; its name becomes the job.
#[must_use]
pub fn metrics_service(options: &Options) -> Value {
    let (name, number) = metrics_port(options);
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(&format!("{}-metrics", options.name), options),
        "spec": {
            "selector": labels(options),
            "ports": [{"name": "metrics", "port": number, "targetPort": name}],
        },
    })
}

/// Makes the Prometheus operator scrape that Service, with the operator's name as the job.
#[must_use]
pub fn service_monitor(options: &Options) -> Value {
    let mut endpoint = json!({"port": "metrics", "path": "/metrics", "interval": "30s"});
    if options.secure_metrics {
        endpoint["scheme"] = json!("https");
        endpoint["bearerTokenFile"] = json!(TOKEN_FILE);
        // The certificate is self-signed unless files are given with --metrics-certificate.
        endpoint["tlsConfig"] = json!({"insecureSkipVerify": true});
    }
    json!({
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": metadata(&options.name, options),
        "spec": {
            "jobLabel": "app.kubernetes.io/name",
            "selector": {"matchLabels": labels(options)},
            "endpoints": [endpoint],
        },
    })
}

/// Allows incoming connections only to the ports of metrics, probes and webhooks.
///
/// Metrics can be limited to Pods of some namespaces. Probes come from the node of the Pod, which
/// policies never block. Requests to webhooks come from the API server, which has no labels to
/// select it by. Outgoing connections are not limited: handlers may connect to anything.
#[must_use]
pub fn network_policy(options: &Options, has_webhooks: bool) -> Value {
    let ports = |number: u16| json!([{"protocol": "TCP", "port": number}]);
    let mut metrics = json!({"ports": ports(metrics_port(options).1)});
    if !options.metrics_from.is_empty() {
        metrics["from"] = options.metrics_from.iter().map(|name| peer(name)).collect();
    }
    let mut ingress = vec![metrics];
    if options.secure_metrics {
        ingress.push(json!({"ports": ports(PROBE_PORT_NUMBER)}));
    }
    if has_webhooks {
        ingress.push(json!({"ports": ports(WEBHOOK_PORT_NUMBER)}));
    }
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": metadata(&options.name, options),
        "spec": {
            "podSelector": {"matchLabels": labels(options)},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": ingress,
            "egress": [{}],
        },
    })
}

/// All Pods of a namespace.
fn peer(namespace: &str) -> Value {
    json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}})
}

/// Keeps one replica while nodes are drained; only useful with more than one.
#[must_use]
pub fn disruption_budget(options: &Options) -> Value {
    json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata(&options.name, options),
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": labels(options)}},
    })
}

/// The dashboard as a ConfigMap that Grafana's sidecar finds.
#[must_use]
pub fn dashboard_map(handlers: &[Handler], options: &Options) -> Value {
    let dashboard = monitoring::dashboard(handlers, options);
    let text = serde_json::to_string_pretty(&dashboard).unwrap_or_default();
    let mut map = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(&format!("{}-dashboard", options.name), options),
        "data": {format!("{}.json", options.name): text},
    });
    map["metadata"]["labels"]["grafana_dashboard"] = json!("1");
    map
}

fn metadata(name: &str, options: &Options) -> Value {
    json!({"name": name, "namespace": options.namespace, "labels": labels(options)})
}
