//! Limits the number of concurrent writes: grows on success, shrinks when the server is overloaded.
//!
//! Every concurrent write needs a connection, which costs about as much as a write. So there are
//! few at first, which is enough for a server that responds at once; more of them would only wait
//! there. A server that itself waits for its disks or its peers gets more as soon as this is
//! detected: when there is no response at all for a while, or when responses take long without
//! becoming slower. Deletions and finalizers take precedence. One limiter per cluster.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

/// The initial allowance; it grows to the maximum from the settings.
const START: f64 = 16.0;

/// How often to check for responses while writes are waiting.
const TICK: Duration = Duration::from_millis(1);
/// The factor by which each tick without a response increases the allowance: a waiting server gets
/// all pending writes before its first response.
const GROWTH_PER_TICK: f64 = 4.0;
/// Slower responses mean that the server waits, unless it was faster before.
const SLOW_RESPONSE: Duration = Duration::from_millis(2);
/// How long the fastest response is remembered.
const FASTEST_REMEMBERED: Duration = Duration::from_secs(60);
/// How long after an overload the allowance grows only in small steps.
const CAUTION: Duration = Duration::from_secs(30);

/// The priority of writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// Deletions and finalizers: other parties wait for them.
    Urgent,
    /// Everything else.
    Normal,
}

/// Limits the writes in flight.
pub(crate) struct Limiter {
    state: Mutex<State>,
    widened: Notify,
}

struct State {
    allowance: f64,
    max: usize,
    in_flight: usize,
    paused_until: Option<Instant>,
    complained_at: Option<Instant>,
    fastest: Option<(Duration, Instant)>,
    ended: u64,
    is_observed: bool,
    urgent: VecDeque<oneshot::Sender<Permit>>,
    normal: VecDeque<oneshot::Sender<Permit>>,
}

/// The right to one write; returned on drop.
pub(crate) struct Permit {
    limiter: Option<Arc<Limiter>>,
    since: Instant,
}

impl Limiter {
    /// Creates a limiter that never allows more than this many concurrent writes.
    #[must_use]
    pub(crate) fn new(max: usize) -> Arc<Self> {
        let max = max.max(1);
        Arc::new(Self {
            state: Mutex::new(State {
                allowance: START.min(max as f64),
                max,
                in_flight: 0,
                paused_until: None,
                complained_at: None,
                fastest: None,
                ended: 0,
                is_observed: false,
                urgent: VecDeque::new(),
                normal: VecDeque::new(),
            }),
            widened: Notify::new(),
        })
    }

    /// Changes the maximum.
    pub(crate) fn set_max(&self, max: usize) {
        let mut state = self.state.lock();
        state.max = max.max(1);
        state.allowance = state.allowance.min(state.max as f64);
    }

    /// Waits for the right to write.
    pub(crate) async fn acquire(self: &Arc<Self>, urgency: Urgency) -> Permit {
        let waiting = {
            let mut state = self.state.lock();
            if state.has_room() {
                state.in_flight += 1;
                None
            } else {
                let (sender, receiver) = oneshot::channel();
                match urgency {
                    Urgency::Urgent => state.urgent.push_back(sender),
                    Urgency::Normal => state.normal.push_back(sender),
                }
                if !std::mem::replace(&mut state.is_observed, true) {
                    tokio::spawn(observe(Arc::downgrade(self), state.ended));
                }
                Some(receiver)
            }
        };
        let mut permit = match waiting {
            None => self.permit(),
            Some(receiver) => receiver.await.expect("waiters are granted, never dropped"),
        };
        loop {
            let Some(until) = self.state.lock().paused_until else { break };
            if until <= Instant::now() {
                break;
            }
            tokio::time::sleep_until(until).await;
            permit.since = Instant::now();
        }
        permit
    }

    /// Reports that the server is overloaded; new writes wait for as long as it requested.
    pub(crate) fn overloaded(&self, retry_after: Option<Duration>) {
        let mut state = self.state.lock();
        state.allowance = (state.allowance / 2.0).max(1.0);
        let now = Instant::now();
        state.complained_at = Some(now);
        if let Some(pause) = retry_after {
            let until = now + pause;
            state.paused_until = Some(state.paused_until.map_or(until, |other| other.max(until)));
        }
    }

    /// How many writes are in flight now, and how many are allowed.
    #[must_use]
    pub(crate) fn load(&self) -> (usize, usize) {
        let state = self.state.lock();
        (state.in_flight, state.allowance as usize)
    }

    /// How many writes are waiting to start.
    #[must_use]
    pub(crate) fn waiting(&self) -> usize {
        self.state.lock().waiting()
    }

    /// Waits until more writes are allowed for another reason than completed writes.
    pub(crate) async fn widened(&self) {
        self.widened.notified().await;
    }

    fn permit(self: &Arc<Self>) -> Permit {
        Permit { limiter: Some(Arc::clone(self)), since: Instant::now() }
    }

    /// A write has ended, successfully or not.
    fn end(self: &Arc<Self>, state: &mut State) {
        state.in_flight -= 1;
        state.ended += 1;
        self.grant(state);
    }

    /// Grants the available permits to waiting writes.
    fn grant(self: &Arc<Self>, state: &mut State) {
        while state.has_room() {
            let Some(next) = state.urgent.pop_front().or_else(|| state.normal.pop_front()) else {
                break;
            };
            state.in_flight += 1;
            if let Err(mut refused) = next.send(self.permit()) {
                // The waiter is gone; its permit must not be released under our lock.
                refused.limiter = None;
                state.in_flight -= 1;
            }
        }
    }
}

/// Detects a server that does not respond, while writes are waiting.
async fn observe(limiter: Weak<Limiter>, mut ended: u64) {
    loop {
        tokio::time::sleep(TICK).await;
        let Some(limiter) = limiter.upgrade() else { return };
        let mut state = limiter.state.lock();
        if state.waiting() == 0 {
            state.is_observed = false;
            return;
        }
        let is_silent = std::mem::replace(&mut ended, state.ended) == state.ended;
        if is_silent && state.may_hurry() {
            state.allowance = (state.allowance * GROWTH_PER_TICK).min(state.max as f64);
            limiter.grant(&mut state);
            limiter.widened.notify_one();
        }
    }
}

impl State {
    fn has_room(&self) -> bool {
        self.in_flight < self.allowance as usize
    }

    fn waiting(&self) -> usize {
        self.urgent.len() + self.normal.len()
    }

    /// Whether the server has not been overloaded recently.
    fn may_hurry(&self) -> bool {
        self.complained_at.is_none_or(|at| at.elapsed() >= CAUTION)
    }

    /// Records a successful write.
    fn succeeded(&mut self, took: Duration, now: Instant) {
        let fastest = match self.fastest {
            Some((fastest, at)) if fastest <= took && now - at < FASTEST_REMEMBERED => fastest,
            _ => {
                self.fastest = Some((took, now));
                took
            }
        };
        // The server is waiting for something else, and could process more of our writes.
        let is_idle = took >= SLOW_RESPONSE && took < fastest.saturating_mul(3) / 2;
        let step = if is_idle && self.waiting() > 0 && self.may_hurry() {
            1.0
        } else {
            1.0 / self.allowance
        };
        self.allowance = (self.allowance + step).min(self.max as f64);
    }
}

impl Permit {
    /// Reports that the write succeeded, and returns the right.
    pub(crate) fn succeeded(mut self) {
        if let Some(limiter) = self.limiter.take() {
            let now = Instant::now();
            let mut state = limiter.state.lock();
            state.succeeded(now - self.since, now);
            limiter.end(&mut state);
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(limiter) = self.limiter.take() {
            let mut state = limiter.state.lock();
            limiter.end(&mut state);
        }
    }
}

#[cfg(test)]
mod tests;
