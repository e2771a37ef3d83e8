//! `cargo xtask bench shards`: what replicas cost, and how long changes wait while they come and go.
//!
//! *Shares*: replicas that have shared the ranges handle new objects; memory, processor time and
//! received bytes of each are compared with those of a single one. *Reaction*: objects are created
//! at a steady rate while a replica is stopped, joins, or is killed. *Fail-over*: a leader with a
//! standby is killed, also with controller-runtime. On few cores, the time until all is handled does
//! not shrink with more replicas, since they share the machine with the server.

mod failover;
mod probes;
mod proxy;
mod replica;

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use self::probes::{Probes, wait_for_shares, waits};
use self::replica::{Job, Replica, Signal};
use crate::engine::server::Server;
use crate::engine::subject::{self, Subject};
use crate::table::{Table, Target};

/// How long all objects may take to be handled.
const HANDLING_TIMEOUT_MS: usize = 600_000;
/// Objects that are created per second while replicas come and go.
const RATE: usize = 50;
/// How many replicas there are while one of them comes or goes.
const MEMBERS: usize = 3;
/// The longest time from a change to its handling, as in the study of sharded controllers.
const REACTION_MAX_MS: f64 = 5_000.0;
/// Which part of the waits in the queue must be at most a second, as in the same study.
const SHORT_WAITS_PERCENT: f64 = 99.0;

/// What can be typed after `cargo xtask bench shards`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// How many objects there are.
    #[arg(long, default_value_t = 100_000)]
    objects: usize,
    /// How many objects there are when a leader fails.
    #[arg(long, default_value_t = 10_000)]
    standby_objects: usize,
    /// These numbers of replicas.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 3, 5])]
    replicas: Vec<usize>,
    /// Measure the programs as they were built before.
    #[arg(long)]
    no_build: bool,
}

/// Measures everything.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if !arguments.no_build {
        subject::build()?;
    }
    let mut table = Table::default();
    for count in &arguments.replicas {
        shares(*count, arguments.objects, &mut table)?;
    }
    reactions(arguments.standby_objects, &mut table)?;
    failover::measure(Subject::Ours, arguments.standby_objects, &mut table)?;
    let peer = Subject::GoWorkers;
    match peer.prepare() {
        Ok(()) => failover::measure(peer, arguments.standby_objects, &mut table)?,
        Err(error) => println!("── {}: SKIPPED, {error:#}", peer.name()),
    }
    println!("{}", table.render());
    println!("{}", table.summary());
    println!("measured on {}", crate::machine());
    Ok(())
}

/// Starts replicas, and waits until they share the objects.
fn start(count: usize, server: &Server) -> Result<Vec<Replica>> {
    let start = |_| Replica::start(Job::Shards, server);
    let replicas: Vec<Replica> = (0..count).map(start).collect::<Result<_>>()?;
    wait_for_shares(&probes(&replicas))?;
    Ok(replicas)
}

fn probes(replicas: &[Replica]) -> Vec<Probes> {
    replicas.iter().map(|replica| replica.probes).collect()
}

/// The cost of each of several replicas that share all objects.
fn shares(count: usize, objects: usize, table: &mut Table) -> Result<()> {
    println!("── {count} replicas, {objects} objects");
    let mut server = Server::start(Subject::Ours)?;
    let replicas = start(count, &server)?;
    let started = Instant::now();
    server.ask(&format!("create it {objects}"))?;
    wait_for_handling(&mut server, objects)?;
    let seconds = started.elapsed().as_secs_f64();
    let mut row = |what: &str, samples: Vec<f64>, unit| {
        for sample in samples {
            table.add(&format!("{count} replicas: {what}"), sample, unit, Target::Free);
        }
    };
    row("all handled after", vec![seconds], "s");
    let each = |value: &dyn Fn(&Replica) -> Result<f64>| -> Result<Vec<f64>> {
        replicas.iter().map(value).collect()
    };
    let micros = each(&|replica| replica.process.settle())?;
    row("processor time of each", micros.iter().map(|micros| micros / 1e6).collect(), "s");
    row("memory of each", each(&|it| Ok(it.process.memory()?.resident / 1e6))?, "MB");
    row("received by each", each(&|it| Ok(it.proxy.received_bytes() / 1e6))?, "MB");
    Ok(())
}

/// How long creations wait while a replica is stopped, joins, or is killed.
fn reactions(objects: usize, table: &mut Table) -> Result<()> {
    println!("── {MEMBERS} replicas come and go, {objects} objects");
    let mut server = Server::start(Subject::Ours)?;
    server.ask(&format!("create it {objects}"))?;
    let mut replicas = start(MEMBERS, &server)?;
    wait_for_handling(&mut server, objects)?;
    let mut pace = Pace { server, table, total: objects };
    pace.run("nothing happens", 10, &probes(&replicas), None)?;
    let stopped = replicas.pop().context("there are no replicas")?;
    stopped.signal(Signal::Terminate)?;
    pace.run("a replica is stopped", 10, &probes(&replicas), Some("hand-over"))?;
    drop(stopped);
    replicas.push(Replica::start(Job::Shards, &pace.server)?);
    pace.run("a replica joins", 20, &probes(&replicas), Some("start and hand-over"))?;
    for probes in probes(&replicas) {
        if let Some(seconds) = probes.read()?.value("kopf_shard_handover_seconds") {
            let what = "a replica joins: hand-over by each other";
            pace.table.add(what, seconds * 1e3, "ms", Target::Free);
        }
    }
    // Its objects wait until its Lease has expired.
    replicas.pop().context("there are no replicas")?.signal(Signal::Kill)?;
    pace.run("a replica is killed", 30, &probes(&replicas), Some("until others have its ranges"))
}

/// Creates objects at a steady rate.
struct Pace<'a> {
    server: Server,
    table: &'a mut Table,
    total: usize,
}

impl Pace<'_> {
    /// Measures for some seconds, and meanwhile how long it takes until these replicas have all
    /// ranges.
    fn run(
        &mut self,
        what: &str,
        seconds: usize,
        replicas: &[Probes],
        sharing: Option<&str>,
    ) -> Result<()> {
        let is_killed = what == "a replica is killed";
        let target = if is_killed { Target::Free } else { Target::AtMost(REACTION_MAX_MS) };
        let (prefix, count) = (what.replace(' ', "-"), RATE * seconds);
        let before = waits(replicas);
        let members = replicas.to_vec();
        let shared = std::thread::spawn(move || wait_for_shares(&members));
        self.server.ask(&format!("paced {prefix} {count} {RATE}"))?;
        self.total += count;
        wait_for_handling(&mut self.server, self.total)?;
        let shared = shared.join().map_err(|_| anyhow::anyhow!("a thread panicked"))??;
        if let Some(sharing) = sharing {
            let millis = shared.as_secs_f64() * 1e3;
            self.table.add(&format!("{what}: {sharing}"), millis, "ms", Target::Free);
        }
        let latencies = latencies(&mut self.server, &prefix)?;
        for (name, share) in [("p50", 0.5), ("p99", 0.99)] {
            let value = percentile(&latencies, share);
            self.table.add(&format!("{what}: reaction {name}"), value, "ms", target);
        }
        let longest = percentile(&latencies, 1.0);
        self.table.add(&format!("{what}: longest reaction"), longest, "ms", Target::Free);
        let after = waits(replicas);
        let (all, short) = (after.0 - before.0, after.1 - before.1);
        let percent = 100.0 * short / all.max(1.0);
        let target = Target::AtLeast(SHORT_WAITS_PERCENT);
        self.table.add(&format!("{what}: waits in the queue up to 1 s"), percent, "%", target);
        Ok(())
    }
}

fn wait_for_handling(server: &mut Server, count: usize) -> Result<()> {
    let answer = server.ask(&format!("handled {count} {HANDLING_TIMEOUT_MS}"))?;
    ensure!(answer["in_time"] == true, "{} of {count} were handled", answer["handled"]);
    Ok(())
}

/// The milliseconds from the creation to the handling of all objects with this prefix, sorted.
fn latencies(server: &mut Server, prefix: &str) -> Result<Vec<f64>> {
    let answer = server.ask(&format!("latencies {prefix}-"))?;
    let micros = answer["latencies"].as_array().context("the server tells no latencies")?;
    let mut millis: Vec<f64> =
        micros.iter().filter_map(|it| it.as_f64()).map(|it| it / 1e3).collect();
    ensure!(!millis.is_empty(), "no object `{prefix}` was handled");
    millis.sort_by(f64::total_cmp);
    Ok(millis)
}

/// The value below which this share of sorted values is.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "an index into few values"
)]
fn percentile(sorted: &[f64], share: f64) -> f64 {
    let index = ((sorted.len() as f64 * share).ceil() as usize).max(1) - 1;
    sorted[index.min(sorted.len() - 1)]
}

/// Gives a standby the time to list and watch.
fn rest() {
    std::thread::sleep(Duration::from_secs(5));
}

#[cfg(test)]
mod tests {
    use super::percentile;

    #[test]
    fn percentiles_are_values_of_the_list() {
        let sorted = [1.0, 2.0, 3.0, 4.0];
        assert!((percentile(&sorted, 0.5) - 2.0).abs() < 1e-9);
        assert!((percentile(&sorted, 0.99) - 4.0).abs() < 1e-9);
        assert!((percentile(&[7.0], 0.01) - 7.0).abs() < 1e-9);
    }
}
