//! The samples of all runs, and the results: medians, spreads, ratios, verdicts.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::subject::Subject;

/// What was measured.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Row {
    Burst(String, usize),
    SlowBurst(String, usize),
    Cold(usize),
    BurstCpu(String, usize),
    /// The processor time without that of the handler itself.
    Overhead(usize),
    ColdCpu(usize),
    Noop,
    LatencyMedian(String),
    LatencyTail(String),
    WriteTime(String),
    StartUp,
    FirstHandled,
    Idle,
    Resident(usize),
    Peak(usize),
    PerObject(usize),
    PerFurther(usize),
    PerByte(usize),
    PerBareByte(usize),
    Binary,
    Writes(String, bool),
    Making(usize),
    /// Plain patches of existing objects: the limit of the server.
    RawPatches(usize),
}

/// The target of a row.
enum Bar {
    /// This factor less than Kopf (the faster of both), and not more than kube-rs.
    Times(f64),
    /// This factor less than Kopf.
    TimesKopf(f64),
    /// Not more than kube-rs.
    NotWorse,
    /// At most this.
    AtMost(f64),
    /// At most this much more than another row.
    Above(Row, f64),
    /// The minimum number of writes, and never more than Kopf.
    Floor(f64),
    /// This factor less than kube-rs.
    LessThanController(f64),
    None,
}

/// The compared groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Contest {
    /// Operators for the same task.
    #[default]
    Engines,
    /// The same script in Python.
    Packages,
    /// Operators in other languages for the same task.
    Peers,
    /// Two builds of this engine.
    Builds,
}

impl Contest {
    pub(crate) fn subjects(self) -> &'static [Subject] {
        match self {
            Self::Engines => &Subject::ENGINES,
            Self::Packages => &Subject::PACKAGES,
            Self::Peers => &Subject::PEERS,
            Self::Builds => &Subject::BUILDS,
        }
    }

    fn ours(self) -> Subject {
        match self {
            Self::Engines | Self::Peers | Self::Builds => Subject::Ours,
            Self::Packages => Subject::Python,
        }
    }

    fn bar(self, row: &Row) -> Bar {
        match self {
            Self::Engines => row.bar(),
            Self::Packages => row.bar_in_python(),
            Self::Peers | Self::Builds => Bar::None,
        }
    }

    /// The columns of ratios to our value: the best of some subjects each.
    fn ratios(self) -> &'static [(&'static str, &'static [Subject])] {
        const KOPF: (&str, &[Subject]) = ("Kopf ÷ ours", &[Subject::Kopf, Subject::Uvloop]);
        const CONTROLLER: (&str, &[Subject]) = ("kube-rs ÷ ours", &[Subject::Controller]);
        match self {
            Self::Engines | Self::Peers => &[KOPF, CONTROLLER],
            Self::Packages => &[KOPF],
            Self::Builds => &[("before ÷ ours", &[Subject::Before])],
        }
    }
}

/// All samples, by row and subject.
#[derive(Default)]
pub(crate) struct Sheet {
    contest: Contest,
    samples: BTreeMap<Row, BTreeMap<Subject, Vec<f64>>>,
    file: Option<File>,
}

impl Row {
    pub(crate) fn name(&self) -> String {
        let with = |case: &str| match case {
            "delete" => ", with a delete handler",
            "sync" => ", handler in a thread",
            "kwargs" => ", handler with all kwargs",
            "work" => ", handler with 3 ms of work",
            _ => "",
        };
        match self {
            Self::Burst(case, count) => format!("burst of {count}{}, ms", with(case)),
            Self::SlowBurst(case, count) => {
                format!("burst of {count}, writes take 5 ms{}, ms", with(case))
            }
            Self::Cold(count) => format!("cold start with {count}, ms"),
            Self::BurstCpu(case, count) => {
                format!("CPU per object, burst of {count}{}, µs", with(case))
            }
            Self::Overhead(count) => {
                format!("CPU per object beyond 3 ms of work, burst of {count}, µs")
            }
            Self::ColdCpu(count) => format!("CPU per object, cold start with {count}, µs"),
            Self::Noop => "CPU per no-op event, µs".into(),
            Self::LatencyMedian(case) => format!("reaction p50{}, ms", with(case)),
            Self::LatencyTail(case) => format!("reaction p99{}, ms", with(case)),
            Self::WriteTime(case) => format!("time of a write in the server p50{}, ms", with(case)),
            Self::StartUp => "start to watching, ms".into(),
            Self::FirstHandled => "start to the first handled object, ms".into(),
            Self::Idle => "memory, idle, MB".into(),
            Self::Resident(count) => format!("memory with {count} objects, MB"),
            Self::Peak(count) => format!("peak memory with {count} objects, MB"),
            Self::PerObject(count) => {
                format!("memory above idle per object of {count}, buffers and all, B")
            }
            Self::PerFurther(count) => format!("memory per idle object beyond {count}, B"),
            Self::PerByte(count) => format!("memory per byte, {count} bodies of 5 KB kept"),
            Self::PerBareByte(_) => "the same, without managedFields".into(),
            Self::Binary => "binary, MB".into(),
            Self::Writes(case, has_status) => {
                format!("writes: {case}{}", if *has_status { ", status subresource" } else { "" })
            }
            Self::Making(count) => format!("(time to make {count} objects, ms)"),
            Self::RawPatches(count) => format!("limit: {count} bare patches, ms"),
        }
    }

    fn bar(&self) -> Bar {
        match self {
            Self::Burst(..) | Self::Cold(_) => Bar::Times(20.0),
            Self::BurstCpu(..) | Self::ColdCpu(_) => Bar::Times(20.0),
            Self::Noop => Bar::Times(25.0),
            Self::StartUp => Bar::Times(20.0),
            Self::Idle => Bar::TimesKopf(4.0),
            Self::LatencyMedian(case) => {
                let patches = if case == "delete" { 2.0 } else { 1.0 };
                Bar::Above(Self::WriteTime(case.clone()), patches)
            }
            // Part of the time is the server's, and the same for all.
            Self::SlowBurst(..) | Self::LatencyTail(_) => Bar::NotWorse,
            Self::FirstHandled => Bar::AtMost(100.0),
            Self::Resident(count) if *count >= 10_000 => Bar::LessThanController(3.0),
            Self::PerFurther(count) if *count >= 10_000 => Bar::AtMost(150.0),
            Self::PerByte(count) if *count >= 10_000 => Bar::AtMost(1.15),
            Self::Writes(case, has_status) => Bar::Floor(floor(case, *has_status)),
            _ => Bar::None,
        }
    }
}

impl Row {
    /// The targets of our Python package.
    fn bar_in_python(&self) -> Bar {
        match self {
            Self::Burst(case, _) | Self::BurstCpu(case, _) if case == "create" => {
                Bar::TimesKopf(10.0)
            }
            Self::StartUp => Bar::TimesKopf(2.0),
            Self::Resident(count) if *count >= 10_000 => Bar::TimesKopf(3.0),
            Self::LatencyMedian(case) => Bar::Above(Self::WriteTime(case.clone()), 1.0),
            _ => Bar::None,
        }
    }
}

/// The minimum number of writes per object of a case, as derived in the performance study.
fn floor(case: &str, has_status: bool) -> f64 {
    match (case, has_status) {
        ("silent" | "delete/deletion", _) | ("create" | "two" | "update/update", false) => 1.0,
        ("event", _) | ("delete" | "two-delete", false) => 2.0,
        ("create" | "two" | "update/update", true) => 2.0,
        _ => 3.0,
    }
}

impl Sheet {
    /// Opens a sheet that is empty, or has the samples of a file and adds to it.
    pub(crate) fn open(contest: Contest, path: Option<&Path>) -> Result<Self> {
        let mut sheet = Self { contest, ..Self::default() };
        let Some(path) = path else { return Ok(sheet) };
        let text = if path.exists() { std::fs::read_to_string(path)? } else { String::new() };
        for line in text.lines() {
            let (row, subject, value): (Row, Subject, f64) = serde_json::from_str(line)
                .with_context(|| format!("not a sample of this benchmark: {line}"))?;
            sheet.put(row, subject, value);
        }
        sheet.file = Some(File::options().create(true).append(true).open(path)?);
        Ok(sheet)
    }

    /// Adds a sample.
    pub(crate) fn add(&mut self, row: Row, subject: Subject, value: f64) -> Result<()> {
        println!("  {:<14} {:<58} {value:>10.2}", subject.name(), row.name());
        if let Some(file) = &mut self.file {
            writeln!(file, "{}", serde_json::to_string(&(&row, subject, value))?)?;
        }
        self.put(row, subject, value);
        Ok(())
    }

    fn put(&mut self, row: Row, subject: Subject, value: f64) {
        self.samples.entry(row).or_default().entry(subject).or_default().push(value);
    }

    pub(crate) fn median(&self, row: &Row, subject: Subject) -> Option<f64> {
        let mut values = self.samples.get(row)?.get(&subject)?.clone();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied()
    }

    /// What was measured.
    pub(crate) fn rows(&self) -> impl Iterator<Item = &Row> {
        self.samples.keys()
    }

    /// The better of both Kopf variants.
    fn kopf(&self, row: &Row) -> Option<f64> {
        self.best(row, &[Subject::Kopf, Subject::Uvloop])
    }

    fn best(&self, row: &Row, subjects: &[Subject]) -> Option<f64> {
        subjects.iter().filter_map(|subject| self.median(row, *subject)).min_by(f64::total_cmp)
    }

    /// The table as Markdown; every cell is the median with the smallest and largest value.
    pub(crate) fn render(&self) -> String {
        let mut head = String::from("| |");
        for subject in self.contest.subjects() {
            let _infallible = write!(head, " {} |", subject.name());
        }
        for (name, _) in self.contest.ratios() {
            let _infallible = write!(head, " {name} |");
        }
        let numbers = head.matches('|').count() - 2;
        let mut text = format!("{head} bar | |\n|---|{}---|---|\n", "---:|".repeat(numbers));
        for row in self.samples.keys() {
            text.push_str(&self.render_row(row));
        }
        text
    }

    fn render_row(&self, row: &Row) -> String {
        let mut text = format!("| {} |", row.name());
        for subject in self.contest.subjects() {
            let _infallible = write!(text, " {} |", self.cell(row, *subject));
        }
        let ours = self.median(row, self.contest.ours());
        let ratio = |other: Option<f64>| match (other, ours) {
            (Some(other), Some(ours)) if ours > 0.0 => short(other / ours),
            _ => String::new(),
        };
        for (_, others) in self.contest.ratios() {
            let _infallible = write!(text, " {} |", ratio(self.best(row, others)));
        }
        let (bar, verdict) = self.verdict(row);
        let verdict = match verdict {
            Some(true) => "met",
            Some(false) => "**missed**",
            None => "",
        };
        let _infallible = writeln!(text, " {bar} | {verdict} |");
        text
    }

    pub(crate) fn cell(&self, row: &Row, subject: Subject) -> String {
        let Some(values) = self.samples.get(row).and_then(|row| row.get(&subject)) else {
            return String::new();
        };
        let median = self.median(row, subject).map(short).unwrap_or_default();
        if values.len() == 1 {
            return median;
        }
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        format!("{median} ({}–{})", short(least), short(most))
    }

    fn verdict(&self, row: &Row) -> (String, Option<bool>) {
        let ours = self.median(row, self.contest.ours());
        let controller = self.median(row, Subject::Controller);
        let kopf = self.kopf(row);
        let not_worse = |ours: f64| controller.is_none_or(|controller| ours <= controller);
        match self.contest.bar(row) {
            Bar::None => (String::new(), None),
            Bar::Times(times) => {
                let met =
                    ours.zip(kopf).map(|(ours, kopf)| kopf / ours >= times && not_worse(ours));
                (format!("≥ {times}× Kopf, ≤ kube-rs"), met)
            }
            Bar::TimesKopf(times) => (
                format!("≥ {times}× Kopf"),
                ours.zip(kopf).map(|(ours, kopf)| kopf / ours >= times),
            ),
            Bar::NotWorse => ("≤ kube-rs".into(), ours.zip(controller).map(|(a, b)| a <= b)),
            Bar::AtMost(most) => (format!("≤ {most}"), ours.map(|ours| ours <= most)),
            Bar::Above(other, more) => {
                let base = self.median(&other, self.contest.ours()).map(|base| more * (base + 1.0));
                let met = ours.zip(base).map(|(ours, base)| ours <= base && not_worse(ours));
                (format!("≤ writes + {more} ms"), met)
            }
            Bar::Floor(least) => {
                let met = ours.map(|ours| {
                    ours <= least + 0.001 && kopf.is_none_or(|kopf| ours <= kopf + 0.001)
                });
                (format!("≤ {least}, ≤ Kopf"), met)
            }
            Bar::LessThanController(times) => {
                let met = ours.zip(controller).map(|(ours, other)| other / ours >= times);
                (format!("{times}× less than kube-rs"), met)
            }
        }
    }

    /// One line: how many targets are met, and the most important ratios.
    pub(crate) fn summary(&self) -> String {
        let verdicts: Vec<bool> =
            self.samples.keys().filter_map(|row| self.verdict(row).1).collect();
        let met = verdicts.iter().filter(|met| **met).count();
        let mut text = format!("{met} of {} bars met", verdicts.len());
        let largest = |pick: &dyn Fn(&Row) -> bool| {
            self.samples.keys().filter(|row| pick(row)).last().cloned()
        };
        let told = [
            ("burst", largest(&|row| matches!(row, Row::Burst(case, _) if case == "create"))),
            ("cold", largest(&|row| matches!(row, Row::Cold(_)))),
            (
                "CPU/object",
                largest(&|row| matches!(row, Row::BurstCpu(case, _) if case == "create")),
            ),
            ("CPU/no-op", Some(Row::Noop)),
            ("start", Some(Row::StartUp)),
            ("idle memory", Some(Row::Idle)),
        ];
        for (name, row) in told {
            let Some(row) = row else { continue };
            let (ours, kopf) = (self.median(&row, self.contest.ours()), self.kopf(&row));
            let controller = self.median(&row, Subject::Controller);
            if let (Some(ours), Some(kopf)) = (ours, kopf) {
                let _infallible = write!(text, "; {name} {}x Kopf", short(kopf / ours));
                if let Some(controller) = controller {
                    let _infallible = write!(text, ", {}x kube-rs", short(controller / ours));
                }
            }
        }
        text
    }
}

/// Three significant digits.
pub(crate) fn short(value: f64) -> String {
    match value.abs() {
        large if large >= 100.0 => format!("{value:.0}"),
        middle if middle >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests;
