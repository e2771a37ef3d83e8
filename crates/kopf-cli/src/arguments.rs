//! What can be typed after `kopf`.

use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;

use crate::{cluster, explain, new};

/// Kubernetes operators in a few lines, with a cluster in your pocket.
#[derive(Parser)]
#[command(name = "kopf", version, max_term_width = 100, disable_help_subcommand = true)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Subcommand)]
pub enum Command {
    /// Run a Kubernetes API server on this machine: no etcd, no containers, no waiting
    Cluster(cluster::Arguments),
    /// Create an operator project that compiles, runs and tests at once
    New(new::Arguments),
    /// Tell what an operator did to one object, and what it waits for
    Explain(explain::Arguments),
    /// Print the completion script of a shell
    Completions {
        /// The shell to complete for
        shell: Shell,
    },
}

/// Prints the completion script of a shell to the standard output.
pub fn print_completions(shell: Shell) {
    clap_complete::generate(shell, &mut Arguments::command(), "kopf", &mut std::io::stdout());
}
