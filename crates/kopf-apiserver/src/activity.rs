//! Counts work in progress, so that `settle` knows when the controllers are idle.
//!
//! Controllers hold a [`Busy`] while they work or while they have work queued.

use std::sync::Arc;

use tokio::sync::watch;

/// The number of things in progress.
#[derive(Debug, Clone)]
pub(crate) struct Activity {
    count: Arc<watch::Sender<usize>>,
}

impl Default for Activity {
    fn default() -> Self {
        Self { count: Arc::new(watch::Sender::new(0)) }
    }
}

impl Activity {
    /// Marks something as in progress until the result is dropped.
    pub(crate) fn begin(&self) -> Busy {
        self.count.send_modify(|count| *count += 1);
        Busy { activity: self.clone() }
    }

    /// Whether nothing is in progress.
    pub(crate) fn is_idle(&self) -> bool {
        *self.count.borrow() == 0
    }

    /// Resolves when nothing is in progress.
    pub(crate) async fn idle(&self) {
        let mut count = self.count.subscribe();
        // The sender lives in `self`, so waiting cannot fail.
        let _ = count.wait_for(|count| *count == 0).await;
    }
}

/// Something in progress.
#[derive(Debug)]
pub(crate) struct Busy {
    activity: Activity,
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.activity.count.send_modify(|count| *count -= 1);
    }
}
