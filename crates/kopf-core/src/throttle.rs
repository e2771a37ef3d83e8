//! How long to leave an object alone after unexpected errors.

use std::time::Duration;

use kopf_model::backoff;

/// Counts the errors in a row about one object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Throttle {
    errors: u32,
}

impl Throttle {
    /// Records an error; returns how long to wait: the delays in order, the last one repeats.
    ///
    /// `None` if there are no delays, which means no throttling.
    pub fn note_error(&mut self, delays: &[Duration]) -> Option<Duration> {
        let delay = backoff::listed(self.errors, delays)?;
        self.errors = self.errors.saturating_add(1);
        Some(delay)
    }

    /// Records a success; returns whether there were errors before.
    pub fn note_success(&mut self) -> bool {
        std::mem::take(&mut self.errors) > 0
    }

    /// Whether there were errors since the last success.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.errors > 0
    }
}

#[cfg(test)]
mod tests;
