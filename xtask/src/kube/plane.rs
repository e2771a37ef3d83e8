//! A control plane owned by this process, for commands that kill and restart its parts.

use std::path::PathBuf;

use anyhow::{Result, ensure};

use super::{build, flags, launch, process, state::State};

/// Stopped and removed when dropped.
pub(crate) struct ControlPlane {
    plan: flags::Plan,
    binaries: PathBuf,
}

impl ControlPlane {
    /// Starts a new one, replacing the remains of any other with this name.
    pub(crate) fn start(name: &str) -> Result<Self> {
        let state = State::of(name)?;
        let is_running = process::is_alive(&state.pid_file("kube-apiserver"), "kube-apiserver");
        ensure!(!is_running, "a control plane of the name `{name}` runs already");
        let binaries = build::ensure()?;
        super::stop(&state)?;
        state.reset()?;
        let plan = flags::Plan::new(state, None)?;
        plan.write_files()?;
        let plane = Self { plan, binaries };
        launch(&plane.plan, &plane.binaries, true)?;
        Ok(plane)
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.plan.state.kubeconfig()
    }

    /// The address of etcd.
    pub(crate) fn etcd(&self) -> String {
        self.plan.etcd_url()
    }

    /// The process id of the API server, if it runs.
    pub(crate) fn api_server(&self) -> Option<u32> {
        let part = "kube-apiserver";
        process::living_pid(&self.plan.state.pid_file(part), part)
    }

    /// The last log lines of the API server.
    pub(crate) fn log(&self) -> String {
        self.plan.state.log_tail("kube-apiserver")
    }

    /// Restarts the API server after it was killed; does not wait until it is ready.
    pub(crate) fn start_api_server(&self) -> Result<()> {
        let flags = self.plan.apiserver();
        process::spawn(&self.binaries, "kube-apiserver", &flags, &self.plan.state)
    }

    /// Restarts the controllers. Their garbage collector can be stuck for minutes after a
    /// definition was recreated or the API server was killed.
    pub(crate) fn restart_controllers(&self) -> Result<()> {
        let part = "kube-controller-manager";
        let state = &self.plan.state;
        process::stop(&state.pid_file(part), part)?;
        process::spawn(&self.binaries, part, &self.plan.controllers(), state)
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        if let Err(error) = super::stop(&self.plan.state) {
            eprintln!("the control plane was left behind: {error:#}");
        }
    }
}
