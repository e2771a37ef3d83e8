//! Virtual time stands still while Python works, or while no test lets it pass.
//!
//! Paused time of tokio moves by itself when all tasks of a runtime wait, and Python is not one of
//! these tasks. It does not move while blocking work is under way, so there is some whenever time
//! must not move.

use std::sync::Arc;

use parking_lot::{Condvar, Mutex};
use tokio::runtime::Handle;

/// Decides whether the time of one runtime may move.
pub(crate) struct Stillness {
    handle: Handle,
    /// Changed by the threads of the test and of the world; held for a moment only.
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// How many want time to pass.
    movers: usize,
    /// How many pieces of work Python has at hand.
    holds: usize,
    /// Whether blocking work keeps time still.
    is_held: bool,
    is_over: bool,
}

impl State {
    fn must_hold(&self) -> bool {
        !self.is_over && (self.movers == 0 || self.holds > 0)
    }
}

/// Work of Python: time stands still until it is dropped.
pub(crate) struct Hold(Arc<Stillness>);

/// Lets time pass until it is dropped, except while Python works.
pub(crate) struct Moving(Arc<Stillness>);

impl Stillness {
    /// For the time of this runtime, which stands still from now on.
    pub(crate) fn new(handle: Handle) -> Arc<Self> {
        let (state, changed) = (Mutex::default(), Condvar::new());
        let stillness = Arc::new(Self { handle, state, changed });
        stillness.change(|_| {});
        stillness
    }

    /// Keeps time still for a piece of work.
    pub(crate) fn hold(self: &Arc<Self>) -> Hold {
        self.change(|state| state.holds += 1);
        Hold(Arc::clone(self))
    }

    /// Lets time pass.
    pub(crate) fn moving(self: &Arc<Self>) -> Moving {
        self.change(|state| state.movers += 1);
        Moving(Arc::clone(self))
    }

    /// Ends the blocking work, so that the runtime can end.
    pub(crate) fn end(self: &Arc<Self>) {
        self.change(|state| state.is_over = true);
    }

    fn change(self: &Arc<Self>, change: impl FnOnce(&mut State)) {
        let mut state = self.state.lock();
        change(&mut state);
        if !state.must_hold() {
            self.changed.notify_all();
        } else if !state.is_held {
            state.is_held = true;
            let stillness = Arc::clone(self);
            self.handle.spawn_blocking(move || stillness.block());
        }
    }

    fn block(&self) {
        let mut state = self.state.lock();
        while state.must_hold() {
            self.changed.wait(&mut state);
        }
        state.is_held = false;
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.change(|state| state.holds = state.holds.saturating_sub(1));
    }
}

impl Drop for Moving {
    fn drop(&mut self) {
        self.0.change(|state| state.movers = state.movers.saturating_sub(1));
    }
}
