//! The `kopf` command, and what every operator's own program shares with it.
//!
//! Owns the terminal: arguments, screens, error texts with hints, exit codes.

pub mod arguments;
pub mod explain;
pub mod failure;
pub mod manifests;
mod new;

use std::process::ExitCode;

use clap::Parser;

use arguments::{Arguments, Command};

/// Runs the `kopf` command with the process's arguments.
pub fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::New(arguments) => new::run(&arguments),
        Command::Completions { shell } => {
            arguments::print_completions(shell);
            Ok(())
        }
    };
    failure::exit(outcome)
}
