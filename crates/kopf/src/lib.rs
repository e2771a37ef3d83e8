//! Kubernetes operators in a few lines of Rust.
//!
#![doc = include_str!("tour.md")]

// The attributes write paths into `::kopf`, also in the tests of this crate.
extern crate self as kopf;

#[cfg(doctest)]
mod book;
pub mod filter;
pub mod input;
pub mod lifecycle;
pub mod logging;
pub mod login;
mod operator;
#[cfg(feature = "cli")]
mod program;
mod running;
pub mod settings;
pub mod storage;
#[cfg(feature = "otlp")]
pub mod telemetry;

pub use kopf_core::handler::ErrorsMode;
pub use kopf_core::invoke::{Attempt, Call, StopReason};
pub use kopf_core::occasion::EventKind;
pub use kopf_core::{Reason, Settings};
pub use kopf_engine::{AdmissionEndpoint, Leadership, Pem, ProbesEndpoint, StatusHandle};
pub use kopf_handler::declare::{Declaration, Declare};
pub use kopf_handler::index::Index;
pub use kopf_handler::input::{
    Cause, Change, Conditions, Diff, DryRun, Headers, Input, Live, Log, Memo, New, Now, Old,
    Operation, Param, RawEvent, Recorder, Review, SharedMemo, State, Status, Stopped, This, User,
    Warnings,
};
pub use kopf_handler::{
    Annotations, Child, Children, Error, Fallible, Labels, Meta, Name, Namespace, Object, Owned,
    Owner, Patch, Result, Seconds, Spec, Uid, View, deny, permanent, temporary,
};
pub use kopf_handler::{closure, index, kind};
#[cfg(feature = "testing")]
pub use kopf_macros::test;
pub use kopf_macros::{daemon, desired, handlers, index, observe, subhandler, timer};
pub use kopf_model::condition::{Condition, ConditionStatus};
pub use kopf_model::resource::{Resource, Selector, SelectorName};
#[cfg(feature = "testing")]
pub use kopf_testing as testing;
pub use kube::Client;
pub use operator::{InvalidOperator, Operator};
#[cfg(feature = "cli")]
pub use program::Exit;
pub use running::{Config, RunError, Running, Stopper};

#[doc(hidden)]
pub use kopf_handler::private as __private;

/// Attributes that make handlers of functions.
pub mod on {
    pub use kopf_macros::{
        cleanup, convert, create, daemon, delete, event, field, index, login, mutate, probe,
        resume, startup, timer, update, validate,
    };
}

/// Everything that handlers usually name: `use kopf::prelude::*;`.
pub mod prelude {
    pub use crate::{
        Annotations, Attempt, Cause, Change, Child, Children, Client, Condition, ConditionStatus,
        Conditions, Diff, DryRun, Error, EventKind, Fallible, Headers, Index, Labels, Live, Log,
        Memo, Meta, Name, Namespace, New, Now, Object, Old, Operation, Owned, Owner, Param, Patch,
        RawEvent, Reason, Recorder, Result, Review, Seconds, Settings, SharedMemo, Spec, State,
        Status, Stopped, This, Uid, User, Warnings,
    };
    pub use serde_json::{Value, json};
}
