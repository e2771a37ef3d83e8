//! The patch types that are pure functions on trees: JSON patch, merge patch, strategic merge.
//!
//! Responsible for the errors of patches and their responses. Does not know requests, kinds or
//! storage: the REST code passes in decoded bodies. Server-side apply is in `apply`.

pub mod json;
pub mod merge;
pub mod strategic;

use crate::StatusError;
use crate::status_error::Details;

/// Why a patch cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// The patch itself is malformed.
    #[error("{0}")]
    Malformed(String),
    /// A well-formed patch does not fit the object. Clients never see the text.
    #[error("{0}")]
    Rejected(String),
    /// The patch would do more work than one request is allowed to.
    #[error("Request entity too large: {0}")]
    TooLarge(String),
    /// The real server has no status for this problem and answers 500 with the bare text.
    #[error("{0}")]
    Unclassified(String),
}

/// The message about a failed `test` operation.
pub(crate) const FAILED_TEST: &str = "the test failed";

impl PatchError {
    /// Whether a `test` operation of the patch failed.
    pub fn is_failed_test(&self) -> bool {
        matches!(self, Self::Rejected(text) if text.starts_with(FAILED_TEST))
    }
}

impl From<PatchError> for StatusError {
    fn from(error: PatchError) -> Self {
        match error {
            PatchError::Malformed(text) => Self::bad_request(text),
            PatchError::Rejected(_) => {
                let text = "the server rejected our request due to an error in our request";
                let mut status = Self::new(422, "Invalid", text);
                status.details = Some(Box::new(Details::default()));
                status
            }
            PatchError::TooLarge(_) => Self::new(413, "RequestEntityTooLarge", error.to_string()),
            PatchError::Unclassified(text) => Self::new(500, "", text),
        }
    }
}
