//! The project's own commands: `cargo xtask <command>`.
//!
//! Owns the dispatch only; each command is a module of its own.

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "The project's own commands")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the whole continuous-integration suite.
    Ci,
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().command {
        Command::Ci => anyhow::bail!("not yet"),
    }
}
