//! One replica: a process behind a proxy of its own.

use std::net::SocketAddr;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::probes::Probes;
use super::proxy::Proxy;
use crate::cluster::target;
use crate::engine::peers;
use crate::engine::process::Process;
use crate::engine::server::Server;

/// What a replica is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Job {
    /// One of those that share the objects.
    Shards,
    /// A leader or its standby.
    Standby,
    /// The same with Go's controller-runtime.
    ControllerRuntime,
}

/// How a replica ends.
#[derive(Clone, Copy)]
pub(super) enum Signal {
    Terminate,
    Kill,
}

/// A running replica; it is killed when dropped.
pub(super) struct Replica {
    pub(super) process: Process,
    pub(super) proxy: Proxy,
    pub(super) probes: Probes,
    job: Job,
}

impl Replica {
    /// Starts a replica.
    pub(super) fn start(job: Job, server: &Server) -> Result<Self> {
        let text = std::fs::read_to_string(&server.kubeconfig)?;
        let address = address(&text)?;
        let proxy = Proxy::start(address)?;
        let kubeconfig = target().join(format!("bench-{}.kubeconfig", proxy.address.port()));
        let text = text.replace(&address.to_string(), &proxy.address.to_string());
        std::fs::write(&kubeconfig, text)?;
        let probes = Probes::new()?;
        let mut command = match job {
            Job::ControllerRuntime => {
                let mut command = Command::new(peers::go());
                command.env("WORKERS", "16").env("LEASE", "bench");
                command
            }
            Job::Shards | Job::Standby => {
                let mut command = Command::new(target().join("release/bench-operator"));
                let role = if job == Job::Shards { "--shards=auto" } else { "--leader-elect" };
                command.args(["run", "--quiet", "--standalone", "--all-namespaces", role]);
                command.arg(format!("--liveness=http://{}/healthz", probes.0));
                command
            }
        };
        command.env("KUBECONFIG", kubeconfig).env("CASE", "create").stdout(Stdio::piped());
        let child = command.spawn().context("could not start a replica")?;
        Ok(Self { process: Process(child), proxy, probes, job })
    }

    /// Sends a signal.
    pub(super) fn signal(&self, signal: Signal) -> Result<()> {
        let name = match signal {
            Signal::Terminate => "-TERM",
            Signal::Kill => "-KILL",
        };
        let status =
            Command::new("kill").arg(name).arg(self.process.0.id().to_string()).status()?;
        ensure!(status.success(), "the replica is gone already");
        Ok(())
    }

    /// How many calls of its handler there were. Ours has metrics; Go's program tells at its end.
    pub(super) fn calls(mut self) -> Result<f64> {
        if self.job != Job::ControllerRuntime {
            let series = "kopf_handler_outcomes_total{handler=\"create\",outcome=\"success\"}";
            return self.probes.read()?.value(series).context("the replica tells no calls");
        }
        self.signal(Signal::Terminate)?;
        let mut output = self.process.0.stdout.take().context("the output was not captured")?;
        let mut text = String::new();
        std::io::Read::read_to_string(&mut output, &mut text)?;
        let number = text.lines().find_map(|line| line.strip_prefix("reconciles: "));
        Ok(number.context("the program tells no number of reconciles")?.trim().parse()?)
    }
}

fn address(kubeconfig: &str) -> Result<SocketAddr> {
    let value: serde_json::Value = serde_json::from_str(kubeconfig)?;
    let server = value["clusters"][0]["cluster"]["server"].as_str().context("no server")?;
    Ok(server.trim_start_matches("http://").parse()?)
}
