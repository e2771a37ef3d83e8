//! Memory per object, and whether the cost of a request depends on the number of objects.
//!
//! Costs are processor time of the server, which a growing number of objects could increase; the
//! share of the load generator does not count.

use std::time::Duration;

use anyhow::Result;
use serde_json::json;

use super::Arguments;
use super::bodies::{config_maps, create, post};
use super::process::{processor_time, resident_bytes};
use super::subject::Subject;
use crate::http::{Client, Request};
use crate::load::{send, throughput};
use crate::table::{Table, Target};

/// The namespace in which objects accumulate.
const CROWD: &str = "crowd";
/// The namespace of the measured requests, so that they are the same at every size.
const PROBE: &str = "probe";

/// The number of objects at each stage.
const FEW: usize = 100;
const SOME: usize = 10_000;
const MANY: usize = 100_000;

/// How long the server may finish earlier work before it is measured again.
const PAUSE: Duration = Duration::from_millis(100);

/// Processor time per request, in microseconds.
struct Costs {
    create: f64,
    get: f64,
    patch: f64,
    list: f64,
}

/// All rows of one round.
pub(super) async fn measure(
    subject: &Subject,
    arguments: &Arguments,
    table: &mut Table,
) -> Result<()> {
    let mut client = Client::new(subject.endpoint.clone())?;
    for name in [CROWD, PROBE] {
        let object = json!({"metadata": {"name": name}});
        send(&mut client, &post("/api/v1/namespaces", &object)).await?;
    }
    let probes = if arguments.quick { 1000 } else { 3000 };
    // Warms up caches and allocators with as many requests as the first measurement makes.
    costs(subject, probes, 0).await?;
    let empty = resident_bytes(subject.id())?;
    fill(subject, 0, FEW).await?;
    let before = costs(subject, probes, 1).await?;
    let before_growth = resident_bytes(subject.id())?;
    fill(subject, FEW, SOME).await?;
    let at_some = (resident_bytes(subject.id())? - before_growth) / count(SOME - FEW);
    table.add("memory per small object, at 10k", at_some, "B", Target::AtMost(3000.0));
    let many = if arguments.quick { SOME * 2 } else { MANY };
    fill(subject, SOME, many).await?;
    let at_many = (resident_bytes(subject.id())? - before_growth) / count(many - FEW);
    let label = format!("memory per small object, at {}k", many / 1000);
    table.add(&label, at_many, "B", Target::AtMost(3000.0));
    let total = resident_bytes(subject.id())? / 1e6;
    table.add(&format!("memory with {}k objects", many / 1000), total, "MB", Target::Free);
    table.add("memory before any of them", empty / 1e6, "MB", Target::Free);
    let after = costs(subject, probes, 2).await?;
    for (name, before, after) in [
        ("create", before.create, after.create),
        ("get", before.get, after.get),
        ("merge patch", before.patch, after.patch),
        ("list 100 of them", before.list, after.list),
    ] {
        table.add(&format!("{name}, processor time at 100 objects"), before, "µs", Target::Free);
        let label = format!("{name}, cost at {}k objects, of that at 100", many / 1000);
        table.add(&label, after / before * 100.0, "%", Target::AtMost(125.0));
    }
    Ok(())
}

async fn fill(subject: &Subject, from: usize, to: usize) -> Result<()> {
    throughput(&subject.endpoint, 16, to - from, |index| create(from + index, CROWD)).await?;
    Ok(())
}

/// Creates `probes` new objects, then reads and changes them.
async fn costs(subject: &Subject, probes: usize, series: usize) -> Result<Costs> {
    let offset = series * probes;
    let path = |index: usize| format!("{}/object-{}", config_maps(PROBE), offset + index);
    let create = cost(subject, probes, |index| create(offset + index, PROBE)).await?;
    let get = cost(subject, probes, |index| Request::get(&path(index))).await?;
    let patch = cost(subject, probes, |index| Request {
        method: "PATCH".into(),
        path: path(index),
        headers: vec![("content-type".into(), "application/merge-patch+json".into())],
        body: Some(json!({"data": {"key": "changed"}}).to_string().into()),
    })
    .await?;
    let list = format!("{}?limit=100", config_maps(CROWD));
    let list = cost(subject, probes, |_| Request::get(&list)).await?;
    Ok(Costs { create, get, patch, list })
}

/// The processor time per request, in microseconds.
async fn cost(
    subject: &Subject,
    requests: usize,
    request: impl Fn(usize) -> Request,
) -> Result<f64> {
    // Lets the controllers finish the work caused by earlier requests.
    tokio::time::sleep(PAUSE).await;
    let before = processor_time(subject.id())?;
    throughput(&subject.endpoint, 4, requests, request).await?;
    let used = processor_time(subject.id())?.saturating_sub(before);
    Ok(used.as_secs_f64() * 1e6 / count(requests))
}

#[expect(clippy::cast_precision_loss, reason = "counts of a benchmark are small")]
fn count(number: usize) -> f64 {
    number as f64
}
