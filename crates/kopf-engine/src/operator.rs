//! The operator as a whole: building, running, and peering.

pub(crate) mod engine;
mod late_handlers;
mod leader_tasks;
pub(crate) mod peering;
pub(crate) mod running;
