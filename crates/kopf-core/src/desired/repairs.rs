//! When a child is applied again that others keep deleting or changing.
//!
//! Without a pause, the operator and, for example, a controller of the cluster would undo each
//! other's writes as fast as the server allows.

use std::time::Duration;

use kopf_model::{Timestamp, backoff};

use crate::progress::later;

/// How many applications of the same manifest follow each other without a pause.
const AT_ONCE: u32 = 5;
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(64);
/// A child that was left alone for this long is repaired at once again.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(128);

/// The applications of the same manifest of one child.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repairs {
    count: u32,
    last: Option<Timestamp>,
}

impl Repairs {
    /// Until when the child must be left alone; `None` if it may be applied now.
    #[must_use]
    pub fn held_until(&self, now: Timestamp) -> Option<Timestamp> {
        let next = later(self.last?, self.pause());
        (next > now).then_some(next)
    }

    /// The pause after the last application.
    #[must_use]
    pub fn pause(&self) -> Duration {
        match self.count.checked_sub(AT_ONCE) {
            Some(earlier) => backoff::doubled(FIRST_PAUSE, earlier, LONGEST_PAUSE),
            None => Duration::ZERO,
        }
    }

    /// The same after another application.
    #[must_use]
    pub fn counted(&self, now: Timestamp) -> Self {
        let is_recent = self.last.is_some_and(|last| later(last, FORGOTTEN_AFTER) >= now);
        let count = if is_recent { self.count.saturating_add(1) } else { 1 };
        Self { count, last: Some(now) }
    }
}

#[cfg(test)]
mod tests;
