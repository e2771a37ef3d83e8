//! Back-off for handlers that ask for an immediate retry again and again.
//!
//! Pure. Nothing else would slow down a handler that asks for its next attempt at once, without end:
//! it would take a whole core.

use std::time::Duration;

/// So many in a row are as fast as they are asked for.
const IMMEDIATE_MAX: u32 = 10;
/// The first pause after them; each one is twice as long as the one before.
const PAUSE: Duration = Duration::from_millis(10);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// The count of attempts in a row of which the next was wanted at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RetryPacing {
    count: u32,
}

impl RetryPacing {
    /// Notes an attempt that took so long, and the delay that is asked for after it; returns the
    /// delay to be kept, which is longer if too many attempts were wanted at once.
    ///
    /// Pauses count from the beginning of the attempt: a slow handler needs no pause.
    pub fn pace(&mut self, took: Duration, delay: Duration) -> Duration {
        if !delay.is_zero() {
            self.count = 0;
            return delay;
        }
        self.count = self.count.saturating_add(1);
        match self.count.checked_sub(IMMEDIATE_MAX + 1) {
            None => delay,
            Some(excess) => doubled(PAUSE, excess, PAUSE_MAX).saturating_sub(took),
        }
    }
}

/// A pause that is twice as long each time, up to a limit.
#[must_use]
pub fn doubled(first: Duration, times: u32, max: Duration) -> Duration {
    first.saturating_mul(2_u32.saturating_pow(times)).min(max)
}

#[cfg(test)]
mod tests;
