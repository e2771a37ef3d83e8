//! How many writes may be under way: grows while all goes well, shrinks when the server complains.
//!
//! Deletions and finalizers go before everything else. One limiter per cluster.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// Where the allowance starts; it grows to the setting's maximum. Each write at once needs a
/// connection, which takes about as much work as a write.
const START: f64 = 16.0;

/// Which writes go first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// Deletions and finalizers: other parties wait for them.
    Urgent,
    /// All else.
    Normal,
}

/// Bounds the writes under way.
pub(crate) struct Limiter {
    state: Mutex<State>,
}

struct State {
    allowance: f64,
    max: usize,
    in_flight: usize,
    paused_until: Option<Instant>,
    urgent: VecDeque<oneshot::Sender<Permit>>,
    normal: VecDeque<oneshot::Sender<Permit>>,
}

/// The right to one write; given back on drop.
pub(crate) struct Permit {
    limiter: Option<Arc<Limiter>>,
}

impl Limiter {
    /// A limiter that never allows more than this many writes at once.
    #[must_use]
    pub(crate) fn new(max: usize) -> Arc<Self> {
        let max = max.max(1);
        Arc::new(Self {
            state: Mutex::new(State {
                allowance: START.min(max as f64),
                max,
                in_flight: 0,
                paused_until: None,
                urgent: VecDeque::new(),
                normal: VecDeque::new(),
            }),
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
                Some(receiver)
            }
        };
        let permit = match waiting {
            None => Permit { limiter: Some(Arc::clone(self)) },
            Some(receiver) => receiver.await.expect("waiters are granted, never dropped"),
        };
        loop {
            let Some(until) = self.state.lock().paused_until else { break };
            if until <= Instant::now() {
                break;
            }
            tokio::time::sleep_until(until).await;
        }
        permit
    }

    /// Tells that a write went well.
    pub(crate) fn succeeded(&self) {
        let mut state = self.state.lock();
        state.allowance = (state.allowance + 1.0 / state.allowance).min(state.max as f64);
    }

    /// Tells that the server is overloaded; new writes wait for as long as it asked.
    pub(crate) fn overloaded(&self, retry_after: Option<Duration>) {
        let mut state = self.state.lock();
        state.allowance = (state.allowance / 2.0).max(1.0);
        if let Some(pause) = retry_after {
            let until = Instant::now() + pause;
            state.paused_until = Some(state.paused_until.map_or(until, |other| other.max(until)));
        }
    }

    /// How many writes are under way now, and how many are allowed.
    #[must_use]
    pub(crate) fn load(&self) -> (usize, usize) {
        let state = self.state.lock();
        (state.in_flight, state.allowance as usize)
    }

    /// How many writes wait for the right to begin.
    #[must_use]
    pub(crate) fn waiting(&self) -> usize {
        let state = self.state.lock();
        state.urgent.len() + state.normal.len()
    }

    fn release(self: Arc<Self>) {
        let mut state = self.state.lock();
        state.in_flight -= 1;
        while state.has_room() {
            let Some(next) = state.urgent.pop_front().or_else(|| state.normal.pop_front()) else {
                break;
            };
            state.in_flight += 1;
            let permit = Permit { limiter: Some(Arc::clone(&self)) };
            if let Err(mut refused) = next.send(permit) {
                // The waiter is gone; its permit must not be released under our lock.
                refused.limiter = None;
                state.in_flight -= 1;
            }
        }
    }
}

impl State {
    fn has_room(&self) -> bool {
        self.in_flight < self.allowance as usize
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(limiter) = self.limiter.take() {
            limiter.release();
        }
    }
}

#[cfg(test)]
mod tests;
