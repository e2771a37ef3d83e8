//! Stages of stopping, and schedules of timers, as tables.

use std::time::Duration;

use super::{AfterRun, Patience, Stage, after_run, idle_wait, spread};
use crate::handler::{DaemonOptions, HandlerKind, TimerOptions};

fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[track_caller]
fn check(backoff: Option<u64>, timeout: Option<u64>, age: u64, expected: Stage, at_exit: Stage) {
    let options = DaemonOptions {
        cancellation_backoff: backoff.map(s),
        cancellation_timeout: timeout.map(s),
        ..DaemonOptions::default()
    };
    let patience = Patience::of(&HandlerKind::Daemon(options), s(60)).unwrap();
    assert_eq!(patience.stage(s(age)), expected);
    assert_eq!(patience.stage_at_exit(s(age)), at_exit);
}

#[test]
fn a_daemon_of_a_gone_object_is_abandoned_after_one_interval() {
    let gone = |backoff: Option<u64>, timeout: Option<u64>, age| {
        let options = DaemonOptions {
            cancellation_backoff: backoff.map(s),
            cancellation_timeout: timeout.map(s),
            ..DaemonOptions::default()
        };
        let patience = Patience::of(&HandlerKind::Daemon(options), s(60)).unwrap();
        patience.stage_when_gone(s(age))
    };
    assert_eq!(gone(None, None, 0), Stage::Polled { wait: s(60) });
    assert_eq!(gone(None, None, 59), Stage::Polled { wait: s(1) });
    assert_eq!(gone(None, None, 60), Stage::Abandoned);
    assert_eq!(gone(Some(10), None, 5), Stage::Signalled { wait: s(5) });
    assert_eq!(gone(Some(10), None, 10), Stage::Polled { wait: s(60) });
    assert_eq!(gone(Some(10), None, 70), Stage::Abandoned);
    assert_eq!(gone(Some(10), Some(5), 10), Stage::Cancelled { wait: s(5) });
    assert_eq!(gone(Some(10), Some(5), 15), Stage::Abandoned);
}

#[test]
fn stages_follow_the_age_of_the_stop_flag() {
    let signalled = |wait| Stage::Signalled { wait: s(wait) };
    let cancelled = |wait| Stage::Cancelled { wait: s(wait) };
    let polled = Stage::Polled { wait: s(60) };
    check(Some(10), Some(5), 0, signalled(10), signalled(10));
    check(Some(10), Some(5), 9, signalled(1), signalled(1));
    check(Some(10), Some(5), 10, cancelled(5), cancelled(5));
    check(Some(10), Some(5), 14, cancelled(1), cancelled(1));
    check(Some(10), Some(5), 15, Stage::Abandoned, Stage::Abandoned);
    check(None, Some(5), 0, cancelled(5), cancelled(5));
    check(Some(10), None, 5, signalled(5), signalled(5));
    check(Some(10), None, 10, polled, Stage::Abandoned);
    check(None, None, 0, polled, Stage::Abandoned);
    let timer = Patience::of(&HandlerKind::Timer(TimerOptions::default()), s(7)).unwrap();
    assert_eq!(timer.stage(s(1000)), Stage::Polled { wait: s(7) });
    assert_eq!(Patience::of(&HandlerKind::Create, s(7)), None);
}

#[test]
fn endless_times_do_not_overflow() {
    let patience = Patience { backoff: Some(s(1)), timeout: Some(Duration::MAX), polling: s(60) };
    assert_eq!(patience.stage(s(2)), Stage::Cancelled { wait: Duration::MAX - s(2) });
    assert_eq!(idle_wait(Some(Duration::MAX), s(100), s(103)), Some(Duration::MAX - s(103)));
}

#[test]
fn idle_timers_wait_for_the_rest_of_the_idle_time() {
    assert_eq!(idle_wait(Some(s(10)), s(100), s(103)), Some(s(7)));
    assert_eq!(idle_wait(Some(s(10)), s(100), s(110)), None);
    assert_eq!(idle_wait(None, s(100), s(100)), None);
}

#[test]
fn runs_follow_the_interval_the_grid_or_a_change() {
    let options = |interval: Option<u64>, sharp, idle: Option<u64>| TimerOptions {
        interval: interval.map(s),
        sharp,
        idle: idle.map(s),
        ..TimerOptions::default()
    };
    let after = |options: TimerOptions| after_run(&options, s(100), s(107));
    assert_eq!(after(options(Some(10), false, None)), AfterRun::Sleep(s(10)));
    assert_eq!(after(options(Some(10), true, None)), AfterRun::Sleep(s(3)));
    assert_eq!(after(options(Some(5), true, Some(1))), AfterRun::Sleep(s(3)));
    assert_eq!(after(options(None, false, Some(1))), AfterRun::AwaitChange);
    assert_eq!(after(options(None, false, None)), AfterRun::End);
    assert_eq!(after(options(Some(0), true, None)), AfterRun::Sleep(s(0)));
}

#[test]
fn first_runs_are_delayed_within_the_pause_and_the_limit() {
    let with = |interval, idle| TimerOptions { interval, idle, ..TimerOptions::default() };
    let often = with(Some(s(3)), None);
    for (ahead, expected) in [(0, 0), (2, 2), (3, 0), (7, 1)] {
        assert_eq!(spread(&often, s(ahead), s(10)), s(expected), "{ahead} s ahead");
    }
    assert_eq!(spread(&with(Some(s(60)), None), s(13), s(10)), s(3));
    assert_eq!(spread(&with(None, Some(s(5))), s(7), s(10)), s(2));
    assert_eq!(spread(&with(None, None), s(13), s(10)), s(3));
    assert_eq!(spread(&often, s(2), s(0)), s(0), "no limit, no spread");
    assert_eq!(spread(&with(Some(s(0)), None), s(2), s(10)), s(0));
}
