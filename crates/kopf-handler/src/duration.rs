//! Durations in readable form: `30.secs()`.

use std::time::Duration;

/// Makes durations from numbers.
///
/// ```
/// use kopf_handler::Seconds;
/// use std::time::Duration;
/// assert_eq!(30.secs(), Duration::from_secs(30));
/// assert_eq!(0.5.secs(), Duration::from_millis(500));
/// assert_eq!(2.minutes(), Duration::from_secs(120));
/// ```
pub trait Seconds: Sized {
    /// This many seconds. Negative numbers and NaN result in zero, and numbers out of range in the
    /// longest duration.
    fn secs(self) -> Duration;

    /// This many milliseconds.
    fn millis(self) -> Duration {
        self.secs() / 1000
    }

    /// This many minutes.
    fn minutes(self) -> Duration {
        self.secs().saturating_mul(60)
    }

    /// This many hours.
    fn hours(self) -> Duration {
        self.secs().saturating_mul(3600)
    }
}

impl Seconds for i32 {
    fn secs(self) -> Duration {
        Duration::from_secs(self.try_into().unwrap_or_default())
    }
}

impl Seconds for u64 {
    fn secs(self) -> Duration {
        Duration::from_secs(self)
    }
}

impl Seconds for f64 {
    fn secs(self) -> Duration {
        let longest = if self > 0.0 { Duration::MAX } else { Duration::ZERO };
        Duration::try_from_secs_f64(self).unwrap_or(longest)
    }
}

#[cfg(test)]
mod tests;
