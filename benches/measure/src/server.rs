//! `cargo xtask bench server`: measures the throughput and the costs of an API server.
//!
//! Drives any server given by a kubeconfig, by default new processes of ours in release mode, from
//! the same machine: on two cores, the load generator takes its share. Every round runs all rows,
//! so that a disturbance of the machine affects at most one sample of each row.

mod bodies;
mod growth;
mod inside;
mod process;
mod rates;
mod subject;

use std::path::PathBuf;

use anyhow::Result;

use super::table::{Table, Target};
use crate::kubeconfig::Endpoint;
use subject::{Program, Subject};

pub(crate) use inside::report as world;
pub(crate) use subject::{ServeArguments, serve};

/// The arguments of `cargo xtask bench server`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Measure this running server instead of a new one of ours.
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    /// A tenth of the work, for a first impression.
    #[arg(long)]
    quick: bool,
    /// How often everything is measured; the median counts.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Only these parts: `inside`, `rates`, `growth`.
    #[arg(long)]
    only: Option<String>,
    /// Measure this build of the benchmark from another commit as well, in turn with this one.
    #[arg(long, value_name = "PROGRAM")]
    before: Option<Program>,
}

impl Arguments {
    fn wants(&self, part: &str) -> bool {
        self.only.as_ref().is_none_or(|only| only == part)
    }

    /// The full amount of work, or a tenth of it.
    fn work(&self, full: usize) -> usize {
        if self.quick { full / 10 } else { full }
    }
}

/// Runs all rows, prints the table and a summary line.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if cfg!(debug_assertions) {
        // Otherwise, the slow load generator would be measured instead of the server.
        return super::again_in_release();
    }
    let this = Program::this()?;
    let (mut table, mut before) = (Table::default(), Table::default());
    for round in 1..=arguments.rounds {
        println!("round {round} of {}", arguments.rounds);
        // In turns, because what runs first in a round is slower.
        let is_before_first = round % 2 == 0;
        for is_before in [is_before_first, !is_before_first] {
            match (is_before, &arguments.before, &arguments.kubeconfig) {
                (true, Some(program), _) => ours(program, arguments, round, &mut before)?,
                (true, None, _) => {}
                (false, _, Some(path)) => {
                    foreign(&Endpoint::from_file(path)?, arguments, round, &mut table)?;
                }
                (false, _, None) => ours(&this, arguments, round, &mut table)?,
            }
        }
    }
    println!("\n{}", table.render());
    if arguments.before.is_some() {
        println!("{}", table.render_beside(&before));
    }
    println!("{} ({})", table.summary(), super::machine());
    Ok(())
}

/// Measures a shared server: everything is removed afterwards.
fn foreign(
    endpoint: &Endpoint,
    arguments: &Arguments,
    round: usize,
    table: &mut Table,
) -> Result<()> {
    crate::http::runtime()?.block_on(async {
        let outcome = rates::measure(endpoint, arguments, round, table).await;
        rates::clean(endpoint, round).await?;
        outcome
    })
}

/// Measures our own processes: one for throughput, one for growth.
fn ours(program: &Program, arguments: &Arguments, round: usize, table: &mut Table) -> Result<()> {
    if arguments.wants("inside") {
        inside::measure(program, table)?;
    }
    if arguments.wants("rates") {
        let subject = Subject::launch(program)?;
        let start = subject.start.as_secs_f64() * 1e3;
        table.add("start of a process, to its kubeconfig", start, "ms", Target::Free);
        let idle = process::resident_bytes(subject.id())? / 1e6;
        table.add("memory, idle", idle, "MB", Target::AtMost(30.0));
        let runtime = crate::http::runtime()?;
        runtime.block_on(rates::measure(&subject.endpoint, arguments, round, table))?;
    }
    if arguments.wants("growth") {
        let subject = Subject::launch(program)?;
        crate::http::runtime()?.block_on(growth::measure(&subject, arguments, table))?;
    }
    Ok(())
}
