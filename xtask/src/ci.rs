//! Everything a submission must pass, in the order that fails fastest.

use std::process::Command;

use anyhow::Result;

use crate::steps::{self, command_step, step};
use crate::tidy;

/// Runs all checks; the first failure ends the run.
pub(crate) fn run() -> Result<()> {
    step("format", "cargo", &["fmt", "--all", "--check"])?;
    tidy::run()?;
    step(
        "clippy",
        "cargo",
        &["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"],
    )?;
    steps::test()?;
    documentation()
}

fn documentation() -> Result<()> {
    let mut command = Command::new("cargo");
    command
        .args(["doc", "--workspace", "--no-deps", "--quiet"])
        .env("RUSTDOCFLAGS", "-D warnings")
        .current_dir(steps::root());
    command_step("documentation", command)
}
