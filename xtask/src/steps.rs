//! Runs other programs as named steps: prints what runs, and names the step that failed.

use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map_or_else(|| PathBuf::from("."), PathBuf::from)
}

/// Where tools are kept that take long to build: `${XDG_CACHE_HOME:-~/.cache}/kopf`.
pub(crate) fn cache() -> Result<PathBuf> {
    let base = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let base = base.or_else(home).context("neither XDG_CACHE_HOME nor HOME is set")?;
    Ok(base.join("kopf"))
}

/// Runs a program in the repository's root and fails with the step's name if it fails.
pub(crate) fn step(name: &str, program: &str, arguments: &[&str]) -> Result<()> {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(root());
    command_step(name, command)
}

/// Runs a prepared command as a named step.
pub(crate) fn command_step(name: &str, mut command: Command) -> Result<()> {
    println!("── {name}");
    let started = Instant::now();
    let status = command
        .status()
        .with_context(|| format!("could not start `{}`", command.get_program().display()))?;
    ensure!(status.success(), "step `{name}` failed ({status})");
    println!("── {name}: done in {:.0?}", started.elapsed());
    Ok(())
}

/// The test that pins compile errors to the letter.
const COMPILE_ERRORS: &str = "mistakes_are_told_in_one_sentence";

/// All tests that need nothing but Rust.
///
/// The compiler lists other implementations in an order that depends on the features in use, so
/// compile errors are checked with the features that users get by default.
pub(crate) fn test() -> Result<()> {
    // Shows what is compiled: quiet tests would be silent for minutes.
    step("building the tests", "cargo", &["test", "--workspace", "--no-run"])?;
    step("tests", "cargo", &["test", "--workspace", "--quiet", "--", "--skip", COMPILE_ERRORS])?;
    step("compile errors", "cargo", &["test", "-p", "kopf", "--test", "it", COMPILE_ERRORS])
}
