//! `cargo xtask bench`: the benchmarks of the repository.
//!
//! A separate program, since `bench server` starts itself as the measured server.

mod engine;
mod instructions;
mod load;
mod server;
mod shards;
mod table;
mod testing;

use anyhow::Result;
use clap::{Parser, Subcommand};
use tools_support::steps::machine;
use tools_support::{cluster, environment, http, kubeconfig, steps};

/// The allocator of the `kopf` command, so that benchmarks measure what users run.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Parser)]
#[command(name = "cargo xtask bench", about = "Measure")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

/// The arguments of `cargo xtask bench`.
#[derive(Subcommand)]
enum Command {
    /// Speed, memory and writes of an operator, side by side with Kopf and kube-rs.
    Engine(engine::Arguments),
    /// Speed and memory of the same Python script under Kopf and under our Python package.
    Python(engine::package::Arguments),
    /// The job of `bench engine`, also by controller-runtime, JOSDK and a client in C.
    Peers(engine::peer_run::Arguments),
    /// Instructions and allocations per object, counted by valgrind, against committed numbers.
    Instructions(instructions::Arguments),
    /// Processor time and memory per object with up to a million objects, children, timers, daemons
    /// and index entries.
    Scale(engine::scale::Arguments),
    /// Throughput, latency and memory of the embedded API server, or of any other one.
    Server(server::Arguments),
    /// What replicas cost, and how long changes wait while they come and go.
    Shards(shards::Arguments),
    /// How long a `#[kopf::test]` takes.
    Testing(testing::Arguments),
    /// Be the server that is measured.
    #[command(hide = true)]
    Serve(server::ServeArguments),
    /// Be the server that only answers.
    #[command(hide = true)]
    Floor(server::ServeArguments),
    /// Measure one cold start and some forks in this process.
    #[command(hide = true)]
    World,
}

fn main() -> Result<()> {
    environment::leave_cargo()?;
    match &Arguments::parse().command {
        Command::Engine(arguments) => engine::run(arguments),
        Command::Python(arguments) => engine::package::run(arguments),
        Command::Peers(arguments) => engine::peer_run::run(arguments),
        Command::Instructions(arguments) => instructions::run(arguments),
        Command::Scale(arguments) => engine::scale::run(arguments),
        Command::Server(arguments) => server::run(arguments),
        Command::Shards(arguments) => shards::run(arguments),
        Command::Testing(arguments) => testing::run(arguments),
        Command::Serve(arguments) => server::serve(arguments),
        Command::Floor(arguments) => server::floor(arguments),
        Command::World => server::world(),
    }
}

/// Runs the same command with an optimised build of this program.
fn again_in_release() -> Result<()> {
    let mut command = std::process::Command::new("cargo");
    command
        .args(["run", "--quiet", "--release", "--package", "measure", "--"])
        .args(std::env::args_os().skip(1))
        .current_dir(crate::steps::root());
    crate::steps::command_step("optimised benchmark", command)
}
