//! The measured operators: how to build, install and start each of them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use anyhow::{Context, Result};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::machine::{Side, on_cores_of};
use super::peers;
use super::process::Process;
use super::server::Server;
use crate::cluster::target;
use crate::steps::{command_step, root};

const KOPF: &str = "kopf==1.45.2";

/// The dependencies of our package, as in `pyproject.toml`.
const NEEDED: [&str; 5] = ["aiohttp", "click", "iso8601", "jsonpatch", "pyyaml"];

/// One of the operators for the same task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
pub(crate) enum Subject {
    /// This engine.
    Ours,
    /// A `Controller` of kube-rs.
    Controller,
    /// Kopf from PyPI.
    Kopf,
    /// Kopf on uvloop.
    Uvloop,
    /// Our Python package.
    Python,
    /// Go's controller-runtime with one worker, which is its default.
    Go,
    /// Go's controller-runtime with 16 workers.
    GoWorkers,
    /// Java's operator SDK.
    Josdk,
    /// A minimal client in C: no parser, no state.
    Floor,
    /// This engine in another build, see [`compare_with`].
    Before,
}

/// The operator of another build.
static BEFORE: OnceLock<PathBuf> = OnceLock::new();

/// Sets the program of [`Subject::Before`].
pub(crate) fn compare_with(program: &Path) -> Result<()> {
    let program = std::fs::canonicalize(program)
        .with_context(|| format!("no program to compare with: {}", program.display()))?;
    let _only_once = BEFORE.set(program);
    Ok(())
}

impl Subject {
    /// The subjects compared with this engine.
    pub(crate) const ENGINES: [Self; 4] = [Self::Ours, Self::Controller, Self::Kopf, Self::Uvloop];
    /// The subjects that run the same script.
    pub(crate) const PACKAGES: [Self; 2] = [Self::Python, Self::Uvloop];

    /// Two builds of this engine.
    pub(crate) const BUILDS: [Self; 2] = [Self::Ours, Self::Before];

    /// The other subjects for the same task.
    pub(crate) const PEERS: [Self; 6] =
        [Self::Ours, Self::Controller, Self::Go, Self::GoWorkers, Self::Josdk, Self::Floor];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Controller => "kube-rs",
            Self::Kopf => "Kopf",
            Self::Uvloop => "Kopf+uvloop",
            Self::Python => "ours in Python",
            Self::Go => "controller-runtime, 1 worker",
            Self::GoWorkers => "controller-runtime, 16 workers",
            Self::Josdk => "JOSDK",
            Self::Floor => "floor (C)",
            Self::Before => "before",
        }
    }

    pub(crate) fn is_kopf(self) -> bool {
        matches!(self, Self::Kopf | Self::Uvloop)
    }

    /// The text in a patch that marks an object as handled.
    pub(crate) fn mark(self) -> &'static str {
        match self {
            Self::Controller | Self::Go | Self::GoWorkers | Self::Josdk => "\"ok\":true",
            _ => "last-handled-configuration",
        }
    }

    /// The file whose size is measured, if it is a single file.
    pub(crate) fn binary(self) -> Option<PathBuf> {
        let file = match self {
            Self::Ours => "release/bench-operator",
            Self::Controller => "release/bench-controller",
            Self::Go | Self::GoWorkers => return Some(peers::go()),
            Self::Floor => return Some(peers::floor()),
            Self::Before => return BEFORE.get().cloned(),
            Self::Kopf | Self::Uvloop | Self::Python | Self::Josdk => return None,
        };
        Some(target().join(file))
    }

    /// Builds or installs the subject.
    pub(crate) fn prepare(self) -> Result<()> {
        match self {
            Self::Ours | Self::Controller | Self::Before => Ok(()),
            Self::Go | Self::GoWorkers | Self::Josdk | Self::Floor => peers::build(self),
            Self::Kopf => install("bench-venv", &[KOPF]),
            Self::Uvloop => install("bench-venv-uvloop", &[KOPF, "uvloop"]),
            Self::Python => install("bench-venv-python", &NEEDED),
        }
    }

    /// Starts the operator for one of the cases.
    pub(crate) fn start(self, case: &str, server: &Server) -> Result<Process> {
        let mut command = match self {
            Self::Ours => Command::new(target().join("release/bench-operator")),
            Self::Before => Command::new(BEFORE.get().context("no program to compare with")?),
            Self::Controller => Command::new(target().join("release/bench-controller")),
            Self::Kopf => Command::new(target().join("bench-venv/bin/kopf")),
            Self::Uvloop => Command::new(target().join("bench-venv-uvloop/bin/kopf")),
            Self::Go | Self::GoWorkers | Self::Josdk | Self::Floor => peers::command(self, server),
            Self::Python => {
                let mut command = Command::new(target().join("bench-venv-python/bin/python"));
                command.args(["-m", "kopf"]).env("PYTHONPATH", package());
                command
            }
        };
        if matches!(self, Self::Ours | Self::Before | Self::Kopf | Self::Uvloop | Self::Python) {
            command.args(["run", "--quiet", "--standalone", "--all-namespaces"]);
        }
        if matches!(self, Self::Kopf | Self::Uvloop | Self::Python) {
            command.arg(root().join("benches/kopf_operator.py"));
        }
        command.env("KUBECONFIG", &server.kubeconfig).env("CASE", case);
        // Otherwise, compiled files are kept next to the sources, or not at all.
        command.env_remove("PYTHONDONTWRITEBYTECODE");
        command.env("PYTHONPYCACHEPREFIX", target().join("bench-pycache"));
        command.stdout(Stdio::null());
        let child = on_cores_of(Side::Operator, || command.spawn())?
            .with_context(|| format!("could not start {}", self.name()))?;
        Ok(Process(child))
    }
}

/// Builds our own programs.
pub(crate) fn build() -> Result<()> {
    // One after the other: the features of one of them would change the other.
    for package in ["benches", "bench-operator"] {
        let mut build = Command::new("cargo");
        build.args(["build", "--quiet", "--release", "-p", package]).current_dir(root());
        command_step("measured programs", build)?;
    }
    Ok(())
}

/// Builds the server, and copies our package with its native module to a folder for measurements
/// only.
pub(crate) fn build_package() -> Result<()> {
    let built: [&[&str]; 2] = [&["-p", "benches", "--bin", "bench-server"], &["-p", "kopf-python"]];
    for what in built {
        let mut build = Command::new("cargo");
        build.args(["build", "--quiet", "--release"]).args(what).current_dir(root());
        command_step("measured programs", build)?;
    }
    let (package, sources) = (package(), root().join("python").join("kopf"));
    if package.exists() {
        std::fs::remove_dir_all(&package).context("could not remove the former package")?;
    }
    copy_sources(&sources, &package.join("kopf"))?;
    let library = format!("libkopf_native{}", std::env::consts::DLL_SUFFIX);
    std::fs::copy(
        target().join("release").join(library),
        package.join("kopf").join("_native.abi3.so"),
    )
    .context("could not copy the native module")?;
    Ok(())
}

/// The folder of the measured package.
fn package() -> PathBuf {
    target().join("bench-python")
}

fn copy_sources(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to).with_context(|| format!("could not make {}", to.display()))?;
    for entry in std::fs::read_dir(from)? {
        let (path, target) = (entry.as_ref().map(std::fs::DirEntry::path), to.to_owned());
        let path = path.map_err(|error| anyhow::anyhow!("{}: {error}", from.display()))?;
        let target = target.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            copy_sources(&path, &target)?;
        } else if path.extension().is_some_and(|it| it == "py") {
            std::fs::copy(&path, &target)?;
        }
    }
    Ok(())
}

/// A virtual environment with these packages.
fn install(folder: &str, packages: &[&str]) -> Result<()> {
    let folder = target().join(folder);
    let stamp = folder.join("installed");
    if std::fs::read_to_string(&stamp).is_ok_and(|text| text == packages.join("\n")) {
        return Ok(());
    }
    let mut create = Command::new("python3");
    create.args(["-m", "venv"]).arg(&folder);
    command_step("virtual environment", create)?;
    let mut install = Command::new(folder.join("bin").join("python"));
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    install.args(packages);
    command_step("packages from PyPI", install)?;
    Ok(std::fs::write(stamp, packages.join("\n"))?)
}
