//! What can be typed after `kopf`.

use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;

use super::{cluster, dev, explain, manifests, new, peering};

/// Kubernetes operators in a few lines, with a cluster in your pocket.
#[derive(Parser)]
#[command(
    name = "kopf",
    version,
    max_term_width = 100,
    disable_help_subcommand = true,
    after_help = "The first five minutes:  kopf new hello && cd hello && kopf dev"
)]
pub(super) struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub(super) command: Command,
}

/// The commands.
#[derive(Subcommand)]
pub(super) enum Command {
    /// Create an operator project that compiles, runs and tests at once
    New(new::Arguments),
    /// Run the operator of this project, and again after every change, on a cluster in this process
    Dev(dev::Arguments),
    /// Tell what an operator did to one object, and what it waits for
    Explain(explain::Arguments),
    /// Print what to deploy: definitions, least privileges, the operator of this project
    Manifests(manifests::Arguments),
    /// Run a Kubernetes API server on this machine: no etcd, no containers, no waiting
    Cluster(cluster::Arguments),
    /// Pause the operators of a peering, to do something by hand
    Freeze(peering::FreezeArguments),
    /// End a pause of `kopf freeze`
    Resume(peering::ResumeArguments),
    /// Print the completion script of a shell
    Completions {
        /// The shell to complete for
        shell: Shell,
    },
}

/// Prints the completion script of a shell to the standard output.
pub(super) fn print_completions(shell: Shell) {
    clap_complete::generate(shell, &mut Arguments::command(), "kopf", &mut std::io::stdout());
}

#[cfg(test)]
mod tests;
