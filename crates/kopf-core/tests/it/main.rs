//! The decisions as a whole: an operator lives through random histories of an object, replicas
//! through the faults of networks and clocks.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod elections;
mod histories;
mod sharing;
mod states;
mod unreliable;
