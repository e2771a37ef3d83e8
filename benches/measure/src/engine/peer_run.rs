//! `cargo xtask bench peers`: the same task in Go, in Java, and by a minimal client.
//!
//! Measured like the engines (see `engine`): the same server, the same objects, interleaved rounds.
//! Peers that this machine cannot build are left out. With `--book`, the table and the charts of
//! the book are generated from the samples.

mod charts;
mod page;

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::ValueEnum;

use super::sheet::{Contest, Row, Sheet};
use super::subject::Subject;
use super::{cases, machine, subject};

/// The arguments of `cargo xtask bench peers`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Only these operators.
    #[arg(long, value_enum, value_delimiter = ',')]
    subjects: Vec<Subject>,
    /// Only these measurements.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Measurement>,
    /// These numbers of objects instead of the usual ones.
    #[arg(long, value_delimiter = ',', default_values_t = [100, 1000])]
    sizes: Vec<usize>,
    /// How often everything is measured; medians are shown. With 0, only what the file has.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Leave it to the kernel where the server and the operators run.
    #[arg(long)]
    unpinned: bool,
    /// Measure the programs as they were built before.
    #[arg(long)]
    no_build: bool,
    /// Keep the samples in this file, and count those that are there already.
    #[arg(long)]
    samples: Option<PathBuf>,
    /// Write the table and the charts of the book.
    #[arg(long)]
    book: bool,
}

/// The groups of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Measurement {
    StartUp,
    Burst,
    BurstDelete,
    Cold,
    Noop,
    Latency,
    Limit,
}

/// Runs the requested measurements.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let mut sheet = Sheet::open(Contest::Peers, arguments.samples.as_deref())?;
    if arguments.rounds > 0 {
        arguments.measure_all(&mut sheet)?;
    }
    println!("{}", page::table(&sheet));
    println!("measured on {}", crate::machine());
    if arguments.book {
        page::write(&sheet)?;
    }
    Ok(())
}

impl Arguments {
    fn measure_all(&self, sheet: &mut Sheet) -> Result<()> {
        let subjects = self.ready_subjects()?;
        if !self.unpinned {
            machine::split_cores()?;
        }
        for subject in &subjects {
            if let Some(file) = subject.binary().filter(|_| *subject != Subject::Floor) {
                let bytes = std::fs::metadata(file)?.len();
                #[expect(clippy::cast_precision_loss, reason = "binaries are small")]
                sheet.add(Row::Binary, *subject, bytes as f64 / 1e6)?;
            }
            // Loads programs and libraries from the disk once.
            cases::burst(*subject, 100, "create", &mut Sheet::default())
                .with_context(|| format!("the first run of {}", subject.name()))?;
        }
        for round in 1..=self.rounds {
            println!("── round {round} of {}", self.rounds);
            for measurement in Measurement::value_variants() {
                if !self.only.is_empty() && !self.only.contains(measurement) {
                    continue;
                }
                for subject in &subjects {
                    machine::wait_for_quiet()?;
                    self.measure(*measurement, *subject, sheet)
                        .with_context(|| format!("{measurement:?} of {}", subject.name()))?;
                }
            }
        }
        Ok(())
    }

    /// Builds the subjects; reports those that cannot be built.
    fn ready_subjects(&self) -> Result<Vec<Subject>> {
        if !self.no_build {
            subject::build()?;
        }
        let mut ready = Vec::new();
        for subject in Subject::PEERS {
            if !self.subjects.is_empty() && !self.subjects.contains(&subject) {
                continue;
            }
            match if self.no_build { Ok(()) } else { subject.prepare() } {
                Ok(()) => ready.push(subject),
                Err(error) => println!("── {}: SKIPPED, {error:#}", subject.name()),
            }
        }
        Ok(ready)
    }

    fn measure(&self, measurement: Measurement, subject: Subject, sheet: &mut Sheet) -> Result<()> {
        // The floor has no state and no finalizers.
        let is_floor = subject == Subject::Floor;
        match measurement {
            Measurement::StartUp => cases::start_up(subject, sheet)?,
            Measurement::Noop => cases::noop(subject, sheet)?,
            Measurement::Latency => cases::latency(subject, "create", sheet)?,
            Measurement::Burst => {
                for count in &self.sizes {
                    cases::burst(subject, *count, "create", sheet)?;
                }
            }
            Measurement::BurstDelete if !is_floor => {
                for count in &self.sizes {
                    cases::burst(subject, *count, "delete", sheet)?;
                }
            }
            Measurement::Cold if !is_floor => {
                for count in &self.sizes {
                    cases::cold(subject, *count, sheet)?;
                }
            }
            Measurement::Limit if is_floor => {
                for count in &self.sizes {
                    cases::raw_patches(*count, sheet)?;
                }
            }
            Measurement::BurstDelete | Measurement::Cold | Measurement::Limit => {}
        }
        Ok(())
    }
}
