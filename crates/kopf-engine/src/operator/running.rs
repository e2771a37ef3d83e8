//! An engine that runs in the background: start, wait, stop.

use tokio::sync::{oneshot, watch};

use crate::operator::engine::{Engine, EngineError};
use crate::reporting::status::StatusHandle;

/// An engine that runs in the background.
pub struct Running {
    stop: Option<oneshot::Sender<()>>,
    task: tokio::task::JoinHandle<Result<(), EngineError>>,
    ready: watch::Receiver<bool>,
    status: StatusHandle,
}

impl Engine {
    /// Starts the engine in the background of the current tokio runtime.
    ///
    /// # Panics
    /// Panics outside a tokio runtime.
    #[must_use]
    pub fn start(self) -> Running {
        let (stop, stopped) = oneshot::channel::<()>();
        let (ready, status) = (self.ready(), self.status());
        // Dropping the handle also asks the engine to stop.
        let task = tokio::spawn(self.run_until_dropped(stopped));
        Running { stop: Some(stop), task, ready, status }
    }
}

impl Running {
    /// Waits until the startup handlers are done and the cluster is connected. Returns false if the
    /// engine ended before that.
    pub async fn ready(&mut self) -> bool {
        self.ready.wait_for(|is_ready| *is_ready).await.is_ok()
    }

    /// Waits until all watches have listed and all indexes are filled, as far as the cluster
    /// permits.
    pub async fn settled(&self) {
        const POLLING: std::time::Duration = std::time::Duration::from_millis(5);
        while !self.status.snapshot().settled && !self.task.is_finished() {
            tokio::time::sleep(POLLING).await;
        }
    }

    /// Whether the engine has ended by itself.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.task.is_finished()
    }

    /// The status of the engine.
    #[must_use]
    pub fn status(&self) -> &StatusHandle {
        &self.status
    }

    /// Asks the engine to stop and waits until it has ended.
    ///
    /// # Errors
    /// See [`Engine::run`].
    ///
    /// # Panics
    /// Propagates a panic of the engine.
    pub async fn stop(mut self) -> Result<(), EngineError> {
        self.stop.take();
        self.join().await
    }

    /// Waits until the engine has ended.
    ///
    /// # Errors
    /// See [`Engine::run`].
    ///
    /// # Panics
    /// Propagates a panic of the engine.
    pub async fn join(self) -> Result<(), EngineError> {
        let Self { stop, task, .. } = self;
        let result = task.await;
        drop(stop);
        match result {
            Ok(result) => result,
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(_) => Ok(()),
        }
    }

    /// Ends at once, as a crash would: nothing more is finished or written.
    pub fn abort(self) {
        self.task.abort();
    }
}
