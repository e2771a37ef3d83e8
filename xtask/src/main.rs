//! The project's own commands: `cargo xtask <command>`.
//!
//! Only dispatches; each command is a separate module.

mod archive;
mod book;
mod chaos;
mod charts;
mod ci;
mod conformance;
mod console_program;
mod demos;
mod habits;
mod kube;
mod newcomer;
mod pack;
mod package;
mod pictures;
mod python;
mod readme;
mod rights;
mod test_step;
mod tidy;
mod ui;
mod wheels;

use clap::{Parser, Subcommand};
use fidelity::{differential, record, replay};
use tools_support::{build, cluster, environment, http, kubeconfig, steps};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "The project's own commands")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run all tests that need nothing but Rust (the README's second command).
    Test,
    /// Check the rules that rustfmt and clippy cannot: sizes, headers, layers, manifests.
    Tidy,
    /// Run everything a submission must pass, in the order that fails fastest.
    Ci(ci::Arguments),
    /// Follow the README exactly, as a newcomer would.
    Readme,
    /// Do what a newcomer does with `kopf new`: create, test, run, handle an object.
    Newcomer(newcomer::Arguments),
    /// Run real clients (Kopf, kubectl, Python libraries) against our server, or any other.
    Conformance(conformance::Arguments),
    /// Build the native module of the Python package, and test the package.
    Python(python::Arguments),
    /// Build the wheels of the Python package, and check them.
    Wheels(wheels::Arguments),
    /// Pack the command `kopf` for `cargo binstall`.
    Archive(archive::Arguments),
    /// Check the book, and render it.
    Book(book::Arguments),
    /// Run the examples as their READMEs say, with a real kubectl.
    Demos(demos::Arguments),
    /// Run every example on a real server, with exactly the rights that are generated for it.
    Rights(rights::Arguments),
    /// Measure.
    #[command(disable_help_flag = true)]
    Bench {
        /// Which benchmark, and its options: `bench --help`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Try an operator with edits, kills, frozen servers and lost definitions.
    Chaos(chaos::Arguments),
    /// Run a real control plane on loopback, to compare ours with.
    Kube(kube::Arguments),
    /// Send the same requests to two API servers and report what differs.
    Differential(differential::Arguments),
    /// Record new goldens from a real API server.
    Record(record::Arguments),
    /// Replay recorded goldens on a fresh API server.
    Replay(replay::Arguments),
    /// Draw the modules of every crate into `docs/modules` (needs Graphviz).
    Pictures,
    /// Check generated charts, bundles, alert rules and dashboards with the tools they are meant for.
    Charts(charts::Arguments),
    /// Check that every crate can be published.
    Package,
    /// Build the pages of the web UI, check them, or test them in a browser.
    Ui(ui::Arguments),
    /// Rebuild the schema packs of the embedded API server from the Kubernetes Go modules.
    Pack,
}

fn main() -> anyhow::Result<()> {
    environment::leave_cargo()?;
    match Arguments::parse().command {
        Command::Test => test_step::run(),
        Command::Tidy => tidy::run(),
        Command::Ci(arguments) => ci::run(&arguments),
        Command::Readme => readme::run(),
        Command::Newcomer(arguments) => newcomer::run(&arguments),
        Command::Conformance(arguments) => conformance::run(&arguments),
        Command::Python(arguments) => python::run(&arguments),
        Command::Wheels(arguments) => wheels::run(&arguments),
        Command::Archive(arguments) => archive::run(&arguments),
        Command::Book(arguments) => book::run(&arguments),
        Command::Demos(arguments) => demos::run(&arguments),
        Command::Rights(arguments) => rights::run(&arguments),
        Command::Bench { arguments } => bench(&arguments),
        Command::Chaos(arguments) => chaos::run(&arguments),
        Command::Kube(arguments) => kube::run(&arguments),
        Command::Differential(arguments) => differential::run(&arguments, plane),
        Command::Record(arguments) => record::run(&arguments, plane),
        Command::Replay(arguments) => replay::run(&arguments),
        Command::Pictures => pictures::run(),
        Command::Charts(arguments) => charts::run(&arguments),
        Command::Package => package::run(),
        Command::Ui(arguments) => ui::run(&arguments),
        Command::Pack => pack::run(),
    }
}

/// Builds and runs the benchmarks.
fn bench(arguments: &[String]) -> anyhow::Result<()> {
    let mut command = std::process::Command::new("cargo");
    command.args(["run", "--quiet", "--package", "measure", "--"]).args(arguments);
    steps::command_step("benchmark", command)
}

/// The kubeconfig of the control plane that `cargo xtask kube up` started.
fn plane() -> anyhow::Result<std::path::PathBuf> {
    kube::kubeconfig_of("default")
}
