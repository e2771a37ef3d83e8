//! What the engine logs while a test runs.

use std::io::Write;
use std::sync::Arc;

use parking_lot::Mutex;

/// Everything that is logged by this thread.
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
    /// Warnings, until the guard is dropped.
    pub(crate) fn warnings() -> (Self, tracing::subscriber::DefaultGuard) {
        let logged = Self::default();
        let writer = logged.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_max_level(tracing::Level::WARN)
            .with_writer(move || writer.clone())
            .finish();
        (logged, tracing::subscriber::set_default(subscriber))
    }

    /// The first line with these words.
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
