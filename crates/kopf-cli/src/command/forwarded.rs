//! `kopf manifests`, `kopf plan`, `kopf describe`: builds the operator of the current project and
//! runs its command of the same name, which only the operator itself can execute.

use clap::Args;
use tokio::process::Command;

use super::project::{Project, ProjectArguments};
use crate::failure::Failure;

/// The arguments of these commands.
#[derive(Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    project: ProjectArguments,
    /// Options of the operator's own command; `-- --help` shows them
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "OPTION",
        help_heading = "Operator"
    )]
    options: Vec<String>,
}

/// Builds the operator and runs its command; returns its exit code.
pub(super) async fn run(name: &str, arguments: &Arguments) -> Result<u8, Failure> {
    let project = Project::locate(&arguments.project).await?;
    let executable = project.build_visibly().await?;
    let mut command = Command::new(executable);
    let status = command.arg(name).args(&arguments.options).status().await?;
    Ok(status
        .code()
        .and_then(|code| u8::try_from(code).ok())
        .unwrap_or(crate::failure::EXIT_FAILED))
}
