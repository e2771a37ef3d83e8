//! What goes wrong in a world.

use std::time::Duration;

/// What went wrong in a world.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum WorldError {
    /// The server refused.
    #[error("the server refused: {}", told(.0))]
    Refused(#[from] kube::Error),
    /// A condition did not come true.
    #[error("timed out waiting for {what} after {patience:?} of virtual time; last seen: {last}")]
    Never {
        /// The condition.
        what: String,
        /// How long it was waited for.
        patience: Duration,
        /// What was seen instead.
        last: String,
    },
    /// The server has no such resource.
    #[error("the server has no resource {0}")]
    Unknown(String),
}

/// The text itself: this is what `unwrap` prints, and what a test returns.
impl std::fmt::Debug for WorldError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, formatter)
    }
}

/// What the server said, with the code and the reason that tests can compare.
fn told(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => {
            format!("{} ({} {})", status.message.trim_end(), status.code, status.reason)
        }
        other => chain(other),
    }
}

/// An error with its causes, without those that it repeats itself.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = error.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        cause = error.source();
    }
    text
}
