//! The only access to a cluster: login, discovery, list, watch with watchdog, patch, events.
//!
//! Bytes and classified errors on this side, HTTP on the other. Knows nothing about handlers.

mod access_review;
mod address;
mod cluster;
mod discovery;
mod error;
mod fence;
mod http1;
mod limiter;
mod login;
mod login_error;
mod marks;
mod outgoing;
mod patchable;
mod policy;
mod pool;
mod proxy;
mod reach;
mod reentry;
mod renewing;
mod schemas;
mod secrets;
mod service_account;
mod transport_error;
mod vault;
mod watch;
mod write;

pub use access_review::Subject;
pub use cluster::Cluster;
pub use discovery::{Discovered, GroupVersion};
pub use error::{Failure, RequestError};
pub use fence::{Fence, carry_fence, within_fence};
pub use limiter::Urgency;
pub use login::{Connection, ConnectionInfo, Credentials, DefaultLogin, Login, default_login};
pub use login_error::LoginError;
pub use patchable::Patchable;
pub use policy::Policy;
pub use reentry::carry_login;
pub use schemas::schema_hashes;
pub use service_account::ServiceAccount;
pub use watch::{
    Batch, ChangeKind, Collection, Observation, Part, Remembered, WatchLimits, Watcher,
};
pub use write::{PatchContent, Target};
