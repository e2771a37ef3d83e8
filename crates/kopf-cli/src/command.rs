//! The `kopf` command.

mod arguments;
mod cluster;
mod connection;
mod dev;
mod doctor;
mod explain;
mod forwarded;
mod new;
mod output;
mod peering;
mod project;
mod sbom;
mod shards;
mod ui;

use std::process::ExitCode;

use clap::Parser;

use crate::failure::{self, Failure};
use arguments::{Arguments, Command};

/// Runs the `kopf` command with the process's arguments.
pub fn main() -> ExitCode {
    ExitCode::from(run(Arguments::parse()))
}

/// Runs the `kopf` command with the given arguments, the program name first; returns the exit code.
pub fn main_with(arguments: impl IntoIterator<Item = String>) -> u8 {
    match Arguments::try_parse_from(arguments) {
        Ok(arguments) => run(arguments),
        Err(error) => {
            // Ignored: without a terminal, there is no reader.
            let _ = error.print();
            u8::try_from(error.exit_code()).unwrap_or(failure::EXIT_USAGE)
        }
    }
}

fn run(arguments: Arguments) -> u8 {
    let outcome = match arguments.command {
        Command::New(arguments) => new::run(&arguments),
        Command::Dev(arguments) => return finish(block_on(dev::run(&arguments))),
        Command::Doctor(arguments) => return finish(block_on(doctor::run(&arguments))),
        Command::Explain(arguments) => block_on(explain::run(&arguments)),
        Command::Ui(arguments) => block_on(ui::run(&arguments)),
        Command::Manifests(arguments) => return forward("manifests", &arguments),
        Command::Plan(arguments) => return forward("plan", &arguments),
        Command::Describe(arguments) => return forward("describe", &arguments),
        Command::Cluster(arguments) => block_on(cluster::run(&arguments)),
        Command::Freeze(arguments) => block_on(peering::freeze(&arguments)),
        Command::Resume(arguments) => block_on(peering::resume(&arguments)),
        Command::Shards(arguments) => block_on(shards::run(&arguments)),
        Command::Sbom(arguments) => block_on(sbom::run(&arguments)),
        Command::Manual { folder } => arguments::write_manual(&folder).map_err(|error| {
            let error = anyhow::anyhow!(error)
                .context(format!("could not write into `{}`", folder.display()));
            Failure::usage(error).hint("give a writable folder")
        }),
        Command::Completions { shell } => {
            arguments::print_completions(shell);
            Ok(())
        }
    };
    failure::code(outcome)
}

/// Runs a command that only the operator of the project can execute.
fn forward(name: &str, arguments: &forwarded::Arguments) -> u8 {
    finish(block_on(forwarded::run(name, arguments)))
}

/// Exits with the code that a command returns.
fn finish(outcome: Result<u8, Failure>) -> u8 {
    match outcome {
        Ok(code) => code,
        Err(failure) => failure::code(Err(failure)),
    }
}

/// Runs an asynchronous command on a single thread.
fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
}
