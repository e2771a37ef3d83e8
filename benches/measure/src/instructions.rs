//! `cargo xtask bench instructions`: the cost of one object, counted by valgrind.
//!
//! Counts do not depend on the load of the machine, so they are compared with the numbers in
//! `benches/instructions.json`: the command fails if a count has grown by more than the tolerance.
//! Each count is the difference of two runs that differ only in the number of objects or events, so
//! that starting and stopping do not count.

mod cases;
mod ledger;
mod valgrind;

use std::process::Command;

use anyhow::{Result, bail};

use self::cases::Case;
use self::ledger::{Ledger, Verdict};
use self::valgrind::Tool;
use crate::steps::{command_step, root};

/// The arguments of `cargo xtask bench instructions`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Only cases whose names contain this text.
    #[arg(long)]
    only: Option<String>,
    /// Count instructions only, which takes half the time.
    #[arg(long)]
    no_allocations: bool,
    /// Measure the programs as they were built before.
    #[arg(long)]
    no_build: bool,
    /// Write the numbers to the file instead of comparing them with it.
    #[arg(long)]
    update: bool,
}

/// Counts, prints, and compares or writes.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("── instructions: SKIPPED, there is no `valgrind` on this machine");
        return Ok(());
    }
    if !arguments.no_build {
        build()?;
    }
    let mut ledger = Ledger::open()?;
    let mut worse = Vec::new();
    println!("{:<24} {:>14} {:>10} {:>8}", "per object or event", "counted", "committed", "");
    for case in Case::ALL {
        if arguments.only.as_ref().is_some_and(|text| !case.name.contains(text.as_str())) {
            continue;
        }
        for tool in Tool::ALL {
            if tool == Tool::Allocations && (arguments.no_allocations || !case.counts_allocations())
            {
                continue;
            }
            let counted = case.count(tool)?;
            let verdict = ledger.compare(case.name, tool, counted);
            println!("{:<24} {}", case.name, verdict.line(tool, counted));
            if let Verdict::Worse(_) = verdict {
                worse.push(format!("{} ({})", case.name, tool.unit()));
            }
            ledger.set(case.name, tool, counted);
        }
    }
    if arguments.update {
        return ledger.write();
    }
    if worse.is_empty() {
        return Ok(());
    }
    bail!("these cost more than committed: {}; `--update` commits to it", worse.join(", "))
}

/// Builds the counted programs, and the server that drives operators.
fn build() -> Result<()> {
    let steps: [&[&str]; 2] = [
        &["-p", "benches", "--bin", "bench-server", "--bin", "bench-requests"],
        // Alone: the features of the others would change it.
        &["-p", "bench-operator"],
    ];
    for step in steps {
        let mut build = Command::new("cargo");
        build.args(["build", "--quiet", "--release"]).args(step).current_dir(root());
        command_step("counted programs", build)?;
    }
    Ok(())
}
