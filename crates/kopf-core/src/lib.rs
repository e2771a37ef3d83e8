//! Decisions as plain functions: queue, cause, selection, progress, retry, plan; and the contract
//! with user code.
//!
//! No clock, no task, no network: the same inputs give the same plan. Time comes in as `now`.

pub mod filter;
pub mod handler;
pub mod invoke;
pub mod occasion;
pub mod settings;

pub use filter::{Filters, MetaFilter, ValueFilter};
pub use handler::{Handler, HandlerId, HandlerKind, Retrying};
pub use invoke::{Call, HandlerError, Invocation, Invoke, Output, Returned};
pub use occasion::{Occasion, Reason, Subject};
pub use settings::Settings;
