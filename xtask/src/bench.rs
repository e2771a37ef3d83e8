//! `cargo xtask bench`: measurements that live in the repository and run by one command.

mod engine;
mod load;
mod server;
mod table;
mod testing;

use anyhow::Result;
use clap::Subcommand;

/// What can be typed after `cargo xtask bench`.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Speed, memory and writes of an operator, side by side with Kopf and kube-rs.
    Engine(engine::Arguments),
    /// Speed and memory of the same Python script under Kopf and under our Python package.
    Python(engine::package::Arguments),
    /// Throughput, latency and memory of the embedded API server, or of any other one.
    Server(server::Arguments),
    /// How long a `#[kopf::test]` takes.
    Testing(testing::Arguments),
    /// Be the server that is measured.
    #[command(hide = true)]
    Serve(server::ServeArguments),
    /// Measure one cold start and some forks in this process.
    #[command(hide = true)]
    World,
}

/// Runs one benchmark.
pub(crate) fn run(command: &Command) -> Result<()> {
    match command {
        Command::Engine(arguments) => engine::run(arguments),
        Command::Python(arguments) => engine::package::run(arguments),
        Command::Server(arguments) => server::run(arguments),
        Command::Testing(arguments) => testing::run(arguments),
        Command::Serve(arguments) => server::serve(arguments),
        Command::World => server::world(),
    }
}

/// Runs the same command with an optimised build of this program.
fn again_in_release() -> Result<()> {
    let mut command = std::process::Command::new("cargo");
    command
        .args(["run", "--quiet", "--release", "--package", "xtask", "--"])
        .args(std::env::args_os().skip(1))
        .current_dir(crate::steps::root());
    crate::steps::command_step("optimised benchmark", command)
}

/// Date, processor and number of cores: what a table of numbers must name.
pub(crate) fn machine() -> String {
    let information = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = information
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(':'))
        .map_or("unknown processor", |(_, model)| model.trim());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let date = jiff::Timestamp::now().strftime("%Y-%m-%d").to_string();
    format!("{date}, {cores} cores, {model}")
}
