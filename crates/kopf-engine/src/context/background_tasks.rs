//! The daemons and timers of all objects.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::timer_queue::TimerQueue;

/// What the daemons and timers of all objects share.
#[derive(Default)]
pub(crate) struct BackgroundTasks {
    /// The waiting timers.
    pub(crate) timers: Arc<TimerQueue>,
    /// Those that are being stopped and not waited for.
    pub(crate) stopping: TaskTracker,
    /// Cancelled when the engine begins to stop all of them.
    pub(crate) exiting: CancellationToken,
    /// Cancelled when those are not waited for either, because the engine has ended.
    pub(crate) ended: CancellationToken,
    /// How many exist.
    pub(crate) count: AtomicUsize,
}

impl BackgroundTasks {
    /// Stops a daemon or timer without waiting for it, but at the latest with the engine.
    pub(crate) fn stop_detached(&self, stopping: impl Future<Output = ()> + Send + 'static) {
        self.stopping.spawn(self.ended.clone().run_until_cancelled_owned(stopping));
    }
}
