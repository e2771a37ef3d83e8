//! How long to wait after failures in a row: the only two rules, for requests, watches, objects and
//! handlers alike.

use std::time::Duration;

/// A pause that doubles with each earlier failure, up to a limit.
#[must_use]
pub fn doubled(first: Duration, earlier: u32, max: Duration) -> Duration {
    first.saturating_mul(2_u32.saturating_pow(earlier)).min(max)
}

/// The pause after this many earlier failures: the pauses in order, the last one repeats.
///
/// `None` if there are no pauses.
#[must_use]
pub fn listed(earlier: u32, pauses: &[Duration]) -> Option<Duration> {
    let last = pauses.len().checked_sub(1)?;
    Some(pauses[usize::try_from(earlier).unwrap_or(last).min(last)])
}

#[cfg(test)]
mod tests;
