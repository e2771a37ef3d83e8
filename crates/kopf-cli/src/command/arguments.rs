//! What can be typed after `kopf`.

use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;

use super::{cluster, dev, doctor, explain, forwarded, new, peering, sbom, ui};

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
    /// Look at everything that has to work: tools, project, cluster, rights, webhooks
    Doctor(doctor::Arguments),
    /// Open the web UI of a running operator
    Ui(ui::Arguments),
    /// Print what to deploy: definitions, least privileges, the operator of this project
    Manifests(forwarded::Arguments),
    /// Tell what the operator of this project would do about desired children, without doing it
    Plan(forwarded::Arguments),
    /// Tell what the operator of this project reacts to
    Describe(forwarded::Arguments),
    /// Run a Kubernetes API server on this machine: no etcd, no containers, no waiting
    Cluster(cluster::Arguments),
    /// Pause the operators of a peering, to do something by hand
    Freeze(peering::FreezeArguments),
    /// End a pause of `kopf freeze`
    Resume(peering::ResumeArguments),
    /// Print everything that is compiled into the operator of this project, as CycloneDX
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
