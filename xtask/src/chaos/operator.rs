//! The operator process: started, killed, frozen, and restarted when it ends by itself.
//!
//! Records when and how every process ended, and its resource usage.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};

use super::history::{Life, Usage};
use super::subject::Subject;
use super::{now, signal};

/// How long the operator may take to end after SIGTERM.
const STOP_TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// The pause before a process that ended by itself is restarted.
const RESTART_PAUSE: Duration = Duration::from_secs(1);
/// The usage before this age belongs to the start.
const START_SECONDS: f64 = 15.0;

pub(super) struct Operator {
    subject: Subject,
    folder: PathBuf,
    replica: Option<Replica>,
    inner: Mutex<Inner>,
}

/// The settings of one of several replicas.
struct Replica {
    place: PathBuf,
    flag: &'static str,
}

#[derive(Default)]
struct Inner {
    child: Option<Child>,
    started: f64,
    is_frozen: bool,
    lives: Vec<Life>,
    late: Vec<String>,
}

impl Operator {
    pub(super) fn new(subject: Subject, folder: PathBuf) -> Self {
        Self { subject, folder, replica: None, inner: Mutex::default() }
    }

    /// One of several replicas, with its own folder and the flag for coordination.
    pub(super) fn replica(folder: PathBuf, place: PathBuf, flag: &'static str) -> Self {
        let mut operator = Self::new(Subject::Ours, folder);
        operator.replica = Some(Replica { place, flag });
        operator
    }

    fn command(&self) -> Command {
        let mut command = self.subject.command(&self.folder);
        if let Some(Replica { place, flag }) = &self.replica {
            command.arg(flag).env("KUBECONFIG", place.join("operator.kubeconfig"));
        }
        command
    }

    fn log(&self) -> PathBuf {
        let place = self.replica.as_ref().map_or(&self.folder, |replica| &replica.place);
        place.join("operator.log")
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a process, unless one is running.
    pub(super) fn start(&self) -> Result<()> {
        let mut inner = self.inner();
        if inner.child.is_some() {
            return Ok(());
        }
        let log = File::options().create(true).append(true).open(self.log())?;
        let mut command = self.command();
        let child =
            command.stdout(log.try_clone()?).stderr(log).spawn().with_context(|| {
                format!("could not start the operator of {}", self.subject.name())
            })?;
        inner.started = now();
        inner.is_frozen = false;
        inner.lives.push(Life { pid: child.id(), ended: None, by_itself: None, usage: None });
        inner.child = Some(child);
        Ok(())
    }

    pub(super) fn kill(&self) -> Result<()> {
        let mut inner = self.inner();
        if let Some(mut child) = inner.child.take() {
            child.kill()?;
            child.wait()?;
            inner.end(None);
        }
        Ok(())
    }

    /// Asks the process to end; if it does not end in time, it is killed and this is recorded.
    pub(super) async fn stop(&self) -> Result<()> {
        let Some(mut child) = self.inner().child.take() else { return Ok(()) };
        signal("TERM", child.id())?;
        let began = std::time::Instant::now();
        while child.try_wait()?.is_none() {
            if began.elapsed() > STOP_TIMEOUT {
                let text = format!("process {} did not end within {STOP_TIMEOUT:?}", child.id());
                self.inner().late.push(text);
                child.kill()?;
                child.wait()?;
                break;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        self.inner().end(None);
        Ok(())
    }

    pub(super) fn freeze(&self, is_frozen: bool) -> Result<()> {
        let mut inner = self.inner();
        if let Some(child) = &inner.child {
            signal(if is_frozen { "STOP" } else { "CONT" }, child.id())?;
            inner.is_frozen = is_frozen;
        }
        Ok(())
    }

    /// Supervises the process until the run is over.
    pub(super) async fn supervise(&self) -> Result<()> {
        loop {
            self.attend().await?;
        }
    }

    /// Checks the process once.
    pub(super) async fn attend(&self) -> Result<()> {
        tokio::time::sleep(POLL_INTERVAL).await;
        let ended = self.inner().look()?;
        if ended {
            tokio::time::sleep(RESTART_PAUSE).await;
            self.start()?;
        }
        Ok(())
    }

    /// The current usage of the process.
    pub(super) fn usage(&self) -> Option<(u32, Usage)> {
        let pid = self.inner().child.as_ref()?.id();
        Some((pid, usage(pid)?))
    }

    /// All processes so far, and what they did not do in time.
    pub(super) fn lives(&self) -> (Vec<Life>, Vec<String>) {
        let inner = self.inner();
        (inner.lives.clone(), inner.late.clone())
    }
}

impl Inner {
    fn end(&mut self, by_itself: Option<String>) {
        if let Some(life) = self.lives.last_mut() {
            life.ended = Some(now());
            life.by_itself = by_itself;
        }
    }

    /// Records the usage of the process; returns true if it has ended by itself.
    fn look(&mut self) -> Result<bool> {
        let Some(child) = &mut self.child else { return Ok(false) };
        if let Some(status) = child.try_wait()? {
            self.child = None;
            self.end(Some(status.to_string()));
            return Ok(true);
        }
        let is_old = now() - self.started > START_SECONDS && !self.is_frozen;
        let usage = usage(child.id()).filter(|_| is_old);
        if let (Some(usage), Some(life)) = (usage, self.lives.last_mut()) {
            life.usage = Some((life.usage.map_or(usage, |(first, _)| first), usage));
        }
        Ok(false)
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        // Ignored: the process may be gone already.
        let _ = self.kill();
    }
}

fn usage(pid: u32) -> Option<Usage> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let field = |name: &str| -> Option<u64> {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse().ok()
    };
    let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count();
    Some(Usage {
        memory: field("VmRSS:")?,
        descriptors: u64::try_from(descriptors).ok()?,
        threads: field("Threads:")?,
    })
}
