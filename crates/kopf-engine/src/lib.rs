//! Runs the decisions: stores, workers, timers, daemons, indexes, probes and shutdown.
//!
//! Handlers come in as [`kopf_core::Registry`], the cluster through `kopf-client`; the rules are
//! `kopf-core`'s. One reactor task owns all records; a cycle per busy object runs the handlers and
//! makes at most one write per (sub)resource.

mod activities;
mod admission;
mod attempt;
mod background;
pub mod callbacks;
mod children;
mod clock;
mod cycle;
mod engine;
mod insights;
pub mod journal;
mod leadership;
pub mod lines;
mod loops;
mod lost;
mod memory;
mod memos;
mod message;
mod metrics;
mod narrowing;
mod pass;
mod peering;
mod ports;
mod poster;
mod probes;
mod reactor;
mod rehearsal;
mod runtime;
mod shared;
mod status;
mod stopper;
mod store;
mod timers;
mod tuning;
mod write;

pub use activities::ActivityError;
pub use admission::{AdmissionEndpoint, AdmissionError, Pem, ReviewError, ReviewGate};
pub use clock::Clock;
pub use engine::{Engine, EngineBuilder, EngineError, Running};
pub use kopf_model::namespace::{InvalidNamespacePattern, NamespacePattern};
pub use leadership::{Leadership, LeadershipError};
pub use peering::person;
pub use probes::{ProbesEndpoint, ProbesError};
pub use rehearsal::{Action, Proposal, Rehearsal};
pub use status::{
    HandlerStatus, LATENCY_BOUNDS, LeadershipStatus, Status, StatusHandle, WatchStatus,
};
