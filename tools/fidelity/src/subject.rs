//! The server to be judged: given by a kubeconfig, or our own.
//!
//! Responsible for the lifetime of an embedded server that a command starts.

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::kubeconfig::Endpoint;

/// Includes the build of the server on a cold cache.
const START_TIMEOUT: Duration = Duration::from_secs(900);
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Stops the server when dropped, if it was started here.
pub(crate) struct Subject {
    pub(crate) endpoint: Endpoint,
    child: Option<Child>,
}

impl Subject {
    /// Uses the kubeconfig, or starts `kopf cluster` and uses that.
    pub(crate) fn open(kubeconfig: Option<&Path>) -> Result<Self> {
        match kubeconfig {
            Some(path) => Ok(Self { endpoint: Endpoint::from_file(path)?, child: None }),
            None => Self::start(),
        }
    }

    fn start() -> Result<Self> {
        let path = std::env::temp_dir().join(format!("kopf-subject-{}", std::process::id()));
        let child = tools_support::steps::cargo()
            .args(["run", "--quiet", "--package", "kopf-cli", "--bin", "kopf", "--"])
            .args(["cluster", "--rbac", "--no-nodes", "--kubeconfig"])
            .arg(&path)
            .current_dir(tools_support::steps::root())
            .stdout(Stdio::null())
            .spawn()
            .context("could not run cargo")?;
        let mut subject = Self { endpoint: Endpoint::default(), child: Some(child) };
        subject.wait(&path)?;
        subject.endpoint = Endpoint::from_file(&path)?;
        std::fs::remove_file(&path)?;
        Ok(subject)
    }

    fn wait(&mut self, path: &Path) -> Result<()> {
        let deadline = Instant::now() + START_TIMEOUT;
        while !path.exists() {
            let ended = self.child.as_mut().map(Child::try_wait).transpose()?.flatten();
            if let Some(status) = ended {
                bail!("`kopf cluster` ended with {status}");
            }
            if Instant::now() > deadline {
                bail!("`kopf cluster` was not ready within {START_TIMEOUT:?}");
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        Ok(())
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // It may have ended by itself, which is fine.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
