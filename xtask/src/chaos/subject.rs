//! The tested operators, ours and Kopf's: how each is built or installed, and started.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use super::world::NAMESPACE;
use crate::build;
use crate::cluster::target;
use crate::steps::{command_step, root};

const KOPF: &str = "kopf==1.45.2";
const KOPF_FOLDER: &str = "chaos-venv";
/// Our programs: the operator and the server.
const OPERATOR: &str = "chaos-operator";
pub(super) const SERVER: &str = "kopf";

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Subject {
    /// This engine.
    Ours,
    /// Kopf from PyPI.
    Kopf,
}

impl Subject {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Kopf => "Kopf 1.45.2",
        }
    }

    /// The name of its folder and its control plane.
    pub(super) fn slug(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Kopf => "kopf",
        }
    }

    pub(super) fn declares_children(self) -> bool {
        self == Self::Ours
    }

    /// Installs what is not part of this repository.
    pub(super) fn install(self) -> Result<()> {
        match self {
            Self::Ours => Ok(()),
            Self::Kopf => install(),
        }
    }

    /// The command of the operator, without its output.
    pub(super) fn command(self, folder: &Path) -> Command {
        let mut command = match self {
            Self::Ours => Command::new(folder.join(OPERATOR)),
            Self::Kopf => Command::new(venv().join("bin").join("kopf")),
        };
        command.args(["run", "--standalone", "--namespace", NAMESPACE]);
        if self == Self::Kopf {
            command.arg(root().join("benches").join("chaos_operator.py"));
        }
        command.env("KUBECONFIG", folder.join("operator.kubeconfig"));
        command.env("CALLS", folder.join("calls.jsonl"));
        // Otherwise, compiled files are kept next to the sources.
        command.env("PYTHONPYCACHEPREFIX", target().join("chaos-pycache"));
        command.stdin(Stdio::null());
        command
    }
}

/// Builds our programs.
pub(super) fn build() -> Result<()> {
    build::packages("chaos operator and server", ["benches", "kopf-cli"])
}

/// Copies our programs to the folder of a run, so that a later build does not change them.
pub(super) fn copy(folder: &Path) -> Result<()> {
    for program in [OPERATOR, SERVER] {
        let from = target().join("debug").join(program);
        let complaint = || format!("could not copy `{}`", from.display());
        std::fs::copy(&from, folder.join(program)).with_context(complaint)?;
    }
    Ok(())
}

fn venv() -> PathBuf {
    target().join(KOPF_FOLDER)
}

fn install() -> Result<()> {
    if venv().join("bin").join("kopf").exists() {
        return Ok(());
    }
    let mut create = Command::new("python3");
    create.args(["-m", "venv"]).arg(venv());
    command_step("virtual environment", create)?;
    let mut install = Command::new(venv().join("bin").join("python"));
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", KOPF]);
    command_step("Kopf from PyPI", install)
}
