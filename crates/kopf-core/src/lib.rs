//! Decisions as plain functions: queue, cause, selection, progress, retry, plan; and the contract
//! with user code.
//!
//! No clock, no task, no network: the same inputs give the same plan. Time is passed in as `now`.

pub mod answers;
pub mod cause;
pub mod convert;
pub mod daemon;
pub mod definition;
pub mod desired;
pub mod election;
pub mod endpoint;
pub mod filter;
pub mod finalizer;
pub mod groups;
pub mod handler;
pub mod index;
pub mod lifecycle;
pub mod log_line;
pub mod logtext;
pub mod loops;
pub mod occasion;
pub mod peering;
pub mod plan;
pub mod progress;
pub mod pushdown;
pub mod queue;
pub mod registry;
pub mod retry;
pub mod retry_pacing;
pub mod rights;
pub mod select;
pub mod settings;
pub mod shards;
pub mod snapshot;
#[cfg(test)]
mod test_fixture;
pub mod throttle;
pub mod write;

pub use cause::{Seen, Snapshot};
pub use filter::{Filters, MetaFilter, ValueFilter};
pub use handler::invoke::{self, Call, HandlerError, Invocation, Invoke, Output, Returned};
pub use handler::{Handler, HandlerId, HandlerKind, Retrying};
pub use lifecycle::Lifecycle;
pub use log_line::Line;
pub use occasion::{Occasion, Reason, Subject};
pub use plan::{Agenda, Plan};
pub use progress::State;
pub use queue::{Moment, Queue, Ticket, Urgency};
pub use registry::{Registry, ResourceHandlers};
pub use retry::{Outcome, Verdict};
pub use settings::{Settings, Storages};
pub use write::Writer;
