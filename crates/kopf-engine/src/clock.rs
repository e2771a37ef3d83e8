//! The current time: from the system's clock, or from one that follows tokio's (pausable) time.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// A source of the current time.
#[derive(Clone, Debug, Default)]
pub struct Clock(Kind);

#[derive(Clone, Debug, Default)]
enum Kind {
    #[default]
    System,
    Virtual {
        origin: Timestamp,
        instant: Instant,
    },
}

impl Clock {
    /// The system's clock.
    #[must_use]
    pub fn system() -> Self {
        Self::default()
    }

    /// A clock that starts at a time and follows tokio's time, so that tests can pause it.
    ///
    /// # Panics
    /// Panics outside a tokio runtime with time.
    #[must_use]
    pub fn following_tokio(origin: Timestamp) -> Self {
        Self(Kind::Virtual { origin, instant: Instant::now() })
    }

    /// The current time in microseconds: a finer precision would be lost when stored.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        let exact = match &self.0 {
            Kind::System => Timestamp::now(),
            Kind::Virtual { origin, instant } => {
                let passed = SignedDuration::try_from(instant.elapsed()).unwrap_or_default();
                origin.checked_add(passed).unwrap_or(Timestamp::MAX)
            }
        };
        Timestamp::from_microsecond(exact.as_microsecond()).unwrap_or(exact)
    }
}

/// The time after a delay; never reached for endless delays.
pub(crate) fn after(delay: Duration) -> Instant {
    const NEVER: Duration = Duration::from_secs(30 * 365 * 86_400);
    Instant::now() + delay.min(NEVER)
}
