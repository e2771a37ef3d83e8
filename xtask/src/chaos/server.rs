//! The API server of a run: the embedded one as a process, or a real control plane.
//!
//! Defines how each is started, killed, frozen and made to drop old versions.

use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::json;

use super::api::Api;
use super::signal;
use super::subject::SERVER;
use crate::kube::ControlPlane;
use crate::kubeconfig::Endpoint;

/// How long a server may take until it responds.
const READY_TIMEOUT: Duration = Duration::from_secs(120);
const KILL_TIMEOUT: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(100);

pub(super) struct Server {
    pub(super) endpoint: Endpoint,
    kind: Kind,
}

enum Kind {
    Embedded { process: Option<Child>, folder: PathBuf, port: u16 },
    Real(ControlPlane),
}

impl Server {
    /// Starts a new `kopf cluster` that keeps its data in the folder.
    pub(super) fn embedded(folder: &Path) -> Result<Self> {
        let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
        let mut kind = Kind::Embedded { process: None, folder: folder.to_owned(), port };
        kind.start()?;
        let kubeconfig = folder.join("admin.kubeconfig");
        let began = Instant::now();
        while !kubeconfig.exists() {
            ensure!(began.elapsed() < READY_TIMEOUT, "`kopf cluster` wrote no kubeconfig in time");
            std::thread::sleep(POLL_INTERVAL);
        }
        Ok(Self { endpoint: Endpoint::from_file(&kubeconfig)?, kind })
    }

    /// Starts a new control plane with this name.
    pub(super) fn real(name: &str) -> Result<Self> {
        let plane = ControlPlane::start(name)?;
        Ok(Self { endpoint: Endpoint::from_file(&plane.kubeconfig())?, kind: Kind::Real(plane) })
    }

    /// The administrator's kubeconfig of a real control plane.
    pub(super) fn kubeconfig(&self) -> Option<PathBuf> {
        match &self.kind {
            Kind::Real(plane) => Some(plane.kubeconfig()),
            Kind::Embedded { .. } => None,
        }
    }

    pub(super) fn authority(&self) -> &str {
        self.endpoint.server.trim_start_matches("https://")
    }

    pub(super) fn kill(&mut self) -> Result<()> {
        match &mut self.kind {
            Kind::Embedded { process, .. } => {
                if let Some(mut process) = process.take() {
                    process.kill()?;
                    process.wait()?;
                }
            }
            Kind::Real(plane) => {
                if let Some(pid) = plane.api_server() {
                    signal("KILL", pid)?;
                }
                // A process that has ended may still hold its port for a moment.
                let address = self.endpoint.server.trim_start_matches("https://").to_owned();
                let began = Instant::now();
                while TcpListener::bind(&address).is_err() {
                    ensure!(began.elapsed() < KILL_TIMEOUT, "kube-apiserver survived KILL");
                    std::thread::sleep(Duration::from_millis(20));
                }
            }
        }
        Ok(())
    }

    pub(super) fn freeze(&self, is_frozen: bool) -> Result<()> {
        let pid = match &self.kind {
            Kind::Embedded { process, .. } => process.as_ref().map(Child::id),
            Kind::Real(plane) => plane.api_server(),
        };
        signal(if is_frozen { "STOP" } else { "CONT" }, pid.context("the server does not run")?)
    }

    /// Restarts the killed processes, and waits until the server responds.
    pub(super) async fn start(&mut self) -> Result<()> {
        self.kind.start()?;
        self.ready().await
    }

    /// Restarts the garbage collector, if it is a separate process.
    pub(super) fn restart_controllers(&self) -> Result<()> {
        match &self.kind {
            Kind::Embedded { .. } => Ok(()),
            Kind::Real(plane) => plane.restart_controllers(),
        }
    }

    async fn ready(&self) -> Result<()> {
        let mut api = Api::new(&self.endpoint)?;
        let began = Instant::now();
        loop {
            let answer = api.try_send("GET", "/readyz", "application/json", None).await;
            if answer.is_ok_and(|(status, _)| status == 200) {
                return Ok(());
            }
            if let Kind::Real(plane) = &self.kind
                && plane.api_server().is_none()
            {
                bail!("kube-apiserver ended after its restart:\n{}", plane.log());
            }
            ensure!(began.elapsed() < READY_TIMEOUT, "the server is not ready after its restart");
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Drops all versions except the newest ones; the real API server notices this only after a
    /// restart.
    pub(super) async fn compact(&self) -> Result<()> {
        // The embedded server keeps old versions only in memory.
        let Kind::Real(plane) = &self.kind else { return Ok(()) };
        let mut etcd = Api::new(&Endpoint { server: plane.etcd(), ..Endpoint::default() })?;
        let json = "application/json";
        let range = json!({"key": "AA==", "count_only": true});
        let (_, answer) = etcd.try_send("POST", "/v3/kv/range", json, Some(&range)).await?;
        let revision = &answer["header"]["revision"];
        let body = json!({"revision": revision, "physical": true});
        let (status, answer) =
            etcd.try_send("POST", "/v3/kv/compaction", json, Some(&body)).await?;
        if status != 200 && !answer.to_string().contains("compacted") {
            bail!("etcd does not compact to {revision}: {answer}");
        }
        Ok(())
    }
}

impl Kind {
    fn start(&mut self) -> Result<()> {
        let (process, folder, port) = match self {
            Self::Real(plane) => return plane.start_api_server(),
            Self::Embedded { process, folder, port } => (process, folder, port),
        };
        let log = File::options().create(true).append(true).open(folder.join("server.log"))?;
        let child = Command::new(folder.join(SERVER))
            .args(["cluster", "--rbac", "--no-nodes", "--port", &port.to_string()])
            .arg("--data-dir")
            .arg(folder.join("data"))
            .arg("--kubeconfig")
            .arg(folder.join("admin.kubeconfig"))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .context("could not start `kopf cluster`")?;
        *process = Some(child);
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The control plane stops itself; a frozen one must be resumed first.
        let _ = self.freeze(false);
        if matches!(self.kind, Kind::Embedded { .. }) {
            let _ = self.kill();
        }
    }
}
