//! `cargo xtask bench testing`: how long a `#[kopf::test]` takes, as `cargo test` builds it.
//!
//! Builds `test-speed`, a test binary without a test harness, with the profile of projects created
//! by `kopf new`, and starts it several times: the first test of a process prepares the server that
//! all others are forked from.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::table::{Table, Target};
use crate::cluster::target;
use crate::steps::{command_step, root};

/// The arguments of `cargo xtask bench testing`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Measure with the release profile as well.
    #[arg(long)]
    release: bool,
    /// How many processes are started; the median counts.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
}

/// Builds, measures, and prints the table and a summary line.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let profiles: &[(&str, &str)] = match arguments.release {
        true => &[("dev", "debug"), ("release", "release")],
        false => &[("dev", "debug")],
    };
    for (profile, _) in profiles {
        build(profile)?;
    }
    let mut table = Table::default();
    for round in 1..=arguments.rounds {
        println!("round {round} of {}", arguments.rounds);
        for (_, folder) in profiles {
            measure(folder, &mut table)?;
        }
    }
    println!("\n{}", table.render());
    println!("{} ({})", table.summary(), super::machine());
    Ok(())
}

/// The manifest of new projects, with the profile that their tests are built with.
const TEMPLATE: &str = "crates/kopf-cli/src/command/new/templates/Cargo.toml.txt";

fn build(profile: &str) -> Result<()> {
    let template = std::fs::read_to_string(root().join(TEMPLATE))?;
    let start = template.find("[profile.dev]").context("the template has no profile")?;
    let config = target().join("bench-testing.toml");
    std::fs::write(&config, &template[start..])?;
    let mut command = Command::new("cargo");
    command
        .args(["build", "--quiet", "--package", "test-speed"])
        .args(["--profile", profile, "--config"])
        .arg(&config)
        .current_dir(root());
    command_step(&format!("build of the tests, {profile} profile"), command)
}

fn measure(folder: &str, table: &mut Table) -> Result<()> {
    let output = Command::new(target().join(folder).join("test-speed"))
        .stderr(Stdio::inherit())
        .output()
        .context("could not start the tests")?;
    ensure!(output.status.success(), "the tests failed ({})", output.status);
    let measured: Value = serde_json::from_slice(&output.stdout)?;
    let mut add = |key: &str, name: &str, target: Target| {
        let value = measured[key].as_f64().with_context(|| format!("no `{key}`"))?;
        table.add(&format!("{folder}: {name}"), value, "ms", target);
        anyhow::Ok(())
    };
    add("test_ms", "the test of `kopf new`, median of 200", Target::AtMost(10.0))?;
    add("world_ms", "a test that only looks at its world, median of 200", Target::Free)?;
    add("first_ms", "the first test of a process", Target::Free)
}
