//! An operator that is restarted after each crash.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use kopf_engine::Running;
use tokio::sync::{mpsc, oneshot};

use crate::program::RunningProgram;
use crate::transport::Transport;

/// How long a crashed operator stays down.
const DOWNTIME: Duration = Duration::from_secs(2);
/// How long to wait until it watches; under torture it may not get that far.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// An operator in a world; it runs until the end of the world.
#[derive(Clone)]
pub struct OperatorHandle {
    commands: mpsc::UnboundedSender<Command>,
    crashes: Arc<AtomicUsize>,
}

enum Command {
    Stop(oneshot::Sender<()>),
    Crash(oneshot::Sender<()>),
}

impl OperatorHandle {
    /// Starts an operator, and restarts it after each crash.
    pub(crate) async fn start(spawn: impl Fn() -> (Running, Transport) + Send + 'static) -> Self {
        let (commands, received) = mpsc::unbounded_channel();
        let crashes = Arc::new(AtomicUsize::new(0));
        let (running, transport) = spawn();
        let is_watching = async {
            tokio::select! {
                () = running.settled() => {}
                () = transport.killed() => {}
            }
            transport.is_asked().await;
        };
        // If it takes longer, the test itself waits.
        let _ = tokio::time::timeout(START_TIMEOUT, is_watching).await;
        let supervisor = Supervisor { spawn, commands: received, crashes: Arc::clone(&crashes) };
        tokio::spawn(supervisor.supervise(running, transport));
        Self { commands, crashes }
    }

    /// The handle of a program that runs instead of an operator.
    pub(crate) fn of(program: RunningProgram) -> Self {
        let (commands, mut received) = mpsc::unbounded_channel();
        let crashes = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&crashes);
        tokio::spawn(async move {
            while let Some(command) = received.recv().await {
                let done = match command {
                    Command::Stop(done) => {
                        program.end().await;
                        done
                    }
                    Command::Crash(done) => {
                        program.kill();
                        counted.fetch_add(1, Ordering::Relaxed);
                        done
                    }
                };
                let _ = done.send(());
            }
        });
        Self { commands, crashes }
    }

    /// Asks the operator to stop and waits until it has; it shuts down gracefully.
    pub async fn stop(&self) {
        let (done, is_done) = oneshot::channel();
        if self.commands.send(Command::Stop(done)).is_ok() {
            let _ = is_done.await;
        }
    }

    /// Kills the operator at once, as `kill -9` would, and restarts it.
    pub async fn crash(&self) {
        let (done, is_done) = oneshot::channel();
        if self.commands.send(Command::Crash(done)).is_ok() {
            let _ = is_done.await;
        }
    }

    /// How often it has crashed.
    #[must_use]
    pub fn crashes(&self) -> usize {
        self.crashes.load(Ordering::Relaxed)
    }
}

struct Supervisor<F> {
    spawn: F,
    commands: mpsc::UnboundedReceiver<Command>,
    crashes: Arc<AtomicUsize>,
}

impl<F: Fn() -> (Running, Transport)> Supervisor<F> {
    async fn supervise(mut self, mut running: Running, mut transport: Transport) {
        loop {
            let command = tokio::select! {
                biased;
                () = transport.killed() => None,
                Some(command) = self.commands.recv() => Some(command),
            };
            let done = match command {
                Some(Command::Stop(done)) => {
                    // A failing cleanup is the operator's own problem and is in its log.
                    if let Err(error) = running.stop().await {
                        tracing::error!(target: "kopf.testing", %error, "the operator failed");
                    }
                    let _ = done.send(());
                    return;
                }
                Some(Command::Crash(done)) => Some(done),
                None => None,
            };
            transport.kill();
            running.abort();
            self.crashes.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(DOWNTIME).await;
            (running, transport) = (self.spawn)();
            if let Some(done) = done {
                let _ = done.send(());
            }
        }
    }
}
