//! Errors of a world.

use std::time::Duration;

/// An error of a world.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum WorldError {
    /// The server rejected a request.
    #[error("the server refused: {}", told(.0))]
    Refused(#[from] kube::Error),
    /// A condition was not met in time.
    #[error("timed out waiting for {what} after {patience:?} of virtual time; last seen: {last}")]
    Never {
        /// The condition.
        what: String,
        /// How long the test waited for it.
        patience: Duration,
        /// The last observed state.
        last: String,
    },
    /// The server has no such resource.
    #[error("the server has no resource {0}")]
    Unknown(String),
}

/// The message itself: this is what `unwrap` prints and what a test returns.
impl std::fmt::Debug for WorldError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, formatter)
    }
}

/// The message of the server, with the code and the reason, which tests can compare.
fn told(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => {
            format!("{} ({} {})", status.message.trim_end(), status.code, status.reason)
        }
        other => chain(other),
    }
}

/// An error with its causes, without those that its message already contains.
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
