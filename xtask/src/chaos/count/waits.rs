//! How long objects waited in the queues of the replicas, from their metrics.

use anyhow::Result;
use serde::Serialize;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const BUCKET: &str = "kopf_queue_wait_seconds_bucket{le=\"";
const REQUEST: &[u8] = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

/// The sum of the histograms of several processes.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct QueueWaits {
    /// Upper bounds in seconds, with the number of objects that waited for at most this time. The
    /// last bound is infinite.
    buckets: Vec<(f64, f64)>,
}

impl QueueWaits {
    /// Reads the metrics of the process that listens on this port.
    pub(super) async fn read(port: u16) -> Result<Self> {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.write_all(REQUEST).await?;
        let mut text = String::new();
        stream.read_to_string(&mut text).await?;
        Ok(Self::parse(&text))
    }

    fn parse(text: &str) -> Self {
        let bucket = |line: &str| {
            let (bound, count) = line.strip_prefix(BUCKET)?.split_once("\"} ")?;
            let bound = if bound == "+Inf" { f64::INFINITY } else { bound.parse().ok()? };
            Some((bound, count.parse().ok()?))
        };
        Self { buckets: text.lines().filter_map(bucket).collect() }
    }

    /// Adds those of another process.
    pub(super) fn add(&mut self, other: &Self) {
        if self.buckets.is_empty() {
            self.buckets.clone_from(&other.buckets);
            return;
        }
        for (sum, more) in self.buckets.iter_mut().zip(&other.buckets) {
            sum.1 += more.1;
        }
    }

    /// Removes those that had been counted before.
    pub(super) fn subtract(&mut self, before: &Self) {
        for (sum, less) in self.buckets.iter_mut().zip(&before.buckets) {
            sum.1 -= less.1;
        }
    }

    /// The bound below which this share of all waits is.
    pub(super) fn percentile(&self, share: f64) -> Option<f64> {
        let all = self.buckets.last().map(|it| it.1).filter(|all| *all > 0.0)?;
        self.buckets.iter().find(|it| it.1 >= all * share).map(|it| it.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histograms_of_several_processes_are_added() {
        let text = "kopf_queue_wait_seconds_bucket{le=\"0.1\"} 90\n\
            kopf_queue_wait_seconds_bucket{le=\"1\"} 99\n\
            kopf_queue_wait_seconds_bucket{le=\"+Inf\"} 100\n";
        let mut waits = QueueWaits::default();
        assert_eq!(waits.percentile(0.99), None);
        waits.add(&QueueWaits::parse(text));
        assert_eq!(waits.percentile(0.99), Some(1.0));
        waits.add(&QueueWaits::parse(&text.replace("99", "90")));
        assert_eq!(waits.percentile(0.5), Some(0.1));
        assert_eq!(waits.percentile(0.99), Some(f64::INFINITY));
        waits.subtract(&QueueWaits::parse(text));
        assert_eq!(waits, QueueWaits::parse(&text.replace("99", "90")));
    }
}
