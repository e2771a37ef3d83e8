//! `cargo xtask bench server`: the table of what an API server does per second.
//!
//! Drives any server given by a kubeconfig, by default a fresh `kopf cluster` in release mode, from
//! the same machine: on two cores the load generator takes its share.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use serde_json::{Value, json};

use super::load::{fan_out, throughput};
use super::table::{Row, report, summary};
use crate::cluster::Cluster;
use crate::http::{Client, Request};
use crate::kubeconfig::Endpoint;

/// What can be typed after `cargo xtask bench server`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Measure this running server instead of a new `kopf cluster`.
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    /// A tenth of the work, for a first impression.
    #[arg(long)]
    quick: bool,
}

/// Runs all rows.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let cluster = match &arguments.kubeconfig {
        Some(_) => None,
        None => Some(Cluster::start("release")?),
    };
    let kubeconfig = match (&arguments.kubeconfig, &cluster) {
        (Some(path), _) => path,
        (None, Some(cluster)) => &cluster.kubeconfig,
        (None, None) => anyhow::bail!("there is no server to measure"),
    };
    let endpoint = Endpoint::from_file(kubeconfig)?;
    let scale = if arguments.quick { 10 } else { 1 };
    let mut rows = Vec::new();
    let process = cluster.as_ref().map(|cluster| cluster.process.id());
    if let Some(process) = process {
        let idle = resident_megabytes(process)?;
        report(&mut rows, Row::new("memory, idle", idle, "MB").at_most(30.0));
    }
    crate::http::runtime()?.block_on(measure(&endpoint, scale, process, &mut rows))?;
    summary(&rows);
    Ok(())
}

async fn measure(
    endpoint: &Endpoint,
    scale: usize,
    process: Option<u32>,
    rows: &mut Vec<Row>,
) -> Result<()> {
    prepare(endpoint).await?;
    creates(endpoint, scale, rows).await?;
    lists(endpoint, scale, rows).await?;
    let watch = Request::get(&format!("{}?watch=1&resourceVersion=0", config_maps("fan-out")));
    let rate = fan_out(endpoint, 200, 3000 / scale, &watch, |index| {
        post(&config_maps("fan-out"), &config_map(index, "fan-out"))
    })
    .await?;
    report(rows, Row::new("watch events, 200 watchers", rate, "/s").at_least(150_000.0));
    growth(endpoint, scale, process, rows).await
}

async fn creates(endpoint: &Endpoint, scale: usize, rows: &mut Vec<Row>) -> Result<()> {
    let one = |index| post(&config_maps("one"), &config_map(index, "one"));
    let rate = throughput(endpoint, 1, 5000 / scale, one).await?;
    report(rows, Row::new("create ConfigMap, 1 connection", rate, "/s").at_least(4000.0));
    let many = |index| post(&config_maps("many"), &config_map(index, "many"));
    let rate = throughput(endpoint, 16, 20_000 / scale, many).await?;
    report(rows, Row::new("create ConfigMap, 16 connections", rate, "/s").at_least(8000.0));
    let custom = |index| post(WIDGETS, &widget(index));
    let rate = throughput(endpoint, 16, 10_000 / scale, custom).await?;
    let name = "create custom resource with CEL, 16 connections";
    report(rows, Row::new(name, rate, "/s").at_least(5000.0));
    let rate = throughput(endpoint, 16, 10_000 / scale, |index| Request {
        method: "PATCH".into(),
        path: format!("{}/apply-{index}?fieldManager=bench", config_maps("one")),
        headers: vec![("content-type".into(), "application/apply-patch+yaml".into())],
        body: Some(bytes(&config_map_named(&format!("apply-{index}"), "one"))),
    })
    .await?;
    report(rows, Row::new("server-side apply, 16 connections", rate, "/s").at_least(3000.0));
    Ok(())
}

async fn lists(endpoint: &Endpoint, scale: usize, rows: &mut Vec<Row>) -> Result<()> {
    let path = format!("{}?limit=500", config_maps("many"));
    let rate = throughput(endpoint, 4, 2000 / scale, |_| Request::get(&path)).await?;
    report(rows, Row::new("list 500 objects as JSON", rate, "/s").at_least(1500.0));
    let rate = throughput(endpoint, 4, 1000 / scale, |_| {
        let accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
        Request { headers: vec![("accept".into(), accept.into())], ..Request::get(&path) }
    })
    .await?;
    report(rows, Row::new("list 500 objects as Table", rate, "/s").at_least(500.0));
    Ok(())
}

/// Memory per object, and whether a create costs the same among many objects as among few.
async fn growth(
    endpoint: &Endpoint,
    scale: usize,
    process: Option<u32>,
    rows: &mut Vec<Row>,
) -> Result<()> {
    let before = process.map(resident_megabytes).transpose()?;
    let count = 100_000 / scale;
    let mut first = 0.0;
    for tenth in 0..10 {
        let offset = tenth * count / 10;
        let rate = throughput(endpoint, 16, count / 10, |index| {
            post(&config_maps("growth"), &config_map(offset + index, "growth"))
        })
        .await?;
        if tenth == 0 {
            first = rate;
        } else if tenth == 9 {
            let name = format!("create rate at {count} objects, of the rate at {}", count / 10);
            report(rows, Row::new(name, rate / first * 100.0, "%").at_least(80.0));
        }
    }
    if let (Some(before), Some(process)) = (before, process) {
        #[expect(clippy::cast_precision_loss, reason = "counts of a benchmark are small")]
        let bytes = (resident_megabytes(process)? - before) * 1e6 / count as f64;
        report(rows, Row::new("memory per small object", bytes, "B").at_most(3000.0));
    }
    Ok(())
}

const WIDGETS: &str = "/apis/bench.kopf.dev/v1/namespaces/one/widgets";

async fn prepare(endpoint: &Endpoint) -> Result<()> {
    let mut client = Client::new(endpoint.clone())?;
    for name in ["one", "many", "fan-out", "growth"] {
        send(&mut client, &post("/api/v1/namespaces", &json!({"metadata": {"name": name}})))
            .await?;
    }
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    send(&mut client, &post(path, &definition())).await?;
    // A real server needs a moment to serve a new definition.
    for _ in 0..100 {
        if client.send(&Request::get(WIDGETS)).await?.status == 200 {
            return Ok(());
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    anyhow::bail!("the custom resource is not served in time")
}

async fn send(client: &mut Client, request: &Request) -> Result<()> {
    let answer = client.send(request).await?;
    let text = String::from_utf8_lossy(&answer.body);
    ensure!(answer.status < 300, "{} was answered with {}: {text}", request.path, answer.status);
    Ok(())
}

fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.bench.kopf.dev"},
        "spec": {
            "group": "bench.kopf.dev",
            "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {
                    "type": "object",
                    "required": ["size"],
                    "properties": {
                        "size": {"type": "integer", "minimum": 1},
                        "limit": {"type": "integer", "default": 1000},
                        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                    },
                    "x-kubernetes-validations": [
                        {"rule": "self.size <= self.limit", "message": "too large"},
                    ],
                }}}},
            }],
        },
    })
}

fn widget(index: usize) -> Value {
    json!({
        "apiVersion": "bench.kopf.dev/v1",
        "kind": "Widget",
        "metadata": {"name": format!("widget-{index}")},
        "spec": {"size": 1 + index % 100, "labels": {"team": "a", "tier": "b"}},
    })
}

fn config_maps(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/configmaps")
}

fn config_map(index: usize, namespace: &str) -> Value {
    config_map_named(&format!("object-{index}"), namespace)
}

fn config_map_named(name: &str, namespace: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": "bench"}},
        "data": {"key": "value", "other": "a somewhat longer value to carry around"},
    })
}

fn post(path: &str, body: &Value) -> Request {
    Request {
        method: "POST".into(),
        path: path.into(),
        headers: vec![("content-type".into(), "application/json".into())],
        body: Some(bytes(body)),
    }
}

fn bytes(value: &Value) -> Bytes {
    Bytes::from(value.to_string())
}

fn resident_megabytes(process: u32) -> Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).context("no VmRSS line")?;
    let kilobytes = line.split_whitespace().nth(1).context("no number in VmRSS")?;
    Ok(kilobytes.parse::<f64>()? / 1000.0)
}
