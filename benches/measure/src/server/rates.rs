//! The throughput of a server, measured over the network.

use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::Arguments;
use super::bodies::{self, apply, config_map, config_maps, create, delete, post, widget, widgets};
use crate::http::{Client, Request};
use crate::kubeconfig::Endpoint;
use crate::load::{Pace, fan_out, latencies, send, throughput};
use crate::table::{Table, Target};

/// The namespaces of the rows.
const PURPOSES: [&str; 5] = ["one", "many", "applied", "followed", "paced"];

fn namespace(purpose: &str, round: usize) -> String {
    format!("bench-{}-{round}-{purpose}", std::process::id())
}

/// All rows of one round.
pub(super) async fn measure(
    endpoint: &Endpoint,
    arguments: &Arguments,
    round: usize,
    table: &mut Table,
) -> Result<()> {
    prepare(endpoint, round).await?;
    creates(endpoint, arguments, round, table).await?;
    applies(endpoint, arguments, round, table).await?;
    lists(endpoint, arguments, round, table).await?;
    watches(endpoint, arguments, round, table).await
}

async fn creates(
    endpoint: &Endpoint,
    arguments: &Arguments,
    round: usize,
    table: &mut Table,
) -> Result<()> {
    let one = namespace("one", round);
    let rate = throughput(endpoint, 1, arguments.work(5000), |index| create(index, &one)).await?;
    table.add("create ConfigMap, 1 connection", rate, "/s", Target::AtLeast(4000.0));
    let many = namespace("many", round);
    let rate =
        throughput(endpoint, 16, arguments.work(20_000), |index| create(index, &many)).await?;
    table.add("create ConfigMap, 16 connections", rate, "/s", Target::AtLeast(8000.0));
    let path = widgets(&one);
    let custom = |index| post(&path, &widget(index));
    let rate = throughput(endpoint, 16, arguments.work(10_000), custom).await?;
    let name = "create custom resource with schema and CEL, 16 connections";
    table.add(name, rate, "/s", Target::AtLeast(5000.0));
    Ok(())
}

/// Applies that create, that change something, and that change nothing.
async fn applies(
    endpoint: &Endpoint,
    arguments: &Arguments,
    round: usize,
    table: &mut Table,
) -> Result<()> {
    let applied = namespace("applied", round);
    for (name, value) in [
        ("server-side apply, creating, 16 connections", "first"),
        ("server-side apply, changing, 16 connections", "second"),
        ("server-side apply, same again, 16 connections", "second"),
    ] {
        let request = |index| {
            let mut object = config_map(index, &applied);
            object["data"]["key"] = json!(value);
            apply(index, &applied, &object)
        };
        let rate = throughput(endpoint, 16, arguments.work(5000), request).await?;
        table.add(name, rate, "/s", Target::AtLeast(3000.0));
    }
    Ok(())
}

async fn lists(
    endpoint: &Endpoint,
    arguments: &Arguments,
    round: usize,
    table: &mut Table,
) -> Result<()> {
    let many = namespace("many", round);
    let get = |index: usize| {
        Request::get(&format!("{}/object-{}", config_maps(&many), index % arguments.work(20_000)))
    };
    let rate = throughput(endpoint, 16, arguments.work(20_000), get).await?;
    table.add("get, 16 connections", rate, "/s", Target::Free);
    let path = format!("{}?limit=500", config_maps(&many));
    let rate = throughput(endpoint, 4, arguments.work(3000), |_| Request::get(&path)).await?;
    table.add("list 500 objects as JSON", rate, "/s", Target::AtLeast(1500.0));
    let as_table = |_| {
        let accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
        Request { headers: vec![("accept".into(), accept.into())], ..Request::get(&path) }
    };
    let rate = throughput(endpoint, 4, arguments.work(1000), as_table).await?;
    table.add("list 500 objects as Table", rate, "/s", Target::AtLeast(500.0));
    Ok(())
}

async fn watches(
    endpoint: &Endpoint,
    arguments: &Arguments,
    round: usize,
    table: &mut Table,
) -> Result<()> {
    let version = present_version(endpoint).await?;
    let watch = |namespace: &str| {
        let options = format!("watch=1&resourceVersion={version}");
        Request::get(&format!("{}?{options}", config_maps(namespace)))
    };
    let followed = namespace("followed", round);
    let write = |index| create(index, &followed);
    let rate = fan_out(endpoint, 200, arguments.work(3000), &watch(&followed), write).await?;
    table.add("watch events, 200 watchers", rate, "/s", Target::AtLeast(150_000.0));
    let paced = namespace("paced", round);
    let pace =
        Pace { watchers: 20, writes: arguments.work(3000), interval: Duration::from_millis(1) };
    let waits = latencies(endpoint, &pace, &watch(&paced), |index| create(index, &paced)).await?;
    let at = |hundredth: usize| waits[(waits.len() * hundredth / 100).min(waits.len() - 1)];
    let name = "write to event at 1000 writes/s, 20 watchers, p50";
    table.add(name, at(50).as_secs_f64() * 1e3, "ms", Target::Free);
    let name = "write to event at 1000 writes/s, 20 watchers, p99";
    table.add(name, at(99).as_secs_f64() * 1e3, "ms", Target::AtMost(5.0));
    Ok(())
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
