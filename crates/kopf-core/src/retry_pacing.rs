//! Back-off for handlers that repeatedly ask for an immediate retry.
//!
//! Pure. Without this, a handler that always asks for an immediate retry would use a whole core.

use std::time::Duration;

use kopf_model::backoff::doubled;

/// This many in a row are not delayed.
const IMMEDIATE_MAX: u32 = 10;
/// The first pause after them; each one is twice as long as the one before.
const PAUSE: Duration = Duration::from_millis(10);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Counts the attempts in a row that asked for an immediate retry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RetryPacing {
    count: u32,
}

impl RetryPacing {
    /// Records an attempt that took this long, and the requested delay. Returns the actual delay,
    /// which is longer after too many immediate retries.
    ///
    /// Pauses count from the start of the attempt: a slow handler needs no pause.
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

#[cfg(test)]
mod tests;
