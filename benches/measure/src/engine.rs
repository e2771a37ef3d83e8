//! `cargo xtask bench engine`: compares this engine, Kopf and a kube-rs `Controller` in the same
//! task.
//!
//! All of them run with the same embedded server, which is a separate process on its own cores, one
//! at a time and interleaved, after a warm-up run. The server creates the objects and measures the
//! times; the kernel reports processor time and memory. Every run checks the objects themselves and
//! fails if some were not handled.

mod cases;
mod machine;
pub(crate) mod package;
pub(crate) mod peer_run;
pub(super) mod peers;
pub(super) mod process;
pub(crate) mod scale;
pub(super) mod server;
mod sheet;
pub(super) mod subject;

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::ValueEnum;

use self::sheet::{Contest, Row, Sheet};
use self::subject::Subject;

/// The arguments of `cargo xtask bench engine`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Up to 1000 objects and one round, for a first impression.
    #[arg(long)]
    quick: bool,
    /// Only these operators.
    #[arg(long, value_enum, value_delimiter = ',')]
    subjects: Vec<Subject>,
    /// Only these measurements.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Measurement>,
    /// These numbers of objects instead of the usual ones.
    #[arg(long, value_delimiter = ',')]
    sizes: Vec<usize>,
    /// How often everything is measured; medians are shown.
    #[arg(long)]
    rounds: Option<usize>,
    /// Leave it to the kernel where the server and the operators run, instead of giving each side
    /// cores of its own.
    #[arg(long)]
    unpinned: bool,
    /// Measure the programs as they were built before.
    #[arg(long)]
    no_build: bool,
    /// Compare with this build of `bench-operator` from another commit, instead of other operators.
    #[arg(long, value_name = "PROGRAM")]
    before: Option<PathBuf>,
    /// Keep the samples in this file, and count those that are there already.
    #[arg(long)]
    samples: Option<PathBuf>,
}

/// The groups of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Measurement {
    StartUp,
    Burst,
    BurstDelete,
    BurstSlow,
    Cold,
    Noop,
    Latency,
    Bodies,
    Writes,
}

/// The cases whose writes are counted: the operator's case, and the action after the creation.
const WRITES: [(&str, bool); 13] = [
    ("silent", false),
    ("create", false),
    ("create", true),
    ("two", false),
    ("two", true),
    ("delete", false),
    ("two-delete", false),
    ("two-delete", true),
    ("delete/deletion", false),
    ("update/update", false),
    ("update/update", true),
    ("retry", false),
    ("event", false),
];

/// Runs the requested measurements.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let chosen =
        |subject: &Subject| arguments.subjects.is_empty() || arguments.subjects.contains(subject);
    let contest = match &arguments.before {
        Some(program) => {
            subject::compare_with(program)?;
            Contest::Builds
        }
        None => Contest::Engines,
    };
    let subjects: Vec<Subject> = contest.subjects().iter().copied().filter(chosen).collect();
    if !arguments.no_build {
        subject::build()?;
    }
    for subject in &subjects {
        subject.prepare()?;
    }
    if !arguments.unpinned {
        machine::split_cores()?;
    }
    let mut sheet = Sheet::open(contest, arguments.samples.as_deref())?;
    for subject in &subjects {
        if let Some(file) = subject.binary() {
            let bytes = std::fs::metadata(file)?.len();
            #[expect(clippy::cast_precision_loss, reason = "binaries are small")]
            sheet.add(Row::Binary, *subject, bytes as f64 / 1e6)?;
        }
    }
    let rounds = arguments.rounds.unwrap_or(if arguments.quick { 1 } else { 5 });
    for subject in &subjects {
        // Loads programs and libraries from the disk once.
        cases::burst(*subject, 100, "create", &mut Sheet::default())
            .with_context(|| format!("the first run of {}", subject.name()))?;
    }
    for round in 1..=rounds {
        println!("── round {round} of {rounds}");
        for measurement in arguments.measurements(round) {
            for subject in &subjects {
                machine::wait_for_quiet()?;
                arguments
                    .measure(measurement, *subject, &mut sheet)
                    .with_context(|| format!("{measurement:?} of {}", subject.name()))?;
            }
        }
    }
    println!("{}\n{}", sheet.render(), sheet.summary());
    Ok(())
}

impl Arguments {
    fn measurements(&self, round: usize) -> Vec<Measurement> {
        let mut all = Measurement::value_variants().to_vec();
        all.retain(|it| self.only.is_empty() || self.only.contains(it));
        // Counts are always the same.
        all.retain(|it| round == 1 || *it != Measurement::Writes);
        all
    }

    fn sizes(&self) -> &[usize] {
        match (self.sizes.as_slice(), self.quick) {
            ([], true) => &[100, 1000],
            ([], false) => &[100, 1000, 10_000],
            (sizes, _) => sizes,
        }
    }

    fn measure(&self, measurement: Measurement, subject: Subject, sheet: &mut Sheet) -> Result<()> {
        match measurement {
            Measurement::StartUp => cases::start_up(subject, sheet)?,
            Measurement::Noop => cases::noop(subject, sheet)?,
            Measurement::Latency => {
                cases::latency(subject, "create", sheet)?;
                cases::latency(subject, "delete", sheet)?;
            }
            Measurement::Burst => {
                for count in self.sizes() {
                    cases::burst(subject, *count, "create", sheet)?;
                }
            }
            Measurement::BurstDelete => {
                for count in self.sizes() {
                    cases::burst(subject, *count, "delete", sheet)?;
                }
            }
            Measurement::BurstSlow => {
                for count in self.sizes() {
                    cases::slow_burst(subject, *count, "create", sheet)?;
                    cases::slow_burst(subject, *count, "delete", sheet)?;
                }
            }
            Measurement::Cold => {
                for count in self.sizes() {
                    cases::cold(subject, *count, sheet)?;
                }
            }
            // The others keep either nothing or everything.
            Measurement::Bodies if Subject::BUILDS.contains(&subject) => {
                for count in self.sizes() {
                    cases::bodies(subject, *count, sheet)?;
                }
            }
            Measurement::Writes if subject != Subject::Controller => {
                for (case, has_status) in WRITES {
                    cases::writes(subject, case, has_status, sheet)?;
                }
            }
            Measurement::Bodies | Measurement::Writes => {}
        }
        Ok(())
    }
}
