//! `cargo xtask bench`: measurements that live in the repository and run by one command.

mod load;
mod server;
mod table;

use anyhow::Result;
use clap::Subcommand;

/// What can be typed after `cargo xtask bench`.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Throughput, latency and memory of the embedded API server, or of any other one.
    Server(server::Arguments),
}

/// Runs one benchmark.
pub(crate) fn run(command: &Command) -> Result<()> {
    match command {
        Command::Server(arguments) => server::run(arguments),
    }
}
