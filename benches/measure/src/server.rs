//! `cargo xtask bench server`: measures the throughput and the costs of an API server.
//!
//! Drives any server given by a kubeconfig, by default new processes of ours in release mode, from
//! the same machine: on two cores, the load generator takes its share. Every round runs all rows,
//! so that a disturbance of the machine affects at most one sample of each row.

mod bodies;
mod floor;
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

pub(crate) use floor::serve as floor;
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
    /// Send the same requests to a server that only reads them and answers with as many bytes.
    #[arg(long)]
    floor: bool,
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
    let floor = arguments.floor.then(|| Subject::launch(&this, "floor")).transpose()?;
    let floor = floor.as_ref().map(|floor| &floor.endpoint);
    let (mut results, mut before) = (Results::default(), Results::default());
    for round in 1..=arguments.rounds {
        println!("round {round} of {}", arguments.rounds);
        // In turns, because what runs first in a round is slower.
        let is_before_first = round % 2 == 0;
        for is_before in [is_before_first, !is_before_first] {
            let round = if is_before {
                Round { arguments, number: round, floor: None, results: &mut before }
            } else {
                Round { arguments, number: round, floor, results: &mut results }
            };
            match (is_before, &arguments.before, &arguments.kubeconfig) {
                (true, Some(program), _) => ours(program, round)?,
                (true, None, _) => {}
                (false, _, Some(path)) => foreign(&Endpoint::from_file(path)?, round)?,
                (false, _, None) => ours(&this, round)?,
            }
        }
    }
    let table = &results.rows;
    println!("\n{}", table.render());
    if arguments.before.is_some() {
        println!("{}", table.render_beside(&before.rows, "before"));
    }
    if floor.is_some() {
        println!("{}", table.render_beside(&results.floors, "floor"));
    }
    println!("{} ({})", table.summary(), super::machine());
    Ok(())
}

/// What was measured of one server.
#[derive(Default)]
struct Results {
    rows: Table,
    /// The same requests to a server that does nothing else.
    floors: Table,
}

/// One round of measurements.
struct Round<'a> {
    arguments: &'a Arguments,
    number: usize,
    /// The server that does nothing but answer, see `floor.rs`.
    floor: Option<&'a Endpoint>,
    results: &'a mut Results,
}

/// Measures a shared server: everything is removed afterwards.
fn foreign(endpoint: &Endpoint, mut round: Round<'_>) -> Result<()> {
    crate::http::runtime()?.block_on(async {
        let outcome = rates::measure(endpoint, &mut round).await;
        rates::clean(endpoint, round.number).await?;
        outcome
    })
}

/// Measures our own processes: one for throughput, one for growth.
fn ours(program: &Program, mut round: Round<'_>) -> Result<()> {
    let arguments = round.arguments;
    if arguments.wants("inside") {
        inside::measure(program, &mut round.results.rows)?;
    }
    if arguments.wants("rates") {
        let subject = Subject::launch(program, "serve")?;
        let table = &mut round.results.rows;
        let start = subject.start.as_secs_f64() * 1e3;
        table.add("start of a process, to its kubeconfig", start, "ms", Target::Free);
        let idle = process::resident_bytes(subject.id())? / 1e6;
        table.add("memory, idle", idle, "MB", Target::AtMost(30.0));
        crate::http::runtime()?.block_on(rates::measure(&subject.endpoint, &mut round))?;
    }
    if arguments.wants("growth") {
        let subject = Subject::launch(program, "serve")?;
        let table = &mut round.results.rows;
        crate::http::runtime()?.block_on(growth::measure(&subject, arguments, table))?;
    }
    Ok(())
}
