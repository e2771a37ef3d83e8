//! Engine, embedded server and a controlled clock in three lines.
//!
//! A [`World`] is an API server of its own, forked in microseconds from a prepared one. Time is
//! virtual: waiting costs nothing, and the clocks of the server, the engine and the test agree.

mod clock;
mod world;

pub use clock::VirtualClock;
pub use kopf_apiserver::{
    Fault, LoggedRequest, PodSelector, RequestMatcher, Stage, StatusError, Trouble, Verb,
};
pub use kopf_engine::Running;
pub use world::{World, WorldError, run};
