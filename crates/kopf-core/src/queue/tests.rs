//! The guarantees of the queue, individually and under random actions.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;

use super::{Limits, Moment, Next, Queue, QueueKey, Ticket, Urgency};

/// A key of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Key(u8, u8);

impl QueueKey for Key {
    type Group = u8;

    fn group(&self) -> u8 {
        self.0
    }
}

fn queue(running_max: usize) -> Queue<Key> {
    let error_delays = [1, 2, 5].map(Duration::from_secs).to_vec();
    Queue::new(Limits { running_max, error_delays })
}

fn s(seconds: u64) -> Moment {
    Duration::from_secs(seconds)
}

fn take(queue: &mut Queue<Key>, now: u64) -> Ticket<Key> {
    queue.take(s(now)).expect("a key is ready")
}

const A: Key = Key(0, 1);
const B: Key = Key(0, 2);

#[test]
fn offers_coalesce_and_a_key_runs_once_at_a_time() {
    let mut queue = queue(10);
    queue.offer(A, Urgency::Fresh, s(0));
    queue.offer(A, Urgency::Fresh, s(0));
    let ticket = take(&mut queue, 0);
    assert_eq!((ticket.key, ticket.offers), (A, 2));
    queue.offer(A, Urgency::Fresh, s(0));
    assert_eq!(queue.take(s(0)), None, "its run is under way");
    queue.done(ticket, Next::Rest, s(1));
    let again = take(&mut queue, 1);
    assert_eq!(again.offers, 1);
    queue.done(again, Next::Rest, s(1));
    assert!(queue.is_empty(), "keys at rest take no memory");
}

#[test]
fn the_number_of_runs_is_bounded() {
    let mut queue = queue(1);
    queue.offer(A, Urgency::Fresh, s(0));
    queue.offer(B, Urgency::Fresh, s(0));
    let ticket = take(&mut queue, 0);
    assert_eq!(queue.take(s(0)), None);
    assert_eq!(queue.running(), 1);
    queue.done(ticket, Next::Rest, s(0));
    assert_eq!(take(&mut queue, 0).key, B);
}

#[test]
fn wakes_occur_on_time_and_once() {
    let mut queue = queue(10);
    queue.offer(A, Urgency::Fresh, s(0));
    let ticket = take(&mut queue, 0);
    queue.done(ticket, Next::WakeAt(s(10)), s(0));
    queue.wake_at(A, s(20));
    assert_eq!(queue.next_wake(), Some(s(10)));
    assert_eq!(queue.take(s(9)), None);
    let ticket = take(&mut queue, 10);
    queue.done(ticket, Next::Rest, s(10));
    assert_eq!(queue.take(s(100)), None);
    assert_eq!(queue.next_wake(), None);
    assert!(queue.is_empty());
}

#[test]
fn a_run_before_the_wake_answers_it() {
    let mut queue = queue(10);
    queue.wake_at(A, s(10));
    queue.offer(A, Urgency::Fresh, s(5));
    let ticket = take(&mut queue, 5);
    queue.done(ticket, Next::Rest, s(5));
    assert_eq!(queue.next_wake(), None);
    assert!(queue.is_empty());
}

#[test]
fn an_earlier_wake_replaces_a_later_one() {
    let mut queue = queue(10);
    queue.wake_at(A, s(20));
    queue.wake_at(A, s(10));
    assert_eq!(queue.next_wake(), Some(s(10)));
    let ticket = take(&mut queue, 10);
    queue.done(ticket, Next::Rest, s(10));
    assert_eq!(queue.take(s(20)), None);
}

#[test]
fn a_wake_during_a_run_is_not_lost() {
    let mut queue = queue(10);
    queue.offer(A, Urgency::Fresh, s(0));
    let ticket = take(&mut queue, 0);
    queue.wake_at(A, s(1));
    assert_eq!(queue.take(s(2)), None);
    queue.done(ticket, Next::Rest, s(3));
    assert_eq!(take(&mut queue, 3).key, A);
}

#[test]
fn failures_pause_longer_and_longer_until_a_success() {
    let mut queue = queue(10);
    queue.offer(A, Urgency::Fresh, s(0));
    let mut now = 0;
    for pause in [1, 2, 5, 5] {
        let ticket = take(&mut queue, now);
        assert_eq!(queue.done(ticket, Next::Failed, s(now)), Some(s(pause)));
        assert_eq!(queue.next_wake(), Some(s(now + pause)));
        now += pause;
    }
    let ticket = take(&mut queue, now);
    assert_eq!(queue.done(ticket, Next::Rest, s(now)), None);
    queue.offer(A, Urgency::Fresh, s(now));
    let ticket = take(&mut queue, now);
    assert_eq!(queue.done(ticket, Next::Failed, s(now)), Some(s(1)));
}

#[test]
fn a_run_about_something_else_keeps_the_schedule() {
    let mut queue = queue(1);
    queue.offer(A, Urgency::Fresh, s(0));
    let ticket = take(&mut queue, 0);
    queue.done(ticket, Next::WakeAt(s(5)), s(0));
    queue.offer(A, Urgency::Fresh, s(1));
    let ticket = take(&mut queue, 1);
    queue.done(ticket, Next::AsBefore, s(1));
    assert_eq!(queue.next_wake(), Some(s(5)), "the wake is not lost");
    let ticket = take(&mut queue, 5);
    queue.done(ticket, Next::Failed, s(5));
    let pause = queue.next_wake().expect("a pause");
    queue.offer(A, Urgency::Fresh, s(5));
    let ticket = take(&mut queue, 5);
    assert!(ticket.is_early);
    queue.done(ticket, Next::AsBefore, s(5));
    assert_eq!(queue.next_wake(), Some(pause), "nor is the end of a pause");
    queue.offer(A, Urgency::Fresh, s(5));
    assert!(take(&mut queue, 5).is_early, "the early try is still to be had");
}

#[test]
fn a_fresh_change_gets_one_early_attempt_that_does_not_count() {
    let mut queue = queue(10);
    queue.offer(A, Urgency::Fresh, s(0));
    for (now, pause) in [(0, 1), (1, 2), (3, 5)] {
        let ticket = take(&mut queue, now);
        assert_eq!(queue.done(ticket, Next::Failed, s(now)), Some(s(pause)));
    }
    // Paused until 8.
    queue.offer(A, Urgency::Backlog, s(4));
    assert_eq!(queue.take(s(4)), None, "the backlog waits for the end of the pause");
    queue.offer(A, Urgency::Fresh, s(4));
    let early = take(&mut queue, 4);
    assert!(early.is_early);
    assert_eq!(queue.done(early, Next::Failed, s(5)), Some(s(3)), "the pause goes on");
    queue.offer(A, Urgency::Fresh, s(5));
    assert_eq!(queue.take(s(5)), None, "only one early try");
    let late = take(&mut queue, 8);
    assert!(!late.is_early);
    assert_eq!(late.offers, 1);
    queue.done(late, Next::Rest, s(8));
    assert!(queue.is_empty());
}

#[test]
fn fresh_changes_run_first_without_starving_the_backlog() {
    let mut queue = queue(1000);
    for number in 0..30 {
        queue.offer(Key(0, number), Urgency::Backlog, s(0));
        queue.offer(Key(1, number), Urgency::Fresh, s(0));
    }
    let order: Vec<_> =
        std::iter::from_fn(|| queue.take(s(0)).map(|ticket| ticket.key.0)).collect();
    assert_eq!(order.len(), 60);
    assert_eq!(order[..8], [1; 8]);
    assert_eq!(order[8], 0);
    assert_eq!(order[9..17], [1; 8]);
}

#[test]
fn a_backlog_key_with_a_fresh_change_is_promoted() {
    let mut queue = queue(10);
    queue.offer(A, Urgency::Backlog, s(0));
    queue.offer(B, Urgency::Backlog, s(0));
    queue.offer(B, Urgency::Fresh, s(0));
    assert_eq!(take(&mut queue, 0).key, B);
    assert_eq!(take(&mut queue, 0).key, A);
    assert_eq!(queue.take(s(0)), None);
}

#[test]
fn a_burst_of_one_group_does_not_delay_others() {
    let mut queue = queue(1000);
    for number in 0..100 {
        queue.offer(Key(0, number), Urgency::Fresh, s(0));
    }
    queue.offer(Key(1, 0), Urgency::Fresh, s(0));
    let first: Vec<_> = (0..3).map(|_| take(&mut queue, 0).key.0).collect();
    assert!(first.contains(&1), "{first:?}");
}

#[test]
fn forgotten_keys_do_not_come_back() {
    let mut queue = queue(10);
    queue.offer(A, Urgency::Fresh, s(0));
    queue.wake_at(A, s(5));
    queue.forget(&A);
    assert_eq!(queue.take(s(10)), None);
    queue.offer(B, Urgency::Fresh, s(10));
    let ticket = take(&mut queue, 10);
    queue.offer(B, Urgency::Fresh, s(10));
    queue.forget(&B);
    queue.done(ticket, Next::Rest, s(10));
    assert!(queue.is_empty());
}

#[derive(Clone, Debug)]
enum Action {
    Offer(Key, Urgency),
    Wake(Key, u64),
    Take,
    Done(usize, u8),
    Forget(Key),
    Pass(u64),
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    let key = || (0..2_u8, 0..3_u8).prop_map(|(group, number)| Key(group, number));
    let urgency = prop_oneof![Just(Urgency::Fresh), Just(Urgency::Backlog)];
    let action = prop_oneof![
        6 => (key(), urgency).prop_map(|(key, urgency)| Action::Offer(key, urgency)),
        2 => (key(), 0..20_u64).prop_map(|(key, after)| Action::Wake(key, after)),
        8 => Just(Action::Take),
        8 => (0..4_usize, 0..4_u8).prop_map(|(which, how)| Action::Done(which, how)),
        1 => key().prop_map(Action::Forget),
        4 => (0..4_u64).prop_map(Action::Pass),
    ];
    prop::collection::vec(action, 0..120)
}

/// A queue and the runs that it owes.
struct ExpectedRuns {
    queue: Queue<Key>,
    running_max: usize,
    now: u64,
    /// The running keys, and whether something was due for them before.
    running: Vec<(Ticket<Key>, bool)>,
    /// Keys that still have to run.
    wanted: BTreeSet<Key>,
    /// Keys that must be woken up, or whose pause must end.
    due: BTreeSet<Key>,
}

impl ExpectedRuns {
    fn act(&mut self, action: Action) {
        let now = self.now;
        match action {
            Action::Offer(key, urgency) => {
                self.queue.offer(key, urgency, s(now));
                self.wanted.insert(key);
            }
            Action::Wake(key, after) => {
                self.queue.wake_at(key, s(now + after));
                self.owe(key);
            }
            Action::Take => {
                self.take();
            }
            Action::Done(which, how) if !self.running.is_empty() => {
                let index = which % self.running.len();
                let choices = [Next::Rest, Next::WakeAt(s(now + 3)), Next::Failed, Next::AsBefore];
                self.finish(index, choices[usize::from(how)]);
            }
            Action::Done(..) => {}
            Action::Forget(key) => {
                self.queue.forget(&key);
                self.wanted.remove(&key);
                self.due.remove(&key);
                for (ticket, was_due) in &mut self.running {
                    *was_due &= ticket.key != key;
                }
            }
            Action::Pass(seconds) => self.now += seconds,
        }
    }

    fn owe(&mut self, key: Key) {
        self.wanted.insert(key);
        self.due.insert(key);
    }

    fn take(&mut self) -> bool {
        let Some(ticket) = self.queue.take(s(self.now)) else { return false };
        let key = ticket.key;
        assert!(!self.running.iter().any(|(other, _)| other.key == key), "two runs of one key");
        assert!(self.running.len() < self.running_max);
        self.wanted.remove(&key);
        let was_due = if ticket.is_early { self.due.contains(&key) } else { self.due.remove(&key) };
        self.running.push((ticket, was_due));
        true
    }

    fn finish(&mut self, index: usize, next: Next) {
        let (ticket, was_due) = self.running.swap_remove(index);
        let key = ticket.key;
        self.queue.done(ticket, next, s(self.now));
        let is_owed = match next {
            Next::Rest => false,
            Next::WakeAt(_) | Next::Failed => true,
            Next::AsBefore => was_due,
        };
        if is_owed {
            self.owe(key);
        }
    }

    fn finish_all(&mut self) {
        while !self.running.is_empty() {
            self.finish(0, Next::Rest);
        }
    }
}

proptest! {
    #[test]
    fn no_key_is_lost_and_none_runs_twice_at_a_time(
        actions in actions(), running_max in 1..4_usize, has_delays in any::<bool>(),
    ) {
        let mut queue = queue(running_max);
        if !has_delays {
            queue.limits.error_delays.clear();
        }
        let (running, wanted, due) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
        let mut expected = ExpectedRuns { queue, running_max, now: 0, running, wanted, due };
        for action in actions {
            expected.act(action);
        }
        // In the end everything runs, after at most the longest pause or wake-up, round by round.
        for _ in 0..expected.wanted.len() + expected.running.len() + 8 {
            expected.finish_all();
            expected.now += 20;
            while expected.take() {}
        }
        prop_assert!(expected.wanted.is_empty(), "lost: {:?}", expected.wanted);
        expected.finish_all();
        prop_assert!(expected.queue.is_empty(), "{} entries are left", expected.queue.len());
    }
}

#[test]
fn a_failed_early_run_is_repeated_although_its_pause_was_forgotten() {
    let mut queue = queue(1);
    queue.offer(A, Urgency::Fresh, s(0));
    let ticket = take(&mut queue, 0);
    queue.done(ticket, Next::Failed, s(0));
    queue.offer(A, Urgency::Fresh, s(0));
    let early = take(&mut queue, 0);
    queue.forget(&A);
    let pause = queue.done(early, Next::Failed, s(0));
    assert_eq!(queue.next_wake(), pause);
    assert!(pause.is_some());
}

#[test]
fn a_pause_ends_although_a_wake_came_before() {
    let mut queue = queue(1);
    queue.offer(A, Urgency::Fresh, s(0));
    let ticket = take(&mut queue, 0);
    let pause = queue.done(ticket, Next::Failed, s(0));
    queue.wake_at(A, s(0));
    let early = take(&mut queue, 0);
    assert!(early.is_early);
    queue.done(early, Next::AsBefore, s(0));
    assert_eq!(queue.next_wake(), pause);
    assert!(pause.is_some());
}

#[test]
fn replaced_wakes_do_not_accumulate() {
    let mut queue = queue(1);
    for now in 0..10_000 {
        queue.offer(A, Urgency::Fresh, s(now));
        let ticket = take(&mut queue, now);
        // A retry in about an hour, slightly rescheduled with every change.
        queue.done(ticket, Next::WakeAt(s(100_000 - now % 2)), s(now));
    }
    assert!(queue.wakes.len() < 1000, "{}", queue.wakes.len());
    assert_eq!(queue.next_wake(), Some(s(99_999)));
}

proptest! {
    #[test]
    fn the_next_wake_is_the_earliest_current_request(
        wakes in prop::collection::vec((0..4_u8, 1..1000_u64), 1..1500),
    ) {
        let mut queue = queue(1);
        let mut known = BTreeMap::new();
        for (number, wake) in wakes {
            let key = Key(0, number);
            queue.offer(key, Urgency::Fresh, s(0));
            let ticket = take(&mut queue, 0);
            queue.done(ticket, Next::WakeAt(s(wake)), s(0));
            known.insert(key, s(wake));
            prop_assert_eq!(queue.next_wake(), known.values().min().copied());
        }
        let mut woken = BTreeSet::new();
        while let Some(ticket) = queue.take(s(1000)) {
            woken.insert(ticket.key);
            queue.done(ticket, Next::Rest, s(1000));
        }
        prop_assert!(woken.iter().eq(known.keys()));
        prop_assert!(queue.is_empty());
    }
}

#[test]
fn the_queue_knows_how_many_wait_and_for_how_long() {
    let mut queue = queue(1);
    assert_eq!((queue.ready(), queue.oldest_ready()), (0, None));
    queue.offer(A, Urgency::Backlog, s(1));
    queue.offer(A, Urgency::Fresh, s(2));
    queue.offer(B, Urgency::Fresh, s(3));
    assert_eq!((queue.ready(), queue.oldest_ready()), (2, Some(s(1))));
    let ticket = take(&mut queue, 4);
    assert_eq!(queue.ready(), 1);
    queue.done(ticket, Next::WakeAt(s(9)), s(5));
    assert_eq!((queue.ready(), queue.len()), (1, 2), "one waits for a later moment");
    queue.forget(&B);
    queue.forget(&A);
    assert_eq!((queue.ready(), queue.oldest_ready()), (0, None));
}
