//! `cargo xtask clients`: real, unmodified clients against our server, or against any other one.
//!
//! Installs them from PyPI into a virtual environment under the target directory, starts `kopf cluster`
//! unless a kubeconfig is given, and runs the scenarios of `clients/`.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::steps::{command_step, root};

/// How long the server may take to write its kubeconfig.
const START_TIMEOUT: Duration = Duration::from_secs(20);

/// What can be typed after `cargo xtask clients`.
#[derive(clap::Args)]
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
        None => Some(Cluster::start()?),
    };
    let kubeconfig = match (&arguments.kubeconfig, &cluster) {
        (Some(path), _) => path.clone(),
        (None, Some(cluster)) => cluster.kubeconfig.clone(),
        (None, None) => bail!("there is no server to test"),
    };
    let mut tests = Command::new(python);
    tests.args(["-m", "pytest", "-q", "--durations=3"]).current_dir(root().join("clients"));
    if let Some(filter) = &arguments.filter {
        tests.args(["-k", filter]);
    }
    tests.env("KUBECONFIG", kubeconfig).env("PYTHONDONTWRITEBYTECODE", "1");
    command_step("real clients", tests)
}

/// The Python of the virtual environment, made and filled if need be.
fn environment() -> Result<PathBuf> {
    let folder = target().join("clients-venv");
    let python = folder.join("bin").join("python");
    if !python.exists() {
        let mut create = Command::new("python3");
        create.args(["-m", "venv"]).arg(&folder);
        command_step("virtual environment", create)?;
    }
    let mut install = Command::new(&python);
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"]);
    install.arg(root().join("clients").join("requirements.txt"));
    command_step("clients from PyPI", install)?;
    Ok(python)
}

fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// A `kopf cluster` that is stopped when dropped.
struct Cluster {
    process: Child,
    kubeconfig: PathBuf,
}

impl Cluster {
    fn start() -> Result<Self> {
        let mut build = Command::new("cargo");
        build.args(["build", "--quiet", "-p", "kopf-cli"]).current_dir(root());
        command_step("kopf command", build)?;
        let kubeconfig = target().join("clients.kubeconfig");
        remove(&kubeconfig)?;
        let process = Command::new(target().join("debug").join("kopf"))
            .args(["cluster", "--port", "0", "--kubeconfig"])
            .arg(&kubeconfig)
            .stdout(Stdio::null())
            .spawn()
            .context("could not start `kopf cluster`")?;
        let mut cluster = Self { process, kubeconfig };
        cluster.wait()?;
        Ok(cluster)
    }

    fn wait(&mut self) -> Result<()> {
        let started = Instant::now();
        while !self.kubeconfig.exists() {
            if let Some(status) = self.process.try_wait()? {
                bail!("`kopf cluster` ended early ({status})");
            }
            ensure!(
                started.elapsed() < START_TIMEOUT,
                "`kopf cluster` wrote no kubeconfig in time"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // Nothing can be done about a process that is gone already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn remove(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("could not remove `{}`", path.display()))
        }
        _ => Ok(()),
    }
}
