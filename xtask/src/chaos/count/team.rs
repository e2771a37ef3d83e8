//! The operators that are tried: how each is built, and started as a replica.

use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tokio::time::sleep;

use super::waits::QueueWaits;
use crate::chaos::signal;
use crate::cluster::target;
use crate::steps::{command_step, root};

/// Our operator.
const OURS: &str = "count-operator";
/// That of controller-runtime.
const GO: &str = "count-controller-runtime";
/// How long a replica may take to end.
const STOP_TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Replicas of one operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::chaos) enum Team {
    /// Ours; each has a share of the objects.
    Shards,
    /// Ours; one leads, the others stand by.
    Standby,
    /// Go's controller-runtime; one leads.
    ControllerRuntime,
}

impl Team {
    pub(in crate::chaos) const ALL: [Self; 3] =
        [Self::Shards, Self::Standby, Self::ControllerRuntime];

    pub(in crate::chaos) fn name(self) -> &'static str {
        match self {
            Self::Shards => "ours, shards",
            Self::Standby => "ours, standby",
            Self::ControllerRuntime => "controller-runtime",
        }
    }

    pub(in crate::chaos) fn is_ours(self) -> bool {
        self != Self::ControllerRuntime
    }

    /// The namespace of its objects and Leases.
    pub(super) fn namespace(self) -> &'static str {
        match self {
            Self::Shards => "shards",
            Self::Standby => "standby",
            Self::ControllerRuntime => "go",
        }
    }
}

/// Builds the programs.
pub(in crate::chaos) fn build() -> Result<()> {
    let mut ours = Command::new("cargo");
    ours.args(["build", "--quiet", "--release", "-p", "benches", "--bin", OURS]);
    command_step("counting operator", {
        ours.current_dir(root());
        ours
    })?;
    let mut go = Command::new("go");
    go.args(["build", "-trimpath", "-o"]).arg(target().join(GO)).arg("./count");
    go.current_dir(root().join("benches").join("peers").join("controller-runtime"));
    command_step("counting operator of controller-runtime", go)
}

/// Copies the programs to the folder of a run, so that a later build does not change them.
pub(in crate::chaos) fn copy(folder: &Path) -> Result<()> {
    for (from, name) in [(target().join("release").join(OURS), OURS), (target().join(GO), GO)] {
        let complaint = || format!("could not copy `{}`", from.display());
        std::fs::copy(&from, folder.join(name)).with_context(complaint)?;
    }
    Ok(())
}

/// One replica; it is killed when dropped.
pub(super) struct Replica {
    team: Team,
    program: PathBuf,
    log: PathBuf,
    calls: PathBuf,
    kubeconfig: PathBuf,
    lease: Duration,
    /// The port of its probes, if it is ours.
    port: u16,
    child: Option<Child>,
}

impl Replica {
    pub(super) fn new(
        team: Team,
        number: usize,
        programs: &Path,
        folder: &Path,
        kubeconfig: &Path,
        lease: Duration,
    ) -> Result<Self> {
        // It is free now; if another program takes it, the replica does not start.
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        Ok(Self {
            team,
            program: programs.join(if team.is_ours() { OURS } else { GO }),
            log: folder.join(format!("replica-{number}.log")),
            calls: folder.join("calls.jsonl"),
            kubeconfig: kubeconfig.to_owned(),
            lease,
            port,
            child: None,
        })
    }

    pub(super) fn start(&mut self) -> Result<()> {
        let log = File::options().create(true).append(true).open(&self.log)?;
        let namespace = self.team.namespace();
        let mut command = Command::new(&self.program);
        match self.team {
            Team::Shards => command.args(["run", "--namespace", namespace, "--shards=auto"]),
            Team::Standby => command.args(["run", "--namespace", namespace, "--leader-elect"]),
            Team::ControllerRuntime => command.env("NAMESPACE", namespace),
        };
        if self.team.is_ours() {
            command.arg(format!("--liveness=http://127.0.0.1:{}/healthz", self.port));
        }
        command.env("LEASE_SECONDS", self.lease.as_secs_f64().to_string());
        command.env("KUBECONFIG", &self.kubeconfig).env("CALLS", &self.calls);
        command.env("POD_NAMESPACE", namespace).stdin(Stdio::null());
        let child = command.stdout(log.try_clone()?).stderr(log).spawn();
        self.child = Some(child.context("could not start a replica")?);
        Ok(())
    }

    /// Kills the process, and returns its id.
    pub(super) fn kill(&mut self) -> Result<u32> {
        let mut child = self.child.take().context("the replica does not run")?;
        child.kill()?;
        child.wait()?;
        Ok(child.id())
    }

    /// Stops the process with SIGTERM, waits for its end, and returns its id.
    pub(super) async fn stop(&mut self) -> Result<u32> {
        let child = self.child.as_mut().context("the replica does not run")?;
        let (pid, began) = (child.id(), Instant::now());
        signal("TERM", pid)?;
        while child.try_wait()?.is_none() {
            ensure!(began.elapsed() < STOP_TIMEOUT, "process {pid} does not end");
            sleep(POLL_INTERVAL).await;
        }
        self.child = None;
        Ok(pid)
    }

    /// How long objects have waited in the queue of the process; empty if it does not tell.
    pub(super) async fn queue_waits(&self) -> QueueWaits {
        if !self.team.is_ours() {
            return QueueWaits::default();
        }
        QueueWaits::read(self.port).await.unwrap_or_default()
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        // Ignored: it may be gone already.
        let _ = self.kill();
    }
}
