//! How daemons are stopped, and when timers run next.
//!
//! Pure. The engine owns the tasks; this module has only the stages and the calculation of times.

use std::time::Duration;

use crate::handler::{DaemonOptions, HandlerKind, TimerOptions};
use crate::queue::Moment;

/// How long to wait for one daemon to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// The time between the stop flag and the cancellation.
    pub backoff: Option<Duration>,
    /// How long to wait after the cancellation; `None` means waiting without cancelling.
    pub timeout: Option<Duration>,
    /// How often to check while waiting without a timeout.
    pub polling: Duration,
}

/// What to do about a daemon that should stop and has not yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The flag is set; wait.
    Signalled {
        /// The time until the next stage.
        wait: Duration,
    },
    /// Cancel it, unless already cancelled; wait.
    Cancelled {
        /// The time until the next stage.
        wait: Duration,
    },
    /// Continue without it.
    Abandoned,
    /// Check again later, indefinitely.
    Polled {
        /// The time until the next check.
        wait: Duration,
    },
}

impl Patience {
    /// For a daemon; `None` for other kinds of handlers. Timers are never cancelled.
    #[must_use]
    pub fn of(kind: &HandlerKind, default_polling: Duration) -> Option<Self> {
        match kind {
            HandlerKind::Daemon(DaemonOptions {
                cancellation_backoff,
                cancellation_timeout,
                cancellation_polling,
                ..
            }) => Some(Self {
                backoff: *cancellation_backoff,
                timeout: *cancellation_timeout,
                polling: cancellation_polling.unwrap_or(default_polling),
            }),
            HandlerKind::Timer(_) => {
                Some(Self { backoff: None, timeout: None, polling: default_polling })
            }
            _ => None,
        }
    }

    /// The stage of a daemon whose stop flag was set this long ago.
    #[must_use]
    pub fn stage(&self, age: Duration) -> Stage {
        let backoff = self.backoff.unwrap_or_default();
        if age < backoff {
            return Stage::Signalled { wait: backoff - age };
        }
        match self.timeout {
            Some(timeout) if age < backoff.saturating_add(timeout) => {
                Stage::Cancelled { wait: backoff.saturating_add(timeout) - age }
            }
            Some(_) => Stage::Abandoned,
            None => Stage::Polled { wait: self.polling },
        }
    }

    /// The stage when the object is gone: the same, but nothing is left to be held, so the wait
    /// without a timeout ends after one interval.
    #[must_use]
    pub fn stage_when_gone(&self, age: Duration) -> Stage {
        let limit = self.backoff.unwrap_or_default().saturating_add(self.polling);
        match self.stage(age) {
            Stage::Polled { .. } if age >= limit => Stage::Abandoned,
            Stage::Polled { .. } => Stage::Polled { wait: limit - age },
            stage => stage,
        }
    }

    /// The stage when the operator exits or pauses: the same, but without endless polling.
    #[must_use]
    pub fn stage_at_exit(&self, age: Duration) -> Stage {
        match self.stage(age) {
            Stage::Polled { .. } => Stage::Abandoned,
            stage => stage,
        }
    }
}

/// The time between the first runs of two timers whose objects existed before the operator started.
pub const FIRST_RUNS_STEP: Duration = Duration::from_millis(10);

/// How long to delay the first run of such a timer, so that not all of them run right after the
/// start.
///
/// `ahead` is the delay up to which slots are already taken. The result is never longer than the
/// usual pause between runs or `spread_max`; timers without a free slot share slots.
#[must_use]
pub fn spread(options: &TimerOptions, ahead: Duration, spread_max: Duration) -> Duration {
    let pause = options.interval.or(options.idle);
    let limit = pause.map_or(spread_max, |pause| pause.min(spread_max)).as_nanos();
    let rest = ahead.as_nanos().checked_rem(limit).unwrap_or(0);
    Duration::from_nanos(u64::try_from(rest).unwrap_or(0))
}

/// How long a timer must wait until the object has been unchanged for the idle time.
#[must_use]
pub fn idle_wait(idle: Option<Duration>, changed_at: Moment, now: Moment) -> Option<Duration> {
    let rest = changed_at.saturating_add(idle?).saturating_sub(now);
    (!rest.is_zero()).then_some(rest)
}

/// What happens after a run of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterRun {
    /// The next run starts after this time.
    Sleep(Duration),
    /// The next run starts once the object has changed since the start of this run.
    AwaitChange,
    /// There is no next run.
    End,
}

/// What happens after a finished run; unfinished ones use their retry delay instead.
#[must_use]
pub fn after_run(options: &TimerOptions, started: Moment, now: Moment) -> AfterRun {
    match (options.interval, options.idle) {
        (Some(interval), _) if options.sharp && !interval.is_zero() => {
            let elapsed = now.saturating_sub(started).as_nanos();
            let passed = elapsed % interval.as_nanos();
            let passed = Duration::from_nanos(u64::try_from(passed).unwrap_or(0));
            AfterRun::Sleep(interval.saturating_sub(passed))
        }
        (Some(interval), _) => AfterRun::Sleep(interval),
        (None, Some(_)) => AfterRun::AwaitChange,
        (None, None) => AfterRun::End,
    }
}

#[cfg(test)]
mod tests;
