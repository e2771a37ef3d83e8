//! The measurements: each starts a new server and a new operator, and adds to the sheet.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::peers;
use super::process::Process;
use super::server::Server;
use super::sheet::{Row, Sheet};
use super::subject::Subject;

const START_TIMEOUT: Duration = Duration::from_secs(30);
const HANDLING_TIMEOUT_MS: usize = 240_000;

/// The processor time of the handler in the case `work`.
const WORK_MICROS: f64 = 3000.0;

/// Objects created while the operator watches.
pub(crate) fn burst(subject: Subject, count: usize, case: &str, sheet: &mut Sheet) -> Result<()> {
    let mut run = Run::start(subject, case)?;
    run.wait_for_watch()?;
    let before = run.operator.settle()?;
    let created = run.server.ask(&format!("create burst {count}"))?;
    let last_at = run.wait_for_handling(count)?;
    let after = run.operator.settle()?;
    run.check_handled(count)?;
    let millis = (last_at - number(&created["first_at"])?) / 1e6;
    sheet.add(Row::Burst(case.into(), count), subject, millis)?;
    let cpu = (after - before) / as_float(count);
    sheet.add(Row::BurstCpu(case.into(), count), subject, cpu)?;
    if case == "work" {
        sheet.add(Row::Overhead(count), subject, cpu - WORK_MICROS)?;
    }
    let making = (number(&created["last_at"])? - number(&created["first_at"])?) / 1e6;
    sheet.add(Row::Making(count), subject, making)?;
    Ok(())
}

/// The limit of the server: patches of existing objects, as fast as possible.
pub(crate) fn raw_patches(count: usize, sheet: &mut Sheet) -> Result<()> {
    let subject = Subject::Floor;
    let mut server = Server::start(subject)?;
    server.ask(&format!("create raw {count}"))?;
    let millis = peers::raw_patches(&server, "raw", count)?;
    sheet.add(Row::RawPatches(count), subject, millis)
}

/// A burst on a server with slow writes.
pub(crate) fn slow_burst(
    subject: Subject,
    count: usize,
    case: &str,
    sheet: &mut Sheet,
) -> Result<()> {
    let server = Server::start_as(subject, Some("--slow"))?;
    let mut run = Run::start_on(server, subject, case)?;
    run.wait_for_watch()?;
    run.operator.settle()?;
    let created = run.server.ask(&format!("create burst {count}"))?;
    let last_at = run.wait_for_handling(count)?;
    run.check_handled(count)?;
    let millis = (last_at - number(&created["first_at"])?) / 1e6;
    sheet.add(Row::SlowBurst(case.into(), count), subject, millis)
}

/// Objects that exist before the operator starts; also its memory afterwards.
pub(crate) fn cold(subject: Subject, count: usize, sheet: &mut Sheet) -> Result<()> {
    let idle = idle_memory(subject, "create")?;
    let mut server = Server::start(subject)?;
    server.ask(&format!("create cold {count}"))?;
    let begun = now();
    let mut run = Run::start_on(server, subject, "create")?;
    let last_at = run.wait_for_handling(count)?;
    let cpu = run.operator.settle()?;
    run.check_handled(count)?;
    // Memory may be returned a little later.
    std::thread::sleep(Duration::from_secs(2));
    let memory = run.operator.memory()?;
    sheet.add(Row::Cold(count), subject, (last_at - begun) / 1e6)?;
    sheet.add(Row::ColdCpu(count), subject, cpu / as_float(count))?;
    sheet.add(Row::Resident(count), subject, memory.resident / 1e6)?;
    sheet.add(Row::Peak(count), subject, memory.peak / 1e6)?;
    sheet.add(Row::PerObject(count), subject, (memory.resident - idle) / as_float(count))?;
    if subject.is_kopf() {
        // It would take as long again, and has no target.
        return Ok(());
    }
    run.server.ask(&format!("create further {count}"))?;
    run.wait_for_handling(2 * count)?;
    run.operator.settle()?;
    std::thread::sleep(Duration::from_secs(2));
    let grown = run.operator.memory()?.resident - memory.resident;
    sheet.add(Row::PerFurther(count), subject, grown / as_float(count))?;
    Ok(())
}

/// The memory of objects whose bodies are kept, per byte of the bodies.
pub(crate) fn bodies(subject: Subject, count: usize, sheet: &mut Sheet) -> Result<()> {
    let idle = idle_memory(subject, "index")?;
    let mut server = Server::start(subject)?;
    server.ask(&format!("create-large kept {count}"))?;
    let mut run = Run::start_on(server, subject, "index")?;
    run.wait_for_watch()?;
    run.operator.settle()?;
    std::thread::sleep(Duration::from_secs(2));
    let memory = run.operator.memory()?;
    let objects = run.server.ask("objects")?;
    let grown = memory.resident - idle;
    sheet.add(Row::PerByte(count), subject, grown / number(&objects["bytes"])?)?;
    sheet.add(Row::PerBareByte(count), subject, grown / number(&objects["bare_bytes"])?)?;
    Ok(())
}

/// From creation to handling, at a moderate rate.
pub(crate) fn latency(subject: Subject, case: &str, sheet: &mut Sheet) -> Result<()> {
    const COUNT: usize = 200;
    const RATE: usize = 50;
    let mut run = Run::start(subject, case)?;
    run.wait_for_watch()?;
    run.server.ask("create warm 20")?;
    run.wait_for_handling(20)?;
    run.operator.settle()?;
    run.server.ask("forget")?;
    run.server.ask(&format!("paced paced {COUNT} {RATE}"))?;
    run.wait_for_handling(COUNT)?;
    let answer = run.server.ask("latencies paced")?;
    let latencies = sorted(&answer["latencies"])?;
    let writes = sorted(&answer["writes"])?;
    ensure!(latencies.len() == COUNT, "{} of {COUNT} were handled", latencies.len());
    sheet.add(Row::LatencyMedian(case.into()), subject, at(&latencies, 50) / 1e3)?;
    sheet.add(Row::LatencyTail(case.into()), subject, at(&latencies, 99) / 1e3)?;
    sheet.add(Row::WriteTime(case.into()), subject, at(&writes, 50) / 1e3)?;
    Ok(())
}

/// Changes that are irrelevant for all handlers.
pub(crate) fn noop(subject: Subject, sheet: &mut Sheet) -> Result<()> {
    const COUNT: usize = 1000;
    let mut run = Run::start(subject, "create")?;
    run.wait_for_watch()?;
    run.server.ask(&format!("create noop {COUNT}"))?;
    run.wait_for_handling(COUNT)?;
    let before = run.operator.settle()?;
    run.server.ask("counts")?;
    let changes = number(&run.server.ask("touch 3")?["changes"])?;
    let after = run.operator.settle()?;
    let counts = run.server.ask("counts")?;
    ensure!(counts == serde_json::json!({}), "changes of nobody's concern were answered: {counts}");
    sheet.add(Row::Noop, subject, (after - before) / changes)?;
    Ok(())
}

/// An operator without objects, and one with a single object.
pub(crate) fn start_up(subject: Subject, sheet: &mut Sheet) -> Result<()> {
    let begun = now();
    let mut run = Run::start(subject, "create")?;
    let watching_at = run.wait_for_watch()?;
    sheet.add(Row::StartUp, subject, (watching_at - run.begun.max(begun)) / 1e6)?;
    run.operator.settle()?;
    sheet.add(Row::Idle, subject, run.operator.memory()?.resident / 1e6)?;
    drop(run);
    let mut server = Server::start(subject)?;
    server.ask("create first 1")?;
    let mut run = Run::start_on(server, subject, "create")?;
    let handled_at = run.wait_for_handling(1)?;
    sheet.add(Row::FirstHandled, subject, (handled_at - run.begun) / 1e6)?;
    Ok(())
}

/// The writes per object of one case: `(steps, case, has a status subresource)`.
pub(crate) fn writes(
    subject: Subject,
    case: &str,
    has_status: bool,
    sheet: &mut Sheet,
) -> Result<()> {
    const COUNT: usize = 50;
    let (operator, step) = case.split_once('/').unwrap_or((case, ""));
    let server = Server::start_as(subject, has_status.then_some("--status"))?;
    let mut run = Run::start_on(server, subject, operator)?;
    run.wait_for_watch()?;
    run.server.ask(&format!("create writes {COUNT}"))?;
    run.wait_for_handling(COUNT)?;
    run.operator.settle()?;
    if !step.is_empty() {
        run.server.ask("counts")?;
        match step {
            "deletion" => run.server.ask(&format!("delete {COUNT}"))?,
            _ => run.server.ask("edit 1")?,
        };
        run.operator.settle()?;
    }
    // Retries and posted events come a little later.
    std::thread::sleep(Duration::from_secs(if operator == "retry" { 2 } else { 1 }));
    run.operator.settle()?;
    let counts = run.server.ask("counts")?;
    let objects = run.server.ask("objects")?;
    let left = number(&objects["count"])?;
    let expected = if step == "deletion" { 0.0 } else { as_float(COUNT) };
    ensure!((left - expected).abs() < 0.5, "{left} objects are left instead of {expected}");
    let total: f64 = counts.as_object().into_iter().flatten().filter_map(|(_, n)| n.as_f64()).sum();
    sheet.add(Row::Writes(case.into(), has_status), subject, total / as_float(COUNT))?;
    Ok(())
}

pub(super) fn idle_memory(subject: Subject, case: &str) -> Result<f64> {
    let mut run = Run::start(subject, case)?;
    run.wait_for_watch()?;
    run.operator.settle()?;
    Ok(run.operator.memory()?.resident)
}

/// A server and an operator that watches it.
pub(super) struct Run {
    pub(super) operator: Process,
    pub(super) server: Server,
    begun: f64,
}

impl Run {
    fn start(subject: Subject, case: &str) -> Result<Self> {
        Self::start_on(Server::start(subject)?, subject, case)
    }

    pub(super) fn start_on(server: Server, subject: Subject, case: &str) -> Result<Self> {
        let begun = now();
        let operator = subject.start(case, &server)?;
        Ok(Self { operator, server, begun })
    }

    pub(super) fn wait_for_watch(&mut self) -> Result<f64> {
        self.wait_for_watch_within(START_TIMEOUT)
    }

    /// The same for operators that list many objects first.
    pub(super) fn wait_for_watch_within(&mut self, patience: Duration) -> Result<f64> {
        let waiting = Instant::now();
        loop {
            if let Some(at) = self.server.ask("watching")?["at"].as_f64() {
                return Ok(at);
            }
            ensure!(waiting.elapsed() < patience, "the operator does not watch");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn wait_for_handling(&mut self, count: usize) -> Result<f64> {
        let answer = self.server.ask(&format!("handled {count} {HANDLING_TIMEOUT_MS}"))?;
        ensure!(answer["in_time"] == true, "{} of {count} were handled", answer["handled"]);
        number(&answer["last_at"])
    }

    /// Checks the objects themselves.
    fn check_handled(&mut self, count: usize) -> Result<()> {
        let objects = self.server.ask("objects")?;
        let handled = number(&objects["handled"])?;
        ensure!((handled - as_float(count)).abs() < 0.5, "{handled} of {count} were handled");
        Ok(())
    }
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64() * 1e9
}

pub(super) fn number(value: &Value) -> Result<f64> {
    value.as_f64().with_context(|| format!("not a number: {value}"))
}

fn sorted(values: &Value) -> Result<Vec<f64>> {
    let values = values.as_array().context("not a list of numbers")?;
    let mut numbers = values.iter().map(number).collect::<Result<Vec<f64>>>()?;
    numbers.sort_by(f64::total_cmp);
    Ok(numbers)
}

fn at(sorted: &[f64], percent: usize) -> f64 {
    sorted
        .get((sorted.len() * percent / 100).min(sorted.len().saturating_sub(1)))
        .copied()
        .unwrap_or(0.0)
}

#[expect(clippy::cast_precision_loss, reason = "counts of a benchmark are small")]
pub(super) fn as_float(count: usize) -> f64 {
    count as f64
}
