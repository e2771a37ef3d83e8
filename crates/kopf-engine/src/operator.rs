//! The operator as a whole: how it is built and run, its own phases, its peers, and what all parts of
//! it share.

pub(crate) mod activities;
pub(crate) mod clock;
pub(crate) mod engine;
pub mod lines;
pub(crate) mod memos;
pub(crate) mod peering;
pub(crate) mod poster;
pub(crate) mod runtime;
pub(crate) mod shared;
pub(crate) mod tuning;
