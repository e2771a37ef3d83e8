//! How long to leave an object alone after unexpected errors.

use std::time::Duration;

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
        let delay = delay_after(self.errors, delays)?;
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

/// The delay after this many earlier errors in a row: the delays in order, the last one repeats.
///
/// `None` if there are no delays.
#[must_use]
pub fn delay_after(errors: u32, delays: &[Duration]) -> Option<Duration> {
    let last = delays.len().checked_sub(1)?;
    Some(delays[usize::try_from(errors).unwrap_or(last).min(last)])
}

#[cfg(test)]
mod tests;
