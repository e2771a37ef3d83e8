//! Turns of those who write to one object beside one another: its cycle, its daemons, its timers.
//!
//! A write of a status is for one version of the object only, see `apply`. Without turns they would
//! meet conflicts all the time, at the price of more requests. Nothing else depends on them.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, OwnedMutexGuard};

/// Nobody waits longer for the write of another, which may have got stuck: conflicts do less harm.
const PATIENCE: Duration = Duration::from_secs(1);

/// The turns at one object.
#[derive(Clone, Default)]
pub(crate) struct Turns(Arc<Mutex<()>>);

/// It is somebody's turn until this is dropped.
pub(crate) struct Turn {
    _held: OwnedMutexGuard<()>,
}

impl Turns {
    /// Waits until nobody else writes; none if that takes too long.
    pub(crate) async fn take(&self) -> Option<Turn> {
        let held = tokio::time::timeout(PATIENCE, Arc::clone(&self.0).lock_owned()).await;
        held.ok().map(|held| Turn { _held: held })
    }
}
