//! `cargo xtask conformance`: real, unmodified clients with our server or any other one.
//!
//! Installs them from PyPI into a virtual environment under the target directory, starts `kopf cluster`
//! unless a kubeconfig is given, and runs the scenarios of `conformance/`.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, bail};

use crate::build;
use crate::cluster::{Cluster, target};
use crate::steps::{command_step, root};

/// The arguments of `cargo xtask conformance`.
#[derive(clap::Args, Default)]
pub(crate) struct Arguments {
    /// Use this running server instead of a new `kopf cluster`.
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    /// Only the tests whose names contain this.
    filter: Option<String>,
}

/// Runs the scenarios.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let python = environment()?;
    let cluster = match &arguments.kubeconfig {
        Some(_) => None,
        None => Some(Cluster::start("dev")?),
    };
    let kubeconfig = match (&arguments.kubeconfig, &cluster) {
        (Some(path), _) => path.clone(),
        (None, Some(cluster)) => cluster.kubeconfig.clone(),
        (None, None) => bail!("there is no server to test"),
    };
    let mut tests = Command::new(python);
    tests.args(["-m", "pytest", "-q", "--durations=3"]).current_dir(root().join("conformance"));
    if let Some(filter) = &arguments.filter {
        tests.args(["-k", filter]);
    }
    tests.env("KUBECONFIG", kubeconfig).env("PYTHONDONTWRITEBYTECODE", "1");
    tests.env("KOPF", target().join("debug").join("kopf"));
    tests.env("CROSS_CHECK", cross_check()?);
    command_step("real clients", tests)
}

/// Our side of the cross-check with Kopf.
fn cross_check() -> Result<PathBuf> {
    build::packages("cross-check operator", ["cross-check"])?;
    Ok(target().join("debug").join("cross-check"))
}

/// The Python of the virtual environment, which is created if necessary.
fn environment() -> Result<PathBuf> {
    let folder = target().join("conformance-venv");
    let python = folder.join("bin").join("python");
    if !python.exists() {
        let mut create = Command::new("python3");
        create.args(["-m", "venv"]).arg(&folder);
        command_step("virtual environment", create)?;
    }
    let mut install = Command::new(&python);
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"]);
    install.arg(root().join("conformance").join("requirements.txt"));
    command_step("clients from PyPI", install)?;
    Ok(python)
}
