//! The project's own commands: `cargo xtask <command>`.
//!
//! Owns the dispatch only; each command is a module of its own.

mod bench;
mod book;
mod chaos;
mod charts;
mod ci;
mod clients;
mod cluster;
mod demos;
mod differential;
mod habits;
mod http;
mod kube;
mod kubeconfig;
mod newcomer;
mod normalise;
mod pack;
mod package;
mod pairing;
mod pictures;
mod python;
mod readme;
mod record;
mod replay;
mod rights;
mod steps;
mod subject;
mod tidy;
mod ui;

use clap::{Parser, Subcommand};

/// The allocator of the `kopf` command, so that benchmarks measure what people run.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

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
    Ci,
    /// Do what the README tells a newcomer to do, to the letter.
    Readme,
    /// Do what a newcomer does with `kopf new`: create, test, run, handle an object.
    Newcomer,
    /// Run real clients (Kopf, kubectl, Python libraries) against our server, or any other.
    Clients(clients::Arguments),
    /// Build the native module of the Python package, and test the package.
    Python(python::Arguments),
    /// Check the book, and render it.
    Book(book::Arguments),
    /// Run the examples as their READMEs say, with a real kubectl.
    Demos(demos::Arguments),
    /// Run every example on a real server, with exactly the rights that are generated for it.
    Rights(rights::Arguments),
    /// Measure.
    #[command(subcommand)]
    Bench(bench::Command),
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
    /// Install, upgrade and uninstall Helm charts of examples on an embedded cluster.
    Charts,
    /// Check that every crate can be published.
    Package,
    /// Build the pages of the web UI, check them, or test them in a browser.
    Ui(ui::Arguments),
    /// Rebuild the schema packs of the embedded API server from the Kubernetes Go modules.
    Pack,
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().command {
        Command::Test => steps::test(),
        Command::Tidy => tidy::run(),
        Command::Ci => ci::run(),
        Command::Readme => readme::run(),
        Command::Newcomer => newcomer::run(),
        Command::Clients(arguments) => clients::run(&arguments),
        Command::Python(arguments) => python::run(&arguments),
        Command::Book(arguments) => book::run(&arguments),
        Command::Demos(arguments) => demos::run(&arguments),
        Command::Rights(arguments) => rights::run(&arguments),
        Command::Bench(command) => bench::run(&command),
        Command::Chaos(arguments) => chaos::run(&arguments),
        Command::Kube(arguments) => kube::run(&arguments),
        Command::Differential(arguments) => differential::run(&arguments),
        Command::Record(arguments) => record::run(&arguments),
        Command::Replay(arguments) => replay::run(&arguments),
        Command::Pictures => pictures::run(),
        Command::Charts => charts::run(),
        Command::Package => package::run(),
        Command::Ui(arguments) => ui::run(&arguments),
        Command::Pack => pack::run(),
    }
}
