//! The metrics of a replica, read from its probes.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

/// How long replicas may take to share the ranges.
const SHARING_TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The address of the probes of one replica.
#[derive(Clone, Copy)]
pub(super) struct Probes(pub(super) SocketAddr);

impl Probes {
    /// A free port, which the replica will use.
    pub(super) fn new() -> Result<Self> {
        Ok(Self(TcpListener::bind("127.0.0.1:0")?.local_addr()?))
    }

    /// All metrics.
    pub(super) fn read(self) -> Result<Metrics> {
        let mut stream = TcpStream::connect(self.0)?;
        stream
            .write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        Ok(Metrics(text))
    }
}

/// The text of the metrics.
pub(super) struct Metrics(String);

impl Metrics {
    /// The value of a series, given with its labels.
    pub(super) fn value(&self, series: &str) -> Option<f64> {
        let mut lines = self.0.lines();
        lines.find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok())
    }

    /// How many objects waited in the queue, and how many of them for at most a second.
    fn waits(&self) -> (f64, f64) {
        let value = |series| self.value(series).unwrap_or_default();
        let short = value("kopf_queue_wait_seconds_bucket{le=\"1\"}");
        (value("kopf_queue_wait_seconds_count"), short)
    }
}

/// The sums over all replicas that answer.
pub(super) fn waits(replicas: &[Probes]) -> (f64, f64) {
    let waits = replicas.iter().filter_map(|it| Some(it.read().ok()?.waits()));
    waits.fold((0.0, 0.0), |sum, it| (sum.0 + it.0, sum.1 + it.1))
}

/// Waits until these replicas have all ranges, each its share, and returns how long it took.
pub(super) fn wait_for_shares(replicas: &[Probes]) -> Result<Duration> {
    let began = Instant::now();
    loop {
        let ranges = |it: &Probes| it.read().ok()?.value("kopf_shard_ranges");
        let held: Vec<f64> = replicas.iter().filter_map(ranges).collect();
        let all = replicas.first().context("no replicas")?.read().ok();
        let all = all.and_then(|it| it.value("kopf_shard_ranges_all"));
        let most = held.iter().copied().fold(0.0, f64::max);
        // No member may have more than its share, rounded up.
        #[expect(clippy::cast_precision_loss, reason = "there are few replicas")]
        let share = |all: f64| (all / replicas.len() as f64).ceil();
        let is_shared = |all: f64| all <= held.iter().sum() && most <= share(all);
        if held.len() == replicas.len() && all.is_some_and(is_shared) {
            return Ok(began.elapsed());
        }
        ensure!(
            began.elapsed() < SHARING_TIMEOUT,
            "the ranges are not shared: {held:?} of {all:?}"
        );
        std::thread::sleep(POLL_INTERVAL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_is_found_by_its_whole_name() {
        let metrics = Metrics("kopf_shard_ranges_all 64\nkopf_shard_ranges 22\n".to_owned());
        assert_eq!(metrics.value("kopf_shard_ranges"), Some(22.0));
        assert_eq!(metrics.value("kopf_shard"), None);
    }
}
