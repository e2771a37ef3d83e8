//! Whom we measure: how to build, install and start each of the operators.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::machine::{Side, on_cores_of};
use super::process::Process;
use super::server::Server;
use crate::cluster::target;
use crate::steps::{command_step, root};

const KOPF: &str = "kopf==1.45.2";

/// One of the operators that do the same job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
pub(crate) enum Subject {
    /// This engine.
    Ours,
    /// A `Controller` of kube-rs.
    Controller,
    /// Kopf of PyPI.
    Kopf,
    /// The same on uvloop.
    Uvloop,
}

impl Subject {
    pub(crate) const ALL: [Self; 4] = [Self::Ours, Self::Controller, Self::Kopf, Self::Uvloop];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Controller => "kube-rs",
            Self::Kopf => "Kopf",
            Self::Uvloop => "Kopf+uvloop",
        }
    }

    pub(crate) fn is_kopf(self) -> bool {
        matches!(self, Self::Kopf | Self::Uvloop)
    }

    /// The text in a patch by which an object is known to be handled.
    pub(crate) fn mark(self) -> &'static str {
        match self {
            Self::Controller => "\"ok\":true",
            _ => "last-handled-configuration",
        }
    }

    /// The file whose size counts, where it is one file.
    pub(crate) fn binary(self) -> Option<PathBuf> {
        let name = match self {
            Self::Ours => "bench-operator",
            Self::Controller => "bench-controller",
            Self::Kopf | Self::Uvloop => return None,
        };
        Some(target().join("release").join(name))
    }

    /// Builds or installs what is needed.
    pub(crate) fn prepare(self) -> Result<()> {
        match self {
            Self::Ours | Self::Controller => Ok(()),
            Self::Kopf => install("bench-venv", &[KOPF]),
            Self::Uvloop => install("bench-venv-uvloop", &[KOPF, "uvloop"]),
        }
    }

    /// Starts the operator for one of the cases.
    pub(crate) fn start(self, case: &str, server: &Server) -> Result<Process> {
        let mut command = match self {
            Self::Ours => Command::new(target().join("release/bench-operator")),
            Self::Controller => Command::new(target().join("release/bench-controller")),
            Self::Kopf => Command::new(target().join("bench-venv/bin/kopf")),
            Self::Uvloop => Command::new(target().join("bench-venv-uvloop/bin/kopf")),
        };
        if self != Self::Controller {
            command.args(["run", "--quiet", "--standalone", "--all-namespaces"]);
        }
        if matches!(self, Self::Kopf | Self::Uvloop) {
            command.arg(root().join("benches/kopf_operator.py"));
        }
        command.env("KUBECONFIG", &server.kubeconfig).env("CASE", case);
        // Compiled files are kept beside the sources otherwise.
        command.env("PYTHONPYCACHEPREFIX", target().join("bench-pycache"));
        command.stdout(Stdio::null());
        let child = on_cores_of(Side::Operator, || command.spawn())?
            .with_context(|| format!("could not start {}", self.name()))?;
        Ok(Process(child))
    }
}

/// Builds the programs that are ours to build.
pub(crate) fn build() -> Result<()> {
    let mut build = Command::new("cargo");
    build.args(["build", "--quiet", "--release", "-p", "benches"]).current_dir(root());
    command_step("measured programs", build)
}

fn install(folder: &str, packages: &[&str]) -> Result<()> {
    let folder = target().join(folder);
    let python = folder.join("bin").join("python");
    if python.exists() && folder.join("bin").join("kopf").exists() {
        return Ok(());
    }
    let mut create = Command::new("python3");
    create.args(["-m", "venv"]).arg(&folder);
    command_step("virtual environment", create)?;
    let mut install = Command::new(&python);
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    install.args(packages);
    command_step("Kopf from PyPI", install)
}
