//! One clock for the server and the engine: wall time that follows tokio's pausable time.

use std::sync::LazyLock;
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// The start of virtual time in this process.
static ORIGIN: LazyLock<(Timestamp, Instant)> =
    LazyLock::new(|| (Timestamp::now(), Instant::from_std(std::time::Instant::now())));

/// Wall time that stands still while tokio's time is paused, and jumps when it is advanced.
#[derive(Clone, Copy, Debug, Default)]
pub struct VirtualClock;

impl VirtualClock {
    /// The current time of the test.
    #[must_use]
    pub fn now(self) -> Timestamp {
        let (timestamp, instant) = *ORIGIN;
        let passed = Instant::now().saturating_duration_since(instant);
        let passed = SignedDuration::try_from(passed).unwrap_or_default();
        timestamp.checked_add(passed).unwrap_or(Timestamp::MAX)
    }
}

impl kopf_apiserver::Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        Self::now(*self)
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}
