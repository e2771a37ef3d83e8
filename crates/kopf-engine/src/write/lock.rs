//! Serializes the writes of an object: by its cycle, its daemons and its timers.
//!
//! A status write is for one version of the object only, see `kopf_core::write`. Without the lock
//! there would be constant conflicts, and therefore more requests. Nothing else depends on it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, OwnedMutexGuard};

/// The longest wait for another write, which may hang: conflicts do less harm.
const PATIENCE: Duration = Duration::from_secs(1);

/// The lock of one object.
#[derive(Clone, Default)]
pub(crate) struct WriteLock(Arc<Mutex<()>>);

/// No other write starts until this is dropped.
pub(crate) struct WriteGuard {
    _held: OwnedMutexGuard<()>,
}

impl WriteLock {
    /// Waits until no other write is in progress; `None` if that takes too long.
    pub(crate) async fn take(&self) -> Option<WriteGuard> {
        let held = tokio::time::timeout(PATIENCE, Arc::clone(&self.0).lock_owned()).await;
        held.ok().map(|held| WriteGuard { _held: held })
    }
}
