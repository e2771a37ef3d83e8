//! Handlers as values, declared by attributes or closures.

pub use kopf_core::handler::ErrorsMode;
pub use kopf_handler::declare::{Declaration, HandlerSet};
