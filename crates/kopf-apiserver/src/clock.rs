//! Time and random identifiers, both injectable for deterministic tests.
//!
//! Every timestamp and every generated name in the server comes from here.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;
use parking_lot::Mutex;

pub use kopf_kinds::{IdSource, SequentialIds};

/// The source of time for the server and its controllers.
pub trait Clock: Send + Sync + 'static {
    /// Returns the current time.
    fn now(&self) -> Timestamp;
    /// Resolves when `duration` has passed on this clock.
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()>;
}

/// Wall-clock time and tokio timers.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}

/// A clock that moves only when [`ManualClock::advance`] is called.
#[derive(Debug, Clone)]
pub struct ManualClock {
    // Written by `advance`, read by every sleeper and by `now`.
    now: Arc<Mutex<Timestamp>>,
    moved: tokio::sync::watch::Sender<u64>,
}

impl ManualClock {
    /// A clock that stands still at `start`.
    pub fn new(start: Timestamp) -> Self {
        Self { now: Arc::new(Mutex::new(start)), moved: tokio::sync::watch::Sender::new(0) }
    }

    /// Moves time forward and wakes every sleeper that is due.
    pub fn advance(&self, duration: Duration) {
        let mut now = self.now.lock();
        *now = now
            .saturating_add(jiff::SignedDuration::try_from(duration).unwrap_or_default())
            .unwrap_or(Timestamp::MAX);
        drop(now);
        self.moved.send_modify(|count| *count += 1);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        *self.now.lock()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let clock = self.clone();
        let deadline = self
            .now()
            .saturating_add(jiff::SignedDuration::try_from(duration).unwrap_or_default())
            .unwrap_or(Timestamp::MAX);
        let mut moved = self.moved.subscribe();
        Box::pin(async move {
            while clock.now() < deadline {
                if moved.changed().await.is_err() {
                    futures::future::pending::<()>().await;
                }
            }
        })
    }
}

/// Random uids and suffixes.
#[derive(Debug, Clone, Copy, Default)]
pub struct RandomIds;

impl IdSource for RandomIds {
    fn uid(&self) -> String {
        uuid::Builder::from_random_bytes(fastrand::u128(..).to_le_bytes()).into_uuid().to_string()
    }

    fn number(&self) -> u64 {
        fastrand::u64(..)
    }
}
