//! The throughput of a server, measured over the network.

use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::Round;
use super::bodies::{self, apply, config_map, config_maps, create, delete, post, widget, widgets};
use super::floor;
use crate::http::{Client, Request};
use crate::kubeconfig::Endpoint;
use crate::load::{Pace, fan_out, latencies, send, throughput};
use crate::table::Target;

/// The namespaces of the rows.
const PURPOSES: [&str; 5] = ["one", "many", "applied", "followed", "paced"];

fn namespace(purpose: &str, round: usize) -> String {
    format!("bench-{}-{round}-{purpose}", std::process::id())
}

/// A row of requests that are sent as fast as possible.
struct Row {
    name: &'static str,
    connections: usize,
    total: usize,
    at_least: Option<f64>,
}

/// All rows of one round.
pub(super) async fn measure(endpoint: &Endpoint, round: &mut Round<'_>) -> Result<()> {
    prepare(endpoint, round.number).await?;
    let mut rates = Rates { endpoint, round };
    rates.creates().await?;
    rates.applies().await?;
    rates.lists().await?;
    rates.watches().await
}

/// One round on one server.
struct Rates<'a, 'b> {
    endpoint: &'a Endpoint,
    round: &'a mut Round<'b>,
}

impl Rates<'_, '_> {
    /// Measures a row, then the same requests on the floor, with answers of the same size.
    async fn rate(&mut self, row: Row, request: impl Fn(usize) -> Request) -> Result<()> {
        let Row { name, connections, total, at_least } = row;
        let total = self.round.arguments.work(total);
        let measured = throughput(self.endpoint, connections, total, &request).await?;
        let target = at_least.map_or(Target::Free, Target::AtLeast);
        self.round.results.rows.add(name, measured.rate, "/s", target);
        let Some(floor) = self.round.floor else { return Ok(()) };
        let same = |index| floor::request(request(index), measured.answer_bytes);
        let least = throughput(floor, connections, total, same).await?;
        self.round.results.floors.add(name, least.rate, "/s", Target::Free);
        Ok(())
    }

    async fn creates(&mut self) -> Result<()> {
        let name = "create ConfigMap, 1 connection";
        let one = namespace("one", self.round.number);
        let row = Row { name, connections: 1, total: 5000, at_least: Some(4000.0) };
        self.rate(row, |index| create(index, &one)).await?;
        let name = "create ConfigMap, 16 connections";
        let many = namespace("many", self.round.number);
        let row = Row { name, connections: 16, total: 20_000, at_least: Some(8000.0) };
        self.rate(row, |index| create(index, &many)).await?;
        let name = "create custom resource with schema and CEL, 16 connections";
        let path = widgets(&one);
        let row = Row { name, connections: 16, total: 10_000, at_least: Some(5000.0) };
        self.rate(row, |index| post(&path, &widget(index))).await
    }

    /// Applies that create, that change something, and that change nothing.
    async fn applies(&mut self) -> Result<()> {
        let applied = namespace("applied", self.round.number);
        for (name, value) in [
            ("server-side apply, creating, 16 connections", "first"),
            ("server-side apply, changing, 16 connections", "second"),
            ("server-side apply, same again, 16 connections", "second"),
        ] {
            let row = Row { name, connections: 16, total: 5000, at_least: Some(3000.0) };
            let request = |index| {
                let mut object = config_map(index, &applied);
                object["data"]["key"] = json!(value);
                apply(index, &applied, &object)
            };
            self.rate(row, request).await?;
        }
        Ok(())
    }

    async fn lists(&mut self) -> Result<()> {
        let path = config_maps(&namespace("many", self.round.number));
        let count = self.round.arguments.work(20_000);
        let name = "get, 16 connections";
        let row = Row { name, connections: 16, total: 20_000, at_least: None };
        self.rate(row, |index| Request::get(&format!("{path}/object-{}", index % count))).await?;
        let path = format!("{path}?limit=500");
        let name = "list 500 objects as JSON";
        let row = Row { name, connections: 4, total: 3000, at_least: Some(1500.0) };
        self.rate(row, |_| Request::get(&path)).await?;
        let name = "list 500 objects as Table";
        let row = Row { name, connections: 4, total: 1000, at_least: Some(500.0) };
        let as_table = |_| {
            let accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
            Request { headers: vec![("accept".into(), accept.into())], ..Request::get(&path) }
        };
        self.rate(row, as_table).await
    }

    async fn watches(&mut self) -> Result<()> {
        let (endpoint, arguments) = (self.endpoint, self.round.arguments);
        let version = present_version(endpoint).await?;
        let watch = |namespace: &str| {
            let options = format!("watch=1&resourceVersion={version}");
            Request::get(&format!("{}?{options}", config_maps(namespace)))
        };
        let followed = namespace("followed", self.round.number);
        let write = |index| create(index, &followed);
        let rate = fan_out(endpoint, 200, arguments.work(3000), &watch(&followed), write).await?;
        let table = &mut self.round.results.rows;
        table.add("watch events, 200 watchers", rate, "/s", Target::AtLeast(150_000.0));
        let paced = namespace("paced", self.round.number);
        let pace =
            Pace { watchers: 20, writes: arguments.work(3000), interval: Duration::from_millis(1) };
        let waits =
            latencies(endpoint, &pace, &watch(&paced), |index| create(index, &paced)).await?;
        let at = |hundredth: usize| waits[(waits.len() * hundredth / 100).min(waits.len() - 1)];
        let name = "write to event at 1000 writes/s, 20 watchers, p50";
        table.add(name, at(50).as_secs_f64() * 1e3, "ms", Target::Free);
        let name = "write to event at 1000 writes/s, 20 watchers, p99";
        table.add(name, at(99).as_secs_f64() * 1e3, "ms", Target::AtMost(5.0));
        Ok(())
    }
}

/// The version from which watches see only new writes.
async fn present_version(endpoint: &Endpoint) -> Result<String> {
    let mut client = Client::new(endpoint.clone())?;
    let answer = client.send(&Request::get("/api/v1/configmaps?limit=1")).await?;
    let list: Value = serde_json::from_slice(&answer.body)?;
    let version = list["metadata"]["resourceVersion"].as_str();
    Ok(version.context("a list without a version")?.to_owned())
}

async fn prepare(endpoint: &Endpoint, round: usize) -> Result<()> {
    let mut client = Client::new(endpoint.clone())?;
    for purpose in PURPOSES {
        let name = namespace(purpose, round);
        let object = json!({"metadata": {"name": name}});
        send(&mut client, &post("/api/v1/namespaces", &object)).await?;
    }
    // An interrupted earlier run may have left it, and it may be being deleted right now.
    let definition = post(bodies::DEFINITIONS, &bodies::definition());
    for _ in 0..ATTEMPTS_MAX {
        if client.send(&definition).await?.status < 300 {
            break;
        }
        tokio::time::sleep(ATTEMPT_DELAY).await;
    }
    // A real server needs a moment to serve a new definition.
    let path = widgets(&namespace("one", round));
    for _ in 0..ATTEMPTS_MAX {
        if client.send(&Request::get(&path)).await?.status == 200 {
            return Ok(());
        }
        tokio::time::sleep(ATTEMPT_DELAY).await;
    }
    anyhow::bail!("the custom resource is not served in time")
}

const ATTEMPTS_MAX: usize = 100;
const ATTEMPT_DELAY: Duration = Duration::from_millis(50);

/// Removes the objects of a round.
pub(super) async fn clean(endpoint: &Endpoint, round: usize) -> Result<()> {
    let mut client = Client::new(endpoint.clone())?;
    for purpose in PURPOSES {
        let path = format!("/api/v1/namespaces/{}", namespace(purpose, round));
        client.send(&delete(&path)).await?;
    }
    let path = format!("{}/{}", bodies::DEFINITIONS, bodies::definition_name());
    client.send(&delete(&path)).await?;
    Ok(())
}
