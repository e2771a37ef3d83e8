//! Runs other programs as named steps: prints each step, and names the one that failed.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .map_or_else(|| PathBuf::from("."), PathBuf::from)
}

/// The cache folder for tools that take long to build: `${XDG_CACHE_HOME:-~/.cache}/kopf`.
pub fn cache() -> Result<PathBuf> {
    let base = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let base = base.or_else(home).context("neither XDG_CACHE_HOME nor HOME is set")?;
    Ok(base.join("kopf"))
}

/// Runs a program in the repository's root; an error contains the step's name.
pub fn step(name: &str, program: &str, arguments: &[&str]) -> Result<()> {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(root());
    command_step(name, command)
}

/// A command that runs cargo as from a shell, without the variables that describe our own package.
#[must_use]
pub fn cargo() -> Command {
    let mut command = Command::new("cargo");
    forget_package(&mut command);
    command
}

/// Removes the variables with which cargo describes our own package.
///
/// Build scripts that depend on them (such as that of `ring`) would run again whenever somebody
/// switches between `cargo xtask` and plain cargo, and everything above them would be compiled again.
fn forget_package(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(name);
        }
    }
}

/// Runs a prepared command as a named step.
pub fn command_step(name: &str, mut command: Command) -> Result<()> {
    forget_package(&mut command);
    println!("── {name}");
    let started = Instant::now();
    let status = command
        .status()
        .with_context(|| format!("could not start `{}`", command.get_program().display()))?;
    ensure!(status.success(), "step `{name}` failed ({status})");
    println!("── {name}: done in {:.0?}", started.elapsed());
    Ok(())
}

/// Date, processor and number of cores, to be stated with measurements.
#[must_use]
pub fn machine() -> String {
    let information = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = information
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(':'))
        .map_or("unknown processor", |(_, model)| model.trim());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let date = jiff::Timestamp::now().strftime("%Y-%m-%d").to_string();
    format!("{date}, {cores} cores, {model}")
}
