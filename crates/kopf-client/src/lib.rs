//! The only door to a cluster: login, discovery, list, watch with watchdog, patch, events.
//!
//! Bytes and classified errors on this side, HTTP on the other. Knows nothing of handlers.

mod address;
mod cluster;
mod discovery;
mod error;
mod limiter;
mod login;
mod probing;
mod proxy;
mod reach;
mod reentry;
mod renewing;
mod secrets;
mod service_account;
mod vault;
mod watch;
mod write;

pub use cluster::{Cluster, Fence, Policy};
pub use discovery::{Discovered, GroupVersion};
pub use error::{Failure, RequestError};
pub use limiter::Urgency;
pub use login::{
    Connection, ConnectionInfo, Credentials, DefaultLogin, Login, LoginError, default_login,
};
pub use probing::Patchable;
pub use reentry::carry_login;
pub use service_account::ServiceAccount;
pub use watch::{ChangeKind, Collection, Observation, WatchLimits, Watcher};
pub use write::{PatchContent, Target};
