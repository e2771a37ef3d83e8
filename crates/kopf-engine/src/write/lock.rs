//! Who may write to an object next: its cycle, its daemons and its timers, one at a time.
//!
//! A write of a status is for one version of the object only, see `kopf_core::write`. Without the
//! lock they would meet conflicts all the time, at the price of more requests. Nothing else depends
//! on it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, OwnedMutexGuard};

/// The longest wait for another write, which may be stuck: conflicts do less harm.
const PATIENCE: Duration = Duration::from_secs(1);

/// The lock of one object.
#[derive(Clone, Default)]
pub(crate) struct WriteLock(Arc<Mutex<()>>);

/// No other write begins until this is dropped.
pub(crate) struct WriteGuard {
    _held: OwnedMutexGuard<()>,
}

impl WriteLock {
    /// Waits until no other write is under way; `None` if that takes too long.
    pub(crate) async fn take(&self) -> Option<WriteGuard> {
        let held = tokio::time::timeout(PATIENCE, Arc::clone(&self.0).lock_owned()).await;
        held.ok().map(|held| WriteGuard { _held: held })
    }
}
