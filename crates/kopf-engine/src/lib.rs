//! Runs the decisions: stores, workers, timers, daemons, indexes, probes and shutdown.
//!
//! Handlers come in as [`kopf_core::Registry`], the cluster through `kopf-client`; the rules are
//! `kopf-core`'s. The folders follow the path of a change, see `ARCHITECTURE.md`: `watching`,
//! `reactor`, `cycle`, `attempt`, `write`. One reactor task owns all records; a cycle per busy
//! object runs the handlers and makes at most one write per (sub)resource.

mod admission;
mod attempt;
mod background;
pub mod callbacks;
mod children;
mod cycle;
mod leadership;
mod operator;
mod reactor;
mod serving;
mod watching;
mod write;

pub use admission::{AdmissionEndpoint, AdmissionError, Pem, ReviewError, ReviewGate};
pub use children::rehearsal::{Action, Proposal, Rehearsal};
pub use cycle::PAUSED_ANNOTATION;
pub use kopf_model::namespace::{InvalidNamespacePattern, NamespacePattern};
pub use leadership::{Leadership, LeadershipError};
pub use operator::activities::ActivityError;
pub use operator::clock::Clock;
pub use operator::engine::{Engine, EngineBuilder, EngineError, Running};
pub use operator::lines;
pub use operator::peering::person;
pub use serving::debug;
pub use serving::journal;
pub use serving::probes::{ProbesEndpoint, ProbesError};
pub use serving::status::{
    HandlerStatus, LATENCY_BOUNDS, LeadershipStatus, Status, StatusHandle, WatchStatus,
};
