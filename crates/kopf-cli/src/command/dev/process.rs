//! One run of the operator: a process in its own group, stopped gracefully or killed.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::mpsc;

use super::session::News;

/// An operator that does not stop within this time is killed.
const GRACE: Duration = Duration::from_secs(10);

/// Makes the operator stop when its standard input closes, so that it never outlives this process.
const STOP_WITH_STDIN: (&str, &str) = ("KOPF_RUN_UNTIL_STDIN_CLOSES", "true");

/// How to run the operator.
pub(super) struct Launch<'a> {
    pub(super) executable: &'a Path,
    pub(super) kubeconfig: &'a Path,
    pub(super) probes: SocketAddr,
    pub(super) has_webhooks: bool,
    pub(super) options: &'a [String],
}

/// A running operator.
pub(super) struct Process {
    child: Child,
    /// Closed when this process ends, for whatever reason.
    _stdin: Option<ChildStdin>,
}

impl Process {
    /// Starts the operator; its output and its end are sent to the session.
    pub(super) fn start(
        launch: &Launch<'_>,
        run: u64,
        news: &mpsc::UnboundedSender<News>,
    ) -> Result<Self> {
        let mut command = Command::new(launch.executable);
        command
            .arg("run")
            .env("KUBECONFIG", launch.kubeconfig)
            .env(STOP_WITH_STDIN.0, STOP_WITH_STDIN.1);
        let is_given = |name: &str| launch.options.iter().any(|option| option.starts_with(name));
        if !is_given("--log-format") {
            command.arg("--log-format=json");
        }
        if !is_given("--liveness") && !is_given("-L") {
            command.arg(format!("--liveness=http://{}/healthz", launch.probes));
        }
        command.env("KOPF_RUN_ALLOW_ACTIONS", "true");
        if launch.has_webhooks && !is_given("--webhook") {
            command.arg("--webhook=127.0.0.1:0");
        }
        command.args(launch.options);
        // Ctrl-C is for this process; it stops the operator when the time comes.
        command.process_group(0).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command
            .spawn()
            .with_context(|| format!("could not start `{}`", launch.executable.display()))?;
        tell_lines(child.stdout.take(), run, news);
        tell_lines(child.stderr.take(), run, news);
        let leash = child.stdin.take();
        Ok(Self { child, _stdin: leash })
    }

    /// Waits for its end.
    pub(super) async fn ended(&mut self) -> std::io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Asks it to stop, and kills it if it does not.
    pub(super) async fn stop(&mut self) {
        self.signal(Signal::TERM);
        if tokio::time::timeout(GRACE, self.child.wait()).await.is_err() {
            self.kill();
            // The error could not be reported to anyone.
            let _ = self.child.wait().await;
        }
    }

    /// Kills it.
    pub(super) fn kill(&mut self) {
        // It may be gone already.
        let _ = self.child.start_kill();
    }

    fn signal(&self, signal: Signal) {
        let id = self.child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(id) = id {
            // It may be gone already.
            let _ = kill_process(id, signal);
        }
    }
}

fn tell_lines(
    stream: Option<impl AsyncRead + Unpin + Send + 'static>,
    run: u64,
    news: &mpsc::UnboundedSender<News>,
) {
    let Some(stream) = stream else { return };
    let news = news.clone();
    tokio::spawn(async move {
        let mut lines = BufReader::new(stream).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            if news.send(News::Line { run, line }).is_err() {
                return;
            }
        }
    });
}
