//! The `kopf` command: from its arguments to an exit code.

mod arguments;
mod cluster;
mod connection;
mod dev;
mod explain;
mod manifests;
mod new;
mod operator;
mod peering;
mod project;

use std::process::ExitCode;

use clap::Parser;

use crate::failure::{self, Failure};
use arguments::{Arguments, Command};

/// Runs the `kopf` command with the process's arguments.
pub fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::New(arguments) => new::run(&arguments),
        Command::Dev(arguments) => return finish(block_on(dev::run(&arguments))),
        Command::Explain(arguments) => block_on(explain::run(&arguments)),
        Command::Manifests(arguments) => return finish(block_on(manifests::run(&arguments))),
        Command::Cluster(arguments) => block_on(cluster::run(&arguments)),
        Command::Freeze(arguments) => block_on(peering::freeze(&arguments)),
        Command::Resume(arguments) => block_on(peering::resume(&arguments)),
        Command::Completions { shell } => {
            arguments::print_completions(shell);
            Ok(())
        }
    };
    failure::exit(outcome)
}

/// Exits with the code that a command tells itself.
fn finish(outcome: Result<u8, Failure>) -> ExitCode {
    match outcome {
        Ok(code) => ExitCode::from(code),
        Err(failure) => failure::exit(Err(failure)),
    }
}

/// Runs a command that waits for others; one thread is enough for it.
fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
}
