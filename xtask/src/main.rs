//! The project's own commands: `cargo xtask <command>`.
//!
//! Owns the dispatch only; each command is a module of its own.

mod http;
mod kube;
mod kubeconfig;

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
    /// Run a real control plane on loopback, to compare ours with.
    Kube(kube::Arguments),
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().command {
        Command::Ci => anyhow::bail!("not yet"),
        Command::Kube(arguments) => kube::run(&arguments),
    }
}
