//! `kopf manifests`: builds the operator of the current project and lets it tell what to deploy.

use clap::Args;
use tokio::process::Command;

use super::project::{Project, ProjectArguments};
use crate::failure::Failure;

/// What can be typed after `kopf manifests`.
#[derive(Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    project: ProjectArguments,
    /// Options of the operator's own `manifests` command, such as `--image you/hello:1 -o deploy`
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "OPTION",
        help_heading = "Operator"
    )]
    options: Vec<String>,
}

/// Builds the operator and runs its command; tells its exit code.
pub(super) async fn run(arguments: &Arguments) -> Result<u8, Failure> {
    let project = Project::locate(&arguments.project).await?;
    let executable = project.build_visibly().await?;
    let mut command = Command::new(executable);
    let status = command.arg("manifests").args(&arguments.options).status().await?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}
