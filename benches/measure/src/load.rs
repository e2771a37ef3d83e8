//! The load generator: bounded requests over a bounded number of connections.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use http_body_util::BodyExt;
use tokio::task::JoinSet;

use crate::http::{Client, Request};
use crate::kubeconfig::Endpoint;

/// How fast a server answered.
pub(crate) struct Throughput {
    /// Answers per second.
    pub(crate) rate: f64,
    /// The mean size of their bodies.
    pub(crate) answer_bytes: usize,
}

/// The throughput of `connections` clients, each sending its share of the requests one by one.
pub(crate) async fn throughput(
    endpoint: &Endpoint,
    connections: usize,
    total: usize,
    request: impl Fn(usize) -> Request,
) -> Result<Throughput> {
    let mut shares: Vec<Vec<Request>> = vec![Vec::new(); connections];
    for index in 0..total {
        shares[index % connections].push(request(index));
    }
    let mut clients = Vec::new();
    for share in shares {
        clients.push((connected(endpoint).await?, share));
    }
    let started = Instant::now();
    let mut workers = JoinSet::new();
    for (mut client, share) in clients {
        workers.spawn(async move {
            let mut bytes = 0;
            for request in share {
                bytes += send(&mut client, &request).await?;
            }
            anyhow::Ok(bytes)
        });
    }
    let mut bytes = 0;
    while let Some(worker) = workers.join_next().await {
        bytes += worker??;
    }
    let rate = per_second(total, started.elapsed());
    Ok(Throughput { rate, answer_bytes: bytes / total.max(1) })
}

/// A client with an open connection.
async fn connected(endpoint: &Endpoint) -> Result<Client> {
    let mut client = Client::new(endpoint.clone())?;
    client.send(&Request::get("/version")).await?;
    Ok(client)
}

/// Sends a request that must succeed, and returns the size of the answer's body.
pub(crate) async fn send(client: &mut Client, request: &Request) -> Result<usize> {
    let answer = client.send(request).await?;
    let text = || String::from_utf8_lossy(&answer.body).into_owned();
    ensure!(answer.status < 300, "{}: answer {}: {}", request.path, answer.status, text());
    Ok(answer.body.len())
}

/// The number of watch events per second that reach all `watchers` together while `writes` are
/// made.
pub(crate) async fn fan_out(
    endpoint: &Endpoint,
    watchers: usize,
    writes: usize,
    watch: &Request,
    request: impl Fn(usize) -> Request,
) -> Result<f64> {
    let mut followers = JoinSet::new();
    for _ in 0..watchers {
        followers.spawn(count_lines(open(endpoint, watch).await?, writes));
    }
    let started = Instant::now();
    throughput(endpoint, 4, writes, request).await?;
    while let Some(follower) = followers.join_next().await {
        follower??;
    }
    Ok(per_second(watchers * writes, started.elapsed()))
}

async fn open(endpoint: &Endpoint, watch: &Request) -> Result<hyper::body::Incoming> {
    let stream = Client::new(endpoint.clone())?.stream(watch).await?;
    ensure!(stream.status == 200, "the watch was answered with {}", stream.status);
    Ok(stream.body)
}

async fn count_lines(mut body: hyper::body::Incoming, lines: usize) -> Result<()> {
    let mut seen = 0;
    while seen < lines {
        let frame = body.frame().await.context("the watch ended early")??;
        if let Ok(data) = frame.into_data() {
            seen += data.iter().filter(|&&byte| byte == b'\n').count();
        }
    }
    Ok(())
}

/// Writes made one by one at a steady rate, while others watch.
pub(crate) struct Pace {
    /// How many watchers follow; one of them is measured.
    pub(crate) watchers: usize,
    /// How many writes are made.
    pub(crate) writes: usize,
    /// The time from one write to the next.
    pub(crate) interval: Duration,
}

/// The time from sending a write to seeing its event, for each write, sorted.
pub(crate) async fn latencies(
    endpoint: &Endpoint,
    pace: &Pace,
    watch: &Request,
    request: impl Fn(usize) -> Request,
) -> Result<Vec<Duration>> {
    let mut followers = JoinSet::new();
    for _ in 1..pace.watchers {
        followers.spawn(count_lines(open(endpoint, watch).await?, pace.writes));
    }
    let measured = tokio::spawn(arrivals(open(endpoint, watch).await?, pace.writes));
    let mut clients = Vec::new();
    for _ in 0..PACED_CONNECTIONS {
        clients.push(connected(endpoint).await?);
    }
    let first = Instant::now() + Duration::from_millis(10);
    let mut workers = JoinSet::new();
    for (offset, mut client) in clients.into_iter().enumerate() {
        let numbers = (offset..pace.writes).step_by(PACED_CONNECTIONS);
        let share: Vec<(usize, Request)> = numbers.map(|index| (index, request(index))).collect();
        let interval = pace.interval;
        workers.spawn(async move {
            let mut sent = Vec::new();
            for (index, request) in share {
                let due = first + interval * u32::try_from(index)?;
                tokio::time::sleep_until(due.into()).await;
                sent.push((index, Instant::now()));
                send(&mut client, &request).await?;
            }
            anyhow::Ok(sent)
        });
    }
    let mut sent = vec![first; pace.writes];
    while let Some(worker) = workers.join_next().await {
        for (index, instant) in worker?? {
            sent[index] = instant;
        }
    }
    let mut waits = Vec::new();
    for (index, arrived) in measured.await?? {
        waits.push(arrived.saturating_duration_since(sent[index]));
    }
    while let Some(follower) = followers.join_next().await {
        follower??;
    }
    waits.sort();
    Ok(waits)
}

const PACED_CONNECTIONS: usize = 8;

/// When each numbered object arrived.
async fn arrivals(mut body: hyper::body::Incoming, count: usize) -> Result<Vec<(usize, Instant)>> {
    let mut arrived = Vec::new();
    let mut rest = Vec::new();
    while arrived.len() < count {
        let frame = body.frame().await.context("the watch ended early")??;
        let Ok(data) = frame.into_data() else { continue };
        let now = Instant::now();
        rest.extend_from_slice(&data);
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = rest.drain(..=end).collect();
            arrived.push((number_in(&line).context("an event without a number")?, now));
        }
    }
    Ok(arrived)
}

/// The number at the end of the object's name.
fn number_in(line: &[u8]) -> Option<usize> {
    const BEFORE: &str = "\"name\":\"object-";
    let text = std::str::from_utf8(line).ok()?;
    let start = text.find(BEFORE)? + BEFORE.len();
    text[start..].split('"').next()?.parse().ok()
}

fn per_second(count: usize, elapsed: Duration) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "counts of a benchmark are small")]
    let count = count as f64;
    count / elapsed.as_secs_f64()
}
