//! Kubernetes operators in a few lines of Rust.
//!
#![doc = include_str!("tour.md")]

// The attributes generate paths that start with `::kopf`, even in the tests of this crate.
extern crate self as kopf;

#[cfg(doctest)]
mod book;
pub mod children;
pub mod filter;
pub mod handler;
pub mod input;
pub mod lifecycle;
pub mod logging;
pub mod login;
mod operator;
#[cfg(feature = "cli")]
mod program;
pub mod resource;
mod running;
pub mod settings;
pub mod storage;
#[cfg(feature = "otlp")]
pub mod telemetry;

pub use kopf_core::Settings;
pub use kopf_engine::{
    AdmissionEndpoint, Leadership, MetricsEndpoint, Pem, ProbesEndpoint, StatusHandle,
};
pub use kopf_handler::{Error, Result, ResultExt, Seconds, deny, permanent, temporary};
pub use kopf_handler::{closure, index, kind};
pub use kopf_macros::handlers;
#[cfg(feature = "testing")]
pub use kopf_macros::test;
#[cfg(feature = "testing")]
pub use kopf_testing as testing;
pub use kube::Client;
pub use operator::{InvalidOperator, Operator};
#[cfg(feature = "cli")]
pub use program::Exit;
pub use running::{Config, RunError, Running, Stopper};
pub use tracing;

#[doc(hidden)]
pub use kopf_handler::private as __private;

/// Attributes that turn functions into handlers.
pub mod on {
    pub use kopf_macros::{
        cleanup, convert, create, daemon, delete, desired, event, field, index, login, mutate,
        observe, probe, resume, startup, subhandler, timer, update, validate,
    };
}

/// The names that most handlers use: `use kopf::prelude::*;`. All other parameters are in
/// [`input`].
pub mod prelude {
    pub use crate::input::{Change, Meta, Name, Patch, Spec, State, Status};
    pub use crate::{Client, Result, ResultExt, Seconds};
    pub use serde_json::{Value, json};
    pub use tracing;
}
