//! Runs the decisions: stores, workers, timers, daemons, indexes, probes and shutdown.
//!
//! Gets handlers from a [`kopf_core::Registry`] and accesses the cluster through `kopf-client`; the
//! rules are in `kopf-core`. The folders follow the path of a change, see `ARCHITECTURE.md`:
//! `watching`, `reactor`, `cycle`, `attempt`, `write`. One reactor task owns all records; a cycle
//! per busy object runs the handlers and makes at most one write per (sub)resource.

mod admission;
mod attempt;
mod background;
pub mod callbacks;
mod children;
mod clock;
mod cluster_view;
mod context;
mod cycle;
mod error_chain;
mod key;
mod leadership;
mod operator;
mod pool;
mod reactor;
mod reporting;
mod serving;
mod snapshots;
mod store;
mod watching;
mod write;

pub use admission::{AdmissionEndpoint, AdmissionError, ReviewError, ReviewGate};
pub use attempt::activities::ActivityError;
pub use children::rehearsal::{Action, Proposal, Rehearsal};
pub use clock::Clock;
pub use cycle::PAUSED_ANNOTATION;
pub use kopf_model::namespace::{InvalidNamespacePattern, NamespacePattern};
pub use leadership::{Leadership, LeadershipError};
pub use operator::engine::{Engine, EngineBuilder, EngineError};
pub use operator::peering::person;
pub use operator::running::Running;
pub use pool::SLOW_POLLS;
pub use reporting::journal;
pub use reporting::lines;
pub use reporting::log_sink::{LogRecord, LogSink};
pub use reporting::status::{
    EngineWatches, HandlerStatus, LATENCY_BOUNDS, LeadershipStatus, Status, StatusHandle,
    WAIT_BOUNDS, Waits, WatchStatus, WorkStatus,
};
pub use serving::debug;
pub use serving::probes::{ProbesEndpoint, ProbesError};
pub use serving::protected::{MetricsEndpoint, MetricsError};
pub use serving::tls::Pem;
