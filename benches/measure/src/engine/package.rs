//! `cargo xtask bench python`: the same script under Kopf with uvloop and under our Python package.
//!
//! Measured like the engines (see `engine`), with the targets of the Python package.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::ValueEnum;

use super::sheet::{Contest, Sheet};
use super::subject::Subject;
use super::{cases, machine, subject};

/// The arguments of `cargo xtask bench python`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Up to 1000 objects and one round, for a first impression.
    #[arg(long)]
    quick: bool,
    /// Only these measurements.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Measurement>,
    /// These numbers of objects instead of the usual ones.
    #[arg(long, value_delimiter = ',')]
    sizes: Vec<usize>,
    /// How often everything is measured; medians are shown.
    #[arg(long)]
    rounds: Option<usize>,
    /// Only our package: for work on it.
    #[arg(long)]
    alone: bool,
    /// Measure although the machine has other work: processor times are still of use.
    #[arg(long)]
    busy: bool,
    /// Leave it to the kernel where the server and the operators run.
    #[arg(long)]
    unpinned: bool,
    /// Measure the package as it was built before.
    #[arg(long)]
    no_build: bool,
    /// Keep the samples in this file, and count those that are there already.
    #[arg(long)]
    samples: Option<PathBuf>,
}

/// The groups of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Measurement {
    StartUp,
    Burst,
    Variants,
    Work,
    Cold,
    Noop,
    Latency,
}

/// The maximum number of objects for handlers that work: Kopf takes 5 ms for each.
const WORKED_MAX: usize = 1000;

/// Runs the requested measurements.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if !arguments.no_build {
        subject::build_package()?;
    }
    let subjects = match arguments.alone {
        true => &Subject::PACKAGES[..1],
        false => &Subject::PACKAGES,
    };
    for subject in subjects {
        subject.prepare()?;
    }
    if !arguments.unpinned {
        machine::split_cores()?;
    }
    let mut sheet = Sheet::open(Contest::Packages, arguments.samples.as_deref())?;
    let rounds = arguments.rounds.unwrap_or(if arguments.quick { 1 } else { 3 });
    for subject in subjects {
        // Loads programs and libraries from the disk, and compiles scripts, once.
        cases::burst(*subject, 100, "create", &mut Sheet::default())
            .with_context(|| format!("the first run of {}", subject.name()))?;
    }
    for round in 1..=rounds {
        println!("── round {round} of {rounds}");
        for measurement in Measurement::value_variants() {
            if !arguments.only.is_empty() && !arguments.only.contains(measurement) {
                continue;
            }
            for subject in subjects {
                if !arguments.busy {
                    machine::wait_for_quiet()?;
                }
                arguments
                    .measure(*measurement, *subject, &mut sheet)
                    .with_context(|| format!("{measurement:?} of {}", subject.name()))?;
            }
        }
    }
    println!("{}\n{}", sheet.render(), sheet.summary());
    println!("measured on {}", crate::machine());
    Ok(())
}

impl Arguments {
    fn sizes(&self) -> &[usize] {
        match (self.sizes.as_slice(), self.quick) {
            ([], true) => &[100, 1000],
            ([], false) => &[100, 1000, 10_000],
            (sizes, _) => sizes,
        }
    }

    fn measure(&self, measurement: Measurement, subject: Subject, sheet: &mut Sheet) -> Result<()> {
        let few = || self.sizes().iter().filter(|count| **count <= WORKED_MAX);
        match measurement {
            Measurement::StartUp => cases::start_up(subject, sheet)?,
            Measurement::Noop => cases::noop(subject, sheet)?,
            Measurement::Latency => cases::latency(subject, "create", sheet)?,
            Measurement::Burst => {
                for count in self.sizes() {
                    cases::burst(subject, *count, "create", sheet)?;
                }
            }
            Measurement::Variants => {
                for count in few() {
                    cases::burst(subject, *count, "kwargs", sheet)?;
                    cases::burst(subject, *count, "sync", sheet)?;
                }
            }
            Measurement::Work => {
                for count in few() {
                    cases::burst(subject, *count, "work", sheet)?;
                }
            }
            Measurement::Cold => {
                for count in self.sizes() {
                    cases::cold(subject, *count, sheet)?;
                }
            }
        }
        Ok(())
    }
}
