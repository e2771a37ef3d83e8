//! The operator as a whole: how it is built and run, and its peers.

mod electing;
pub(crate) mod engine;
mod late_handlers;
pub(crate) mod peering;
