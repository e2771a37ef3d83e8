//! A runtime with its own threads, which survives forks.
//!
//! A process that was forked by a handler has a copy of the runtime, but none of its threads: waiting
//! for them would never end.

use std::time::Duration;

use tokio::runtime::Runtime;

/// A runtime, and the process that has its threads.
pub(crate) struct Threads {
    runtime: Option<Runtime>,
    process: u32,
}

impl Threads {
    /// Takes over a runtime of this process.
    pub(crate) fn new(runtime: Runtime) -> Self {
        Self { runtime: Some(runtime), process: std::process::id() }
    }

    /// The runtime; none in a forked process.
    pub(crate) fn runtime(&self) -> Option<&Runtime> {
        self.runtime.as_ref().filter(|_| self.process == std::process::id())
    }

    /// Ends all threads, and waits for them for some time.
    pub(crate) fn shut_down(mut self, patience: Duration) {
        match self.runtime.take() {
            Some(runtime) if self.process == std::process::id() => {
                runtime.shutdown_timeout(patience);
            }
            other => std::mem::forget(other),
        }
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        match self.runtime.take() {
            Some(runtime) if self.process == std::process::id() => runtime.shutdown_background(),
            other => std::mem::forget(other),
        }
    }
}
