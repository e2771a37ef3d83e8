//! The stop flag of one daemon or timer: set by the engine, watched by async and blocking code.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kopf_core::invoke::{BoxFuture, Stop, StopReason};
use parking_lot::{Condvar, Mutex};
use tokio::sync::Notify;

/// A stop flag; cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Stopper(Arc<Inner>);

#[derive(Default)]
struct Inner {
    /// Written by the reactor, read by the daemon.
    reason: Mutex<StopReason>,
    blocking: Condvar,
    waiting: Notify,
}

impl Stopper {
    /// Adds a reason and wakes all waiters.
    pub(crate) fn set(&self, reason: StopReason) {
        let mut current = self.0.reason.lock();
        *current = current.and(reason);
        self.0.blocking.notify_all();
        drop(current);
        self.0.waiting.notify_waiters();
    }

    /// Whether there is any reason to stop.
    pub(crate) fn is_set(&self) -> bool {
        !self.0.reason.lock().is_empty()
    }

    /// Sleeps at most until the flag is set; returns whether it is set.
    pub(crate) async fn sleep(&self, duration: Duration) -> bool {
        self.wait(Some(duration)).await;
        self.is_set()
    }
}

impl Stop for Stopper {
    fn reason(&self) -> Option<StopReason> {
        let reason = *self.0.reason.lock();
        (!reason.is_empty()).then_some(reason)
    }

    fn wait(&self, timeout: Option<Duration>) -> BoxFuture<()> {
        let stopper = self.clone();
        Box::pin(async move {
            let notified = stopper.0.waiting.notified();
            tokio::pin!(notified);
            // Registered before the check, so that a flag set in between is not missed.
            notified.as_mut().enable();
            if stopper.is_set() {
                return;
            }
            match timeout {
                Some(timeout) => {
                    let _ = tokio::time::timeout(timeout, notified).await;
                }
                None => notified.await,
            }
        })
    }

    fn wait_blocking(&self, timeout: Option<Duration>) {
        // A time too far in the future is never reached.
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut reason = self.0.reason.lock();
        while reason.is_empty() {
            match deadline {
                None => self.0.blocking.wait(&mut reason),
                Some(deadline) => {
                    if self.0.blocking.wait_until(&mut reason, deadline).timed_out() {
                        return;
                    }
                }
            }
        }
    }

    fn wait_for(&self, reason: StopReason) -> BoxFuture<()> {
        let stopper = self.clone();
        Box::pin(async move {
            loop {
                let notified = stopper.0.waiting.notified();
                tokio::pin!(notified);
                notified.as_mut().enable();
                if stopper.reason().is_some_and(|current| current.contains(reason)) {
                    return;
                }
                notified.await;
            }
        })
    }
}

#[cfg(test)]
mod tests;
