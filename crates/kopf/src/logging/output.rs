//! Writes lines in a separate thread, so that logging never waits for a slow reader.
//!
//! A pipe that is not read blocks its writers. Here it blocks only this thread: lines wait in a
//! bounded queue and are dropped and counted when the queue is full. Their order is kept.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The maximum number of bytes per write.
const BATCH_BYTES: usize = 64 << 10;
/// How long to wait for a line on a terminal, so that it appears before anything that handlers
/// print next.
const TERMINAL_PATIENCE: Duration = Duration::from_millis(20);

/// Formats the line that reports how many lines were dropped.
type Notice = dyn Fn(u64) -> String + Send + Sync;

/// Accepts lines; cheap to clone.
#[derive(Clone)]
pub(crate) struct Output(Arc<Shared>);

struct Shared {
    bytes_max: usize,
    is_terminal: bool,
    notice: Box<Notice>,
    queue: Mutex<Queue>,
    /// Signals that there is something to write.
    filled: Condvar,
    /// Signals that everything is written.
    emptied: Condvar,
}

#[derive(Default)]
struct Queue {
    lines: VecDeque<Vec<u8>>,
    /// The size of the lines that are queued or being written.
    bytes: usize,
    /// How many lines were dropped after the last queued one.
    dropped: u64,
    is_writing: bool,
}

impl Output {
    /// Starts the thread.
    ///
    /// # Errors
    /// Fails if the thread cannot be started.
    pub(crate) fn start(
        mut writer: impl Write + Send + 'static,
        bytes_max: usize,
        is_terminal: bool,
        notice: impl Fn(u64) -> String + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            bytes_max,
            is_terminal,
            notice: Box::new(notice),
            queue: Mutex::default(),
            filled: Condvar::new(),
            emptied: Condvar::new(),
        });
        let output = Self(Arc::clone(&shared));
        std::thread::Builder::new().name("log output".to_owned()).spawn(move || {
            loop {
                let batch = shared.next_batch();
                // A full disk or a closed terminal must not stop the operator.
                let _lost = writer.write_all(&batch).and_then(|()| writer.flush());
                shared.written(batch.len());
            }
        })?;
        Ok(output)
    }

    /// Waits until everything is written, at most for `patience`. Returns whether it is.
    pub(crate) fn wait(&self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        let mut queue = self.0.lock();
        while !queue.lines.is_empty() || queue.is_writing || queue.dropped > 0 {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let waiting = self.0.emptied.wait_timeout(queue, left);
            queue = waiting.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

/// Every call of `write` passes one or more whole lines.
impl Write for Output {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut queue = self.0.lock();
        let is_first = queue.bytes == 0;
        let bytes = queue.bytes + line.len();
        // After lines were dropped, half of the queue must be free before it accepts new ones.
        let bytes_max = if queue.dropped > 0 { self.0.bytes_max / 2 } else { self.0.bytes_max };
        if bytes > bytes_max && queue.bytes > 0 {
            queue.dropped += 1;
        } else {
            self.0.push_dropped_count(&mut queue);
            queue.bytes += line.len();
            queue.lines.push_back(line.to_vec());
        }
        drop(queue);
        self.0.filled.notify_one();
        if is_first && self.0.is_terminal {
            self.wait(TERMINAL_PATIENCE);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues the number of dropped lines in their place.
    fn push_dropped_count(&self, queue: &mut Queue) {
        if queue.dropped > 0 {
            let notice = (self.notice)(std::mem::take(&mut queue.dropped));
            queue.bytes += notice.len();
            queue.lines.push_back(notice.into_bytes());
        }
    }

    fn next_batch(&self) -> Vec<u8> {
        let mut queue = self.lock();
        while queue.lines.is_empty() && queue.dropped == 0 {
            queue = self.filled.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        if queue.lines.is_empty() {
            self.push_dropped_count(&mut queue);
        }
        queue.is_writing = true;
        let mut batch = queue.lines.pop_front().unwrap_or_default();
        while let Some(line) = queue.lines.front()
            && batch.len() + line.len() <= BATCH_BYTES
        {
            batch.extend_from_slice(line);
            queue.lines.pop_front();
        }
        batch
    }

    fn written(&self, bytes: usize) {
        let mut queue = self.lock();
        queue.bytes = queue.bytes.saturating_sub(bytes);
        queue.is_writing = false;
        if queue.lines.is_empty() && queue.dropped == 0 {
            self.emptied.notify_all();
        }
    }
}

#[cfg(test)]
mod tests;
