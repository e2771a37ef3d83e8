//! Handlers as values: what attributes and closures declare.

pub use kopf_core::handler::ErrorsMode;
pub use kopf_handler::declare::{Declaration, HandlerSet};
