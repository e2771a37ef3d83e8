//! What the engine logs while a test runs.

use std::io::Write;
use std::sync::{Arc, LazyLock};

use parking_lot::Mutex;
use tracing::Dispatch;
use tracing::subscriber::NoSubscriber;

/// Subscribers that accept nothing.
///
/// If there is only one subscriber, `tracing` asks the subscriber of the first thread that reaches
/// a line whether the line is enabled, and caches this for all threads: other tests have none, and
/// would silence ours. If there are several, it asks all of them.
static OTHERS: LazyLock<[Dispatch; 2]> =
    LazyLock::new(|| [(); 2].map(|()| Dispatch::new(NoSubscriber::default())));

/// Everything that this thread logs.
#[derive(Clone, Default)]
pub(crate) struct Logged(Arc<Mutex<Vec<u8>>>);

impl Write for Logged {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Logged {
    /// Captures warnings, until the guard is dropped.
    pub(crate) fn warnings() -> (Self, tracing::subscriber::DefaultGuard) {
        Self::from(tracing::Level::WARN)
    }

    /// Captures all lines about objects and the operator, until the guard is dropped.
    pub(crate) fn everything() -> (Self, tracing::subscriber::DefaultGuard) {
        Self::from(tracing::Level::DEBUG)
    }

    fn from(level: tracing::Level) -> (Self, tracing::subscriber::DefaultGuard) {
        LazyLock::force(&OTHERS);
        let logged = Self::default();
        let writer = logged.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_max_level(level)
            .with_writer(move || writer.clone())
            .finish();
        (logged, tracing::subscriber::set_default(subscriber))
    }

    /// The first line that contains these words.
    pub(crate) fn line_with(&self, words: &str) -> String {
        let text = String::from_utf8(self.0.lock().clone()).expect("text");
        let line = text.lines().find(|line| line.contains(words));
        line.unwrap_or_else(|| panic!("no line with {words:?} in:\n{text}")).to_owned()
    }

    pub(crate) fn count(&self, words: &str) -> usize {
        let text = String::from_utf8(self.0.lock().clone()).expect("text");
        text.lines().filter(|line| line.contains(words)).count()
    }
}
