//! The `kopf` command, and what every operator's own program shares with it.
//!
//! Owns the terminal: arguments, screens, error texts with hints, exit codes.

pub mod arguments;
mod cluster;
pub mod explain;
pub mod failure;
pub mod load;
pub mod manifests;
mod new;

use std::process::ExitCode;

use clap::Parser;

use arguments::{Arguments, Command};
use failure::Failure;

/// Runs the `kopf` command with the process's arguments.
pub fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Cluster(arguments) => block_on(cluster::run(&arguments)),
        Command::New(arguments) => new::run(&arguments),
        Command::Explain(arguments) => block_on(explain::run(&arguments)),
        Command::Completions { shell } => {
            arguments::print_completions(shell);
            Ok(())
        }
    };
    failure::exit(outcome)
}

/// Runs a command that talks to a cluster; one thread is enough for it.
fn block_on(work: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
}
