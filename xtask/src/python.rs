//! `cargo xtask python`: builds the native module and tests the Python package.
//!
//! The tests of the package run on embedded clusters. Then the same operators run under Kopf from
//! PyPI and under the package, and their behaviour is compared. Virtual environments are in the
//! target directory; the module is copied into the package, where git ignores it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::build;
use crate::cluster::target;
use crate::steps::{command_step, root};

/// The version of Kopf that the package is compared with, and the clients that scenarios use.
const KOPF: [&str; 6] = ["kopf==1.45.2", "jinja2", "kr8s", "kubernetes", "pydantic", "pykube-ng"];

/// The dependencies of the package and its tests.
const NEEDED: [&str; 20] = [
    "aiohttp",
    "click",
    "cryptography",
    "httpx",
    "iso8601",
    "jinja2",
    "jsonpatch",
    "kr8s",
    "kubernetes",
    "kubernetes_asyncio",
    "lightkube",
    "msgspec",
    "mypy",
    "pydantic",
    "pykube-ng",
    "pyright[nodejs]",
    "pytest",
    "pytest-asyncio",
    "pyyaml",
    "types-PyYAML",
];

/// The arguments of `cargo xtask python`.
#[derive(clap::Args, Default)]
pub(crate) struct Arguments {
    /// Only the tests whose names contain this, and no comparison with Kopf.
    filter: Option<String>,
    /// Instead of the tests: many objects with random changes and cancellations; see `--minutes`.
    #[arg(long)]
    stress: bool,
    /// How long the stress lasts.
    #[arg(long, default_value_t = 10)]
    minutes: u32,
    /// How many objects there are under stress.
    #[arg(long, default_value_t = 10_000)]
    objects: u32,
}

/// Builds the module and runs all tests.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    build()?;
    let python = environment("python-venv", &NEEDED)?;
    if arguments.stress {
        return stress(&python, arguments);
    }
    let mut tests = command(&python);
    tests.args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "python/tests"]);
    if let Some(filter) = &arguments.filter {
        tests.args(["-k", filter]);
    }
    command_step("the Python package", tests)?;
    if arguments.filter.is_some() {
        return Ok(());
    }
    check_types(&python)?;
    let kopf = environment("kopf-venv", &KOPF)?;
    let mut comparison = command(&python);
    comparison.args(["-m", "crossengine", "--kopf"]).arg(&kopf);
    command_step("the same operators under Kopf and under ours", comparison)
}

/// Runs the stress test, and writes its report.
fn stress(python: &Path, arguments: &Arguments) -> Result<()> {
    let mut stress = command(python);
    stress.arg("python/compat/stress.py");
    stress.args(["--minutes", &arguments.minutes.to_string()]);
    stress.args(["--objects", &arguments.objects.to_string()]);
    stress.args(["--report", "docs/fidelity/python-stress.md"]);
    command_step("many objects, changes and cancellations", stress)
}

/// Checks the types of the package with both type checkers.
fn check_types(python: &Path) -> Result<()> {
    let folder = root().join("python");
    let mut mypy = command(python);
    mypy.args(["-m", "mypy", "--no-incremental"]).current_dir(&folder);
    command_step("types (mypy)", mypy)?;
    let mut pyright = command(python);
    pyright.args(["-m", "pyright", "--warnings", "--pythonpath"]).arg(python).current_dir(&folder);
    command_step("types (pyright)", pyright)
}

/// Copies the module into the package.
fn build() -> Result<()> {
    build::packages("the native module", ["kopf-python"])?;
    let library = format!("libkopf_native{}", std::env::consts::DLL_SUFFIX);
    let module = root().join("python").join("kopf").join("_native.abi3.so");
    // Renamed into place, since the previous one may be in use.
    let staging = module.with_extension("new");
    std::fs::copy(target().join("debug").join(library), &staging)
        .and_then(|_| std::fs::rename(&staging, &module))
        .context("could not put the native module into python/kopf")
}

/// A Python that finds the package and its tests.
fn command(python: &Path) -> Command {
    let package = root().join("python");
    let path = std::env::join_paths([package.clone(), package.join("compat")]);
    let mut command = Command::new(python);
    command.current_dir(root()).env("PYTHONDONTWRITEBYTECODE", "1");
    command.env("PYTHONPATH", path.unwrap_or_default());
    command
}

/// The Python of a virtual environment, which is created if necessary.
pub(crate) fn environment(name: &str, packages: &[&str]) -> Result<PathBuf> {
    let folder = target().join(name);
    let python = folder.join("bin").join("python");
    if !python.exists() {
        let mut create = Command::new("python3");
        create.args(["-m", "venv"]).arg(&folder);
        command_step("virtual environment", create)?;
    }
    let mut install = Command::new(&python);
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    install.args(packages);
    command_step("packages from PyPI", install)?;
    Ok(python)
}
