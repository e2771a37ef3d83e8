//! A `kopf cluster` process for commands that need our server.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::build;
use crate::steps::{command_step, root};

/// How long the server may take to write its kubeconfig.
const START_TIMEOUT: Duration = Duration::from_secs(20);

/// The target directory of cargo.
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// A `kopf cluster` that is stopped when dropped.
pub struct Cluster {
    /// The running `kopf cluster`.
    pub process: Child,
    /// The kubeconfig of the server.
    pub kubeconfig: PathBuf,
}

impl Cluster {
    /// Builds the command with a profile (`dev` or `release`) and starts it on a free port.
    pub fn start(profile: &str) -> Result<Self> {
        Self::start_with(profile, &[])
    }

    /// The same with more arguments.
    pub fn start_with(profile: &str, arguments: &[&str]) -> Result<Self> {
        let folder = build(profile)?;
        let kubeconfig = target().join(format!("cluster-{}.kubeconfig", std::process::id()));
        remove(&kubeconfig)?;
        let process = Command::new(target().join(folder).join("kopf"))
            .args(["cluster", "--port", "0", "--kubeconfig"])
            .arg(&kubeconfig)
            .args(arguments)
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
        // Ignored: the process may be gone already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Builds the command; returns the folder of the profile below the target directory.
fn build(profile: &str) -> Result<&str> {
    if profile == "dev" {
        build::packages("kopf command", ["kopf-cli"])?;
        return Ok("debug");
    }
    let mut build = Command::new("cargo");
    build.args(["build", "--quiet", "-p", "kopf-cli", "--profile", profile]).current_dir(root());
    command_step("kopf command", build)?;
    Ok(profile)
}

fn remove(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("could not remove `{}`", path.display()))
        }
        _ => Ok(()),
    }
}
