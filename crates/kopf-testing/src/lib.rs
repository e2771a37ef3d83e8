//! Engine, embedded server and a controlled clock in three lines.
//!
//! A [`World`] is a separate API server, forked in microseconds from a prepared one. Time is
//! virtual: waiting costs nothing, and the clocks of the server, the engine and the test agree.
//!
//! [`run`] gives a test its world, [`torture`] repeats it with crashes and disturbances,
//! [`least_privilege`] with each single right removed in turn, and [`Program::kill_test`] with a
//! process that is killed.

mod account;
mod clock;
mod difference;
mod disturbances;
mod error;
pub mod fault;
mod kill_test;
mod logs;
mod operator_handle;
mod posted;
mod prepared_server;
mod privilege;
mod program;
mod requests;
mod rest;
mod reviews;
mod scenario_result;
mod snapshot;
#[cfg(test)]
mod test_fixture;
mod torture;
mod transport;
mod world;

pub use clock::VirtualClock;
pub use error::WorldError;
pub use kill_test::{KillTest, kill_test};
pub use kopf_apiserver::{
    Fault, LoggedRequest, PodSelector, RequestMatcher, Stage, StatusError, Trouble, Verb,
};
pub use kopf_core::rights::{Right, Scope};
pub use kopf_engine::Running;
pub use logs::{LogLine, Logs};
pub use operator_handle::OperatorHandle;
pub use posted::PostedEvent;
pub use privilege::{least_privilege, with_derived_rights};
pub use program::{Program, RunningProgram};
pub use requests::Requests;
pub use scenario_result::ScenarioResult;
pub use snapshot::Snapshot;
pub use torture::{Torture, torture};
pub use world::dynamic::DynamicApi;
pub use world::objects::ObjectScope;
pub use world::{World, run};
