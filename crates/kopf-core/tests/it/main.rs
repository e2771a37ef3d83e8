//! The decisions as a whole: an operator lives through random histories of an object.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod histories;
mod states;
