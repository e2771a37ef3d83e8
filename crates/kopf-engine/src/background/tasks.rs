//! The daemons and timers of all objects.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use kopf_core::invoke::StopReason;
use kopf_core::settings::Background;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Daemon;
use super::timers::TimerQueue;

/// What the daemons and timers of all objects share.
#[derive(Default)]
pub(crate) struct BackgroundTasks {
    /// The timers that wait.
    pub(crate) timers: Arc<TimerQueue>,
    /// Those that are stopped without anybody waiting for them.
    pub(crate) stopping: TaskTracker,
    /// Set when nobody waits for those either: the engine is over.
    pub(crate) ended: CancellationToken,
    /// How many exist.
    pub(crate) count: AtomicUsize,
}

impl BackgroundTasks {
    /// Stops a daemon or timer without anybody waiting for it, but not beyond the engine's end.
    pub(crate) fn stop_detached(&self, daemon: Daemon, reason: StopReason, settings: Background) {
        let stopping = daemon.stop(reason, settings);
        self.stopping.spawn(self.ended.clone().run_until_cancelled_owned(stopping));
    }
}
