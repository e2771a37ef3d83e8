//! `cargo xtask charts`: checks the output of `manifests` with the tools it is meant for.
//!
//! Helm charts of examples are linted, rendered, installed, tested, upgraded and uninstalled on an
//! embedded cluster with RBAC, and must leave nothing behind. promtool checks alert rules and
//! dashboards, the library of the Operator Framework checks bundles, and the schema of CycloneDX
//! checks SBOMs. Checks of missing tools are skipped with a message.

mod bundle;
mod chart;
mod parts;
mod rules;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::cluster::{Cluster, target};
use crate::demos;
use crate::steps::{cache, command_step};

/// The examples: one with children, one with webhooks.
const EXAMPLES: [&str; 2] = ["registry-mirror", "16-admission"];

/// The arguments of `cargo xtask charts`.
#[derive(clap::Args, Default)]
pub(crate) struct Arguments {
    /// Build only the examples that are needed. Without it, the same selection as for
    /// demonstrations is built, so that CI compiles nothing for this.
    #[arg(long)]
    few: bool,
    /// Fail if a tool is missing, instead of skipping its checks.
    #[arg(long)]
    strict: bool,
}

/// Runs all checks, and reports missing tools.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let names = match arguments.few {
        true => EXAMPLES.map(str::to_owned).to_vec(),
        false => demos::all()?,
    };
    demos::build(&names)?;
    let mut missing = Vec::new();
    for (tool, check) in [
        ("helm", charts as fn() -> Result<Option<()>>),
        ("promtool", rules::check),
        ("go", bundle::check),
        ("python3", parts::check),
    ] {
        if check()?.is_none() {
            println!("── charts: SKIPPED what needs `{tool}`, which is not on this machine");
            missing.push(tool);
        }
    }
    ensure!(!arguments.strict || missing.is_empty(), "these tools are missing: {missing:?}");
    Ok(())
}

/// Returns `None` if helm or kubectl is missing.
fn charts() -> Result<Option<()>> {
    let (Some(helm), Some(_)) = (tool("helm"), tool("kubectl")) else { return Ok(None) };
    let cluster = Cluster::start_with("dev", &["--rbac"])?;
    for (example, more) in [
        (EXAMPLES[0], &[][..]),
        (EXAMPLES[1], &[][..]),
        (EXAMPLES[0], &["--replicas=2", "--secure-metrics"][..]),
        (EXAMPLES[0], &["--replicas=2", "--shards"][..]),
    ] {
        let folder = generate(example, "helm", more)?;
        let name = format!("{example} {}", more.join(" "));
        chart::Chart { helm: &helm, kubeconfig: &cluster.kubeconfig, folder: &folder }
            .check(name.trim())?;
    }
    Ok(Some(()))
}

/// A program in the path or in the cache folder.
fn tool(name: &str) -> Option<PathBuf> {
    let cached = cache().ok()?.join(name).join("bin").join(name);
    let is_there = |path: &Path| Command::new(path).arg("--help").output().is_ok();
    [PathBuf::from(name), cached].into_iter().find(|path| is_there(path))
}

/// Generates a format of an example in an empty folder.
fn generate(example: &str, format: &str, more: &[&str]) -> Result<PathBuf> {
    let folder = target().join("charts").join(format).join(example);
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    let mut manifests = Command::new(target().join(format!("debug/example-{example}")));
    manifests.args(["manifests", "--image", "you/demo:1", "--format", format, "--output"]);
    manifests.arg(&folder).args(more);
    command_step(&format!("charts: {format} of {example}"), manifests)?;
    Ok(folder)
}

/// The output of a command; an error contains everything that it printed.
fn output(mut command: Command) -> Result<String> {
    let output = command.output().with_context(|| format!("{command:?} cannot be started"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?} failed: {text}{errors}");
    Ok(text)
}
