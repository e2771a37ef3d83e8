//! Everything a submission must pass, in the order that fails fastest.

use std::process::Command;

use anyhow::Result;

use crate::build::{self, WORKSPACE};
use crate::steps::{self, command_step, step};
use crate::{
    book, chaos, charts, conformance, demos, habits, newcomer, package, python, readme, tidy, ui,
};

/// What can be typed after `cargo xtask ci`.
#[derive(clap::Args, Default)]
pub(crate) struct Arguments {
    /// Skip what comes before the programs: format, lints, the README and its tests.
    #[arg(long)]
    programs: bool,
}

/// Runs all checks; the first failure ends the run.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if !arguments.programs {
        sources()?;
    }
    programs()
}

/// Checks the sources and runs all tests that need nothing but Rust.
fn sources() -> Result<()> {
    step("format", "cargo", &["fmt", "--all", "--check"])?;
    tidy::run()?;
    habits::spelling()?;
    book::run(&book::Arguments::default())?;
    let warnings = ["--all-targets", "--quiet", "--", "-D", "warnings"];
    step("clippy", "cargo", &[&["clippy"][..], &WORKSPACE, &warnings].concat())?;
    // The README's commands; the last one runs all tests.
    readme::run()
}

/// Checks what the programs and packages do.
fn programs() -> Result<()> {
    build::everything()?;
    newcomer::run(&newcomer::Arguments::default())?;
    documentation()?;
    habits::dependencies()?;
    package::run()?;
    ui::ci()?;
    demonstrations()?;
    charts::run(&charts::Arguments::default())?;
    chaos::run(&chaos::Arguments::short())?;
    real_clients()?;
    python_package()
}

/// Runs examples with kubectl; without kubectl, the step is skipped with a message.
fn demonstrations() -> Result<()> {
    if Command::new("kubectl").arg("--help").output().is_err() {
        println!("── demos: SKIPPED, there is no `kubectl` on this machine");
        return Ok(());
    }
    demos::run(&demos::Arguments::default())
}

/// Real clients need Python and kubectl; without them, the step is skipped with a message.
fn real_clients() -> Result<()> {
    for program in ["python3", "kubectl"] {
        let found = Command::new(program).arg("--help").output().is_ok();
        if !found {
            println!("── real clients: SKIPPED, there is no `{program}` on this machine");
            return Ok(());
        }
    }
    conformance::run(&conformance::Arguments::default())
}

/// The package needs Python; without it, the step is skipped with a message.
fn python_package() -> Result<()> {
    if Command::new("python3").arg("--help").output().is_err() {
        println!("── the Python package: SKIPPED, there is no `python3` on this machine");
        return Ok(());
    }
    python::run(&python::Arguments::default())
}

fn documentation() -> Result<()> {
    let mut command = Command::new("cargo");
    command
        .arg("doc")
        .args(WORKSPACE)
        .args(["--no-deps", "--quiet"])
        .env("RUSTDOCFLAGS", "-D warnings")
        .current_dir(steps::root());
    command_step("documentation", command)
}
