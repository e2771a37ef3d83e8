//! `cargo xtask bench scale`: whether the cost per object depends on the number of objects.
//!
//! Our operator only. The server creates all objects itself; the kernel reports processor time and
//! memory. Rows are printed as a table in Markdown, for the book.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use clap::ValueEnum;

use super::cases::{Run, as_float, idle_memory, number};
use super::server::Server;
use super::subject::Subject;
use super::{machine, subject};

/// How many objects are created by one command, so that the server prepares few at a time.
const WAVE: usize = 20_000;
/// How many events the server keeps, see `bench-server`.
const WINDOW: usize = 200_000;
/// As in `bench-operator`.
const CHILDREN_PER_OBJECT: usize = 20;
/// How long an operator at rest is observed.
const REST: Duration = Duration::from_secs(5);
/// No row takes longer.
const PATIENCE: Duration = Duration::from_secs(1200);

/// The arguments of `cargo xtask bench scale`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Only these measurements.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Measurement>,
    /// These numbers of objects instead of the usual ones.
    #[arg(long, value_delimiter = ',')]
    sizes: Vec<usize>,
    /// Measure although the machine has other work: processor times and memory are still of use.
    #[arg(long)]
    busy: bool,
    /// Measure the programs as they were built before.
    #[arg(long)]
    no_build: bool,
}

/// The groups of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Measurement {
    /// Objects that exist before the operator starts.
    Cold,
    /// Objects created while the operator watches.
    Burst,
    /// A watch that missed more events than the server keeps.
    Behind,
    /// Desired children, and a start when all of them exist.
    Children,
    /// One timer per object.
    Timers,
    /// One daemon per object.
    Daemons,
    /// One entry of an index per object.
    Index,
}

/// One row of the table.
struct Row {
    name: String,
    count: usize,
    /// Until the operator was at rest.
    seconds: f64,
    cpu_micros: f64,
    resident: f64,
    idle: f64,
    rest_micros: f64,
    writes: f64,
}

/// Runs the requested measurements.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if !arguments.no_build {
        subject::build()?;
    }
    machine::split_cores()?;
    println!("measured on {}", crate::machine());
    println!("{HEADER}");
    for measurement in Measurement::value_variants() {
        if !arguments.only.is_empty() && !arguments.only.contains(measurement) {
            continue;
        }
        let sizes = match arguments.sizes.as_slice() {
            [] => measurement.sizes(),
            some => some,
        };
        for count in sizes {
            if !arguments.busy {
                machine::wait_for_quiet()?;
            }
            for row in measurement.rows(*count)? {
                println!("{}", row.line());
            }
        }
    }
    Ok(())
}

impl Measurement {
    fn sizes(self) -> &'static [usize] {
        match self {
            Self::Cold | Self::Burst => &[100_000, 300_000, 1_000_000],
            Self::Index => &[100_000, 1_000_000],
            Self::Children => &[200_000],
            Self::Behind | Self::Timers => &[100_000],
            Self::Daemons => &[50_000],
        }
    }

    fn rows(self, count: usize) -> Result<Vec<Row>> {
        Ok(match self {
            Self::Cold => vec![existing("cold start", "create", count, count)?],
            Self::Burst => vec![burst(count)?],
            Self::Behind => vec![behind(count)?],
            Self::Children => children(count)?,
            Self::Timers => vec![existing("timers", "timer", count, 0)?],
            Self::Daemons => vec![existing("daemons", "daemon", count, 0)?],
            Self::Index => vec![existing("index entries", "entries", count, 0)?],
        })
    }
}

/// An operator that starts when the objects exist, and makes this many writes.
fn existing(name: &str, case: &str, count: usize, writes: usize) -> Result<Row> {
    let idle = idle_memory(Subject::Ours, case)?;
    let mut server = Server::start(Subject::Ours)?;
    create(&mut server, "cold", count)?;
    let begun = Instant::now();
    let run = Run::start_on(server, Subject::Ours, case)?;
    Measured { run, begun, cpu_before: 0.0, idle }.row(name, count, writes)
}

/// Objects that are created while the operator watches.
fn burst(count: usize) -> Result<Row> {
    let idle = idle_memory(Subject::Ours, "create")?;
    let mut run = Run::start_on(Server::start(Subject::Ours)?, Subject::Ours, "create")?;
    run.wait_for_watch()?;
    let cpu_before = run.operator.settle()?;
    let begun = Instant::now();
    create(&mut run.server, "burst", count)?;
    Measured { run, begun, cpu_before, idle }.row("burst", count, count)
}

/// An operator that is stopped while the server forgets events that it has not sent.
fn behind(count: usize) -> Result<Row> {
    let idle = idle_memory(Subject::Ours, "create")?;
    let mut server = Server::start(Subject::Ours)?;
    create(&mut server, "known", count)?;
    let mut run = Run::start_on(server, Subject::Ours, "create")?;
    wait_for_writes(&mut run.server, count)?;
    let cpu_before = run.operator.settle()?;
    run.server.ask("lists")?;
    signal(&run, "STOP")?;
    run.server.ask(&format!("touch {}", WINDOW / count.max(1) + 2))?;
    create(&mut run.server, "new", count / 100)?;
    let begun = Instant::now();
    signal(&run, "CONT")?;
    let measured = Measured { run, begun, cpu_before, idle };
    let (row, mut run) = measured.row_and_run("falling behind", count, count / 100)?;
    let lists = number(&run.server.ask("lists")?["lists"])?;
    ensure!((lists - 1.0).abs() < 0.5, "the objects were listed {lists} times");
    Ok(row)
}

/// Children that are created by the first operator and found by the second one.
fn children(count: usize) -> Result<Vec<Row>> {
    let owners = count / CHILDREN_PER_OBJECT;
    let idle = idle_memory(Subject::Ours, "desired")?;
    let mut server = Server::start(Subject::Ours)?;
    create(&mut server, "owner", owners)?;
    let begun = Instant::now();
    let run = Run::start_on(server, Subject::Ours, "desired")?;
    let measured = Measured { run, begun, cpu_before: 0.0, idle };
    let (created, run) = measured.row_and_run("desired children, created", count, count)?;
    let Run { operator, server, .. } = run;
    drop(operator);
    let begun = Instant::now();
    let run = Run::start_on(server, Subject::Ours, "desired")?;
    let measured = Measured { run, begun, cpu_before: 0.0, idle };
    Ok(vec![created, measured.row("desired children, found", count, 0)?])
}

/// A run whose work has begun.
struct Measured {
    run: Run,
    begun: Instant,
    cpu_before: f64,
    idle: f64,
}

impl Measured {
    fn row(self, name: &str, count: usize, writes: usize) -> Result<Row> {
        Ok(self.row_and_run(name, count, writes)?.0)
    }

    /// Waits until at least this many writes were made and the operator is at rest.
    fn row_and_run(mut self, name: &str, count: usize, writes: usize) -> Result<(Row, Run)> {
        self.run.wait_for_watch_within(PATIENCE)?;
        let first = wait_for_writes(&mut self.run.server, writes)?;
        let cpu = self.run.operator.settle()?;
        let seconds = self.begun.elapsed().as_secs_f64();
        // Memory may be returned a little later.
        std::thread::sleep(Duration::from_secs(2));
        let before = self.run.operator.cpu_micros()?;
        std::thread::sleep(REST);
        let rest_micros = self.run.operator.cpu_micros()? - before;
        let row = Row {
            name: name.to_owned(),
            count,
            seconds,
            cpu_micros: cpu - self.cpu_before,
            resident: self.run.operator.memory()?.resident,
            idle: self.idle,
            rest_micros,
            writes: first + take_writes(&mut self.run.server)?,
        };
        Ok((row, self.run))
    }
}

/// Creates the objects in several steps.
fn create(server: &mut Server, prefix: &str, count: usize) -> Result<()> {
    for first in (0..count).step_by(WAVE) {
        server.ask(&format!("create {prefix}-{first} {}", WAVE.min(count - first)))?;
    }
    Ok(())
}

/// Waits until the operator has made this many writes, and returns how many.
fn wait_for_writes(server: &mut Server, expected: usize) -> Result<f64> {
    let waiting = Instant::now();
    let mut writes = take_writes(server)?;
    while writes < as_float(expected) {
        ensure!(waiting.elapsed() < PATIENCE, "there were {writes} writes of {expected}");
        std::thread::sleep(Duration::from_millis(100));
        writes += take_writes(server)?;
    }
    Ok(writes)
}

/// The number of writes since the last time.
fn take_writes(server: &mut Server) -> Result<f64> {
    let counts = server.ask("counts")?;
    Ok(counts.as_object().into_iter().flatten().filter_map(|(_, count)| count.as_f64()).sum())
}

fn signal(run: &Run, name: &str) -> Result<()> {
    let id = run.operator.0.id().to_string();
    let status = Command::new("kill").args(["-s", name, &id]).status()?;
    ensure!(status.success(), "the operator is gone");
    Ok(())
}

const HEADER: &str = "\
| | count | time, s | CPU per object, µs | writes per object | memory, MB \
| memory above idle per object, B | CPU at rest, ms/s |
|---|---:|---:|---:|---:|---:|---:|---:|";

impl Row {
    fn line(&self) -> String {
        let count = as_float(self.count);
        let rest = self.rest_micros / 1e3 / REST.as_secs_f64();
        format!(
            "| {} | {} | {:.1} | {:.1} | {:.2} | {:.1} | {:.0} | {rest:.2} |",
            self.name,
            self.count,
            self.seconds,
            self.cpu_micros / count,
            self.writes / count,
            self.resident / 1e6,
            (self.resident - self.idle) / count,
        )
    }
}
