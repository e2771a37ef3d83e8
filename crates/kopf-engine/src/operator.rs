//! The operator as a whole: building, running, and peering.

mod electing;
pub(crate) mod engine;
mod late_handlers;
pub(crate) mod peering;
pub(crate) mod running;
