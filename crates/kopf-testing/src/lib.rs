//! Engine, embedded server and a controlled clock in three lines.
//!
//! A [`World`] is an API server of its own, forked in microseconds from a prepared one. Time is
//! virtual: waiting costs nothing, and the clocks of the server, the engine and the test agree.
//!
//! [`run`] gives a test its world, [`torture`] repeats it with crashes and disturbances,
//! [`least_privilege`] with every single right taken away in turn, and [`Program::killed`] with a
//! process that is killed.

mod clock;
mod difference;
mod door;
mod ending;
pub mod fault;
#[cfg(test)]
mod fixture;
mod ground;
mod killing;
mod logs;
mod objects;
mod operated;
mod posted;
mod privilege;
mod program;
mod requests;
mod reviews;
mod snapshot;
mod torture;
mod untyped;
mod world;

pub use clock::VirtualClock;
pub use ending::Ending;
pub use killing::{Killing, killed};
pub use kopf_apiserver::{
    Fault, LoggedRequest, PodSelector, RequestMatcher, Stage, StatusError, Trouble, Verb,
};
pub use kopf_core::rights::{Right, Scope};
pub use kopf_engine::Running;
pub use logs::{LogLine, Logs};
pub use objects::Place;
pub use operated::Operated;
pub use posted::PostedEvent;
pub use privilege::{guarded, least_privilege};
pub use program::{Launched, Program};
pub use requests::Requests;
pub use snapshot::Snapshot;
pub use torture::{Torture, torture};
pub use untyped::Untyped;
pub use world::{World, WorldError, run};
