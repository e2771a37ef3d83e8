//! The server in a process: cold start, listening, forking.
//!
//! A start is cold only in a new process, so this program starts itself once per sample.

use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use http_body_util::{BodyExt, Full};
use kopf_apiserver::Server;
use serde_json::{Value, json};
use tower::ServiceExt;

use super::bodies::{config_map, config_maps};
use super::subject::Program;
use crate::table::{Table, Target};

/// How many processes are started per round.
const STARTS: usize = 5;
/// The number of objects in the forked server.
const OBJECTS: usize = 10_000;
/// How many forks are timed.
const FORKS: usize = 51;

/// Starts the program several times and adds its measurements.
pub(super) fn measure(program: &Program, table: &mut Table) -> Result<()> {
    for _ in 0..STARTS {
        let output = program.command("world").stderr(Stdio::inherit()).output()?;
        ensure!(output.status.success(), "the measurement inside of a process failed");
        let measured: Value = serde_json::from_slice(&output.stdout)?;
        let mut add = |key: &str, name: &str, unit: &'static str, target: Target| {
            let value = measured[key].as_f64().with_context(|| format!("no `{key}`"))?;
            table.add(name, value, unit, target);
            anyhow::Ok(())
        };
        add("start_ms", "in-process start, cold, to the first answer", "ms", Target::AtMost(20.0))?;
        add("listen_ms", "from there to listening with TLS", "ms", Target::AtMost(20.0))?;
        add("second_start_ms", "second start in a process", "ms", Target::Free)?;
        add("fork_us", "fork() of a world with 10k objects", "µs", Target::AtMost(200.0))?;
        add("fork_answer_us", "fork() and its first answer", "µs", Target::Free)?;
    }
    Ok(())
}

/// `cargo xtask bench world`: measures itself once and prints JSON.
pub(crate) fn report() -> Result<()> {
    crate::http::runtime()?.block_on(async {
        println!("{}", times().await?);
        Ok(())
    })
}

async fn times() -> Result<Value> {
    let started = Instant::now();
    let server = Server::new();
    get(&server, "/api/v1/namespaces").await?;
    let start = started.elapsed();

    let started = Instant::now();
    let listening = server.listen("127.0.0.1:0".parse()?).await?;
    let listen = started.elapsed();
    listening.shutdown().await;

    let started = Instant::now();
    let second = Server::new();
    get(&second, "/api/v1/namespaces").await?;
    let second_start = started.elapsed();

    for index in 0..OBJECTS {
        create(&server, index).await?;
    }
    server.settle().await;
    let mut forks = Vec::new();
    let mut answers = Vec::new();
    for _ in 0..FORKS {
        let started = Instant::now();
        let fork = server.fork();
        forks.push(started.elapsed());
        get(&fork, "/api/v1/namespaces/default").await?;
        answers.push(started.elapsed());
    }
    Ok(json!({
        "start_ms": start.as_secs_f64() * 1e3,
        "listen_ms": listen.as_secs_f64() * 1e3,
        "second_start_ms": second_start.as_secs_f64() * 1e3,
        "fork_us": median(forks).as_secs_f64() * 1e6,
        "fork_answer_us": median(answers).as_secs_f64() * 1e6,
    }))
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

async fn get(server: &Server, path: &str) -> Result<()> {
    exchange(server, hyper::Request::get(path).body(Full::default())?).await
}

async fn create(server: &Server, index: usize) -> Result<()> {
    let body = config_map(index, "default").to_string();
    let request = hyper::Request::post(config_maps("default"))
        .header("content-type", "application/json")
        .body(Full::from(body))?;
    exchange(server, request).await
}

async fn exchange(server: &Server, request: hyper::Request<Full<bytes::Bytes>>) -> Result<()> {
    let response = server.service().oneshot(request).await?;
    ensure!(response.status().is_success(), "answer {}", response.status());
    response.into_body().collect().await?;
    Ok(())
}
