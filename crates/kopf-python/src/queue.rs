//! The one queue from the engine to Python, with one wake-up per batch.
//!
//! Engine threads push plain Rust values and never attach to the interpreter. Python waits for the
//! socket to become readable in its event loop, then takes all items at once. Calls that end in the
//! same batch go back together: otherwise, each of them would wake a thread of the engine.

use std::io::{ErrorKind, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use pyo3::prelude::*;

use crate::stillness::{Hold, Stillness};

/// How many log lines may wait for Python; more are dropped and counted.
const LOG_LINES_MAX: usize = 100_000;

/// One thing for Python to do.
pub(crate) trait Item: Send {
    /// As Python takes it: a call, or a tuple that begins with the name of its kind.
    fn into_python<'py>(self: Box<Self>, py: Python<'py>) -> PyResult<Bound<'py, PyAny>>;

    /// Whether it is a log line, which is dropped if too many of them wait.
    fn is_log_line(&self) -> bool {
        false
    }
}

/// A call that has ended, on its way back to the engine.
pub(crate) trait Ended: Send {
    /// Wakes the engine.
    fn deliver(self: Box<Self>);
}

/// The queue.
pub(crate) struct Queue {
    /// Pushed to by engine threads, emptied by the Python loop.
    state: Mutex<State>,
    reader: UnixStream,
    writer: UnixStream,
    /// In the worlds of tests: virtual time stands still while Python has work.
    stillness: OnceLock<Arc<Stillness>>,
    /// Ended calls that are held back until the end of a batch; none if they are not held back.
    /// Used by the Python loop, and by threads that drop calls.
    ended: Mutex<Option<Vec<Box<dyn Ended>>>>,
}

#[derive(Default)]
struct State {
    items: Vec<Box<dyn Item>>,
    log_lines: usize,
    dropped_lines: usize,
    is_closed: bool,
}

impl Queue {
    /// An empty queue.
    pub(crate) fn new() -> std::io::Result<Self> {
        let (reader, writer) = UnixStream::pair()?;
        reader.set_nonblocking(true)?;
        writer.set_nonblocking(true)?;
        let (state, stillness) = (Mutex::default(), OnceLock::new());
        Ok(Self { state, reader, writer, stillness, ended: Mutex::default() })
    }

    /// Keeps this time still while Python has work.
    pub(crate) fn live_with(&self, stillness: Arc<Stillness>) {
        // Once per operator, before it starts.
        let _ = self.stillness.set(stillness);
    }

    /// A piece of work for Python, during which virtual time stands still.
    pub(crate) fn hold(&self) -> Option<Hold> {
        self.stillness.get().map(Stillness::hold)
    }

    /// The descriptor that is readable while there are items.
    pub(crate) fn fileno(&self) -> i32 {
        self.reader.as_raw_fd()
    }

    /// Adds an item; it is dropped when Python does not listen any more.
    pub(crate) fn push(&self, item: impl Item + 'static) {
        let mut state = self.state.lock();
        if state.is_closed {
            drop(state);
            // Not under the lock: it may have senders that wake others.
            drop(item);
            return;
        }
        if item.is_log_line() {
            if state.log_lines >= LOG_LINES_MAX {
                state.dropped_lines += 1;
                return;
            }
            state.log_lines += 1;
        }
        let is_first = state.items.is_empty();
        state.items.push(Box::new(item));
        drop(state);
        if is_first {
            self.wake();
        }
    }

    fn wake(&self) {
        // A full socket wakes the reader as well.
        let _ = (&self.writer).write(&[1]);
    }

    /// Takes all items, and how many log lines did not fit.
    pub(crate) fn take(&self) -> (Vec<Box<dyn Item>>, usize) {
        let mut bytes = [0; 64];
        loop {
            match (&self.reader).read(&mut bytes) {
                Ok(count) if count == bytes.len() => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                _ => break,
            }
        }
        let mut state = self.state.lock();
        state.log_lines = 0;
        (std::mem::take(&mut state.items), std::mem::take(&mut state.dropped_lines))
    }

    /// Holds ended calls back from now on.
    pub(crate) fn hold_back(&self) {
        self.ended.lock().get_or_insert_default();
    }

    /// Gives back all calls that were held back, and further ones at once.
    pub(crate) fn release(&self) {
        let ended = self.ended.lock().take();
        ended.into_iter().flatten().for_each(|call| call.deliver());
    }

    /// Gives an ended call back, now or at the end of the batch.
    pub(crate) fn give_back(&self, call: impl Ended + 'static) {
        let mut ended = self.ended.lock();
        match &mut *ended {
            Some(held) => held.push(Box::new(call)),
            None => {
                drop(ended);
                Box::new(call).deliver();
            }
        }
    }

    /// Refuses all further items and drops those that wait.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        state.is_closed = true;
        let items = std::mem::take(&mut state.items);
        drop(state);
        drop(items);
        self.release();
    }
}
