//! The decisions as a whole: an operator experiences random histories of an object, and replicas
//! experience the faults of networks and clocks.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod elections;
mod histories;
mod sharing;
mod states;
mod unreliable;
