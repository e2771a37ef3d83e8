//! The arguments of `kopf`.

use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;

use super::{cluster, dev, doctor, explain, forwarded, new, peering, sbom, shards, ui};

/// Write, run and debug Kubernetes operators, with an embedded cluster.
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
    /// Create an operator project that compiles, runs and passes its tests right away
    New(new::Arguments),
    /// Run the operator of this project with an embedded cluster; rebuild and restart it on every change
    Dev(dev::Arguments),
    /// Explain what an operator did to an object, and what it is waiting for
    Explain(explain::Arguments),
    /// Check tools, project, cluster, permissions and webhooks
    Doctor(doctor::Arguments),
    /// Open the web UI of a running operator
    Ui(ui::Arguments),
    /// Generate what to deploy: CRDs, minimal permissions, a Deployment; or a Helm chart, or an OLM bundle
    Manifests(forwarded::Arguments),
    /// Show what the operator of this project would do about desired children, without doing it
    Plan(forwarded::Arguments),
    /// Show what the operator of this project reacts to
    Describe(forwarded::Arguments),
    /// Run a Kubernetes API server on this machine: no etcd, no containers, no waiting
    Cluster(cluster::Arguments),
    /// Pause the operators of a peering while you make changes by hand
    Freeze(peering::FreezeArguments),
    /// End the pause of `kopf freeze`
    Resume(peering::ResumeArguments),
    /// Show which replica has which share of the objects
    Shards(shards::Arguments),
    /// Print a list of everything in the operator of this project (SBOM, CycloneDX)
    Sbom(sbom::Arguments),
    /// Write the manual pages of all commands into a folder, such as ~/.local/share/man/man1
    Manual {
        /// The folder
        folder: std::path::PathBuf,
    },
    /// Print the completion script of a shell
    Completions {
        /// The shell to complete for
        shell: Shell,
    },
}

/// Writes the manual pages of all commands into a folder.
pub(super) fn write_manual(folder: &std::path::Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    clap_mangen::generate_to(Arguments::command(), folder)
}

/// Prints the completion script of a shell to the standard output.
pub(super) fn print_completions(shell: Shell) {
    clap_complete::generate(shell, &mut Arguments::command(), "kopf", &mut std::io::stdout());
}

#[cfg(test)]
mod tests;
