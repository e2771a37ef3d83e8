//! The load generator: bounded requests over a bounded number of connections.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use http_body_util::BodyExt;
use tokio::task::JoinSet;

use crate::http::{Client, Request};
use crate::kubeconfig::Endpoint;

/// How many requests per second `connections` clients get through, each sending its share one by one.
pub(crate) async fn throughput(
    endpoint: &Endpoint,
    connections: usize,
    total: usize,
    request: impl Fn(usize) -> Request,
) -> Result<f64> {
    let mut shares: Vec<Vec<Request>> = vec![Vec::new(); connections];
    for index in 0..total {
        shares[index % connections].push(request(index));
    }
    let mut clients = Vec::new();
    for share in shares {
        let mut client = Client::new(endpoint.clone())?;
        client.send(&Request::get("/version")).await?;
        clients.push((client, share));
    }
    let started = Instant::now();
    let mut workers = JoinSet::new();
    for (mut client, share) in clients {
        workers.spawn(async move {
            for request in share {
                let answer = client.send(&request).await?;
                let text = || String::from_utf8_lossy(&answer.body).into_owned();
                ensure!(answer.status < 300, "answer {}: {}", answer.status, text());
            }
            Ok(())
        });
    }
    while let Some(worker) = workers.join_next().await {
        worker??;
    }
    Ok(per_second(total, started.elapsed()))
}

/// How many watch events per second reach all `watchers` together while `writes` are made.
pub(crate) async fn fan_out(
    endpoint: &Endpoint,
    watchers: usize,
    writes: usize,
    watch: &Request,
    request: impl Fn(usize) -> Request,
) -> Result<f64> {
    let mut followers = JoinSet::new();
    for _ in 0..watchers {
        let stream = Client::new(endpoint.clone())?.stream(watch).await?;
        ensure!(stream.status == 200, "the watch was answered with {}", stream.status);
        followers.spawn(count_lines(stream.body, writes));
    }
    let started = Instant::now();
    throughput(endpoint, 4, writes, request).await?;
    while let Some(follower) = followers.join_next().await {
        follower??;
    }
    Ok(per_second(watchers * writes, started.elapsed()))
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

fn per_second(count: usize, elapsed: Duration) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "counts of a benchmark are small")]
    let count = count as f64;
    count / elapsed.as_secs_f64()
}
