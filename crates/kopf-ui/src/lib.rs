//! The web UI of operators: its pages, the responses to their requests, and access control.
//!
//! Served on loopback by `kopf dev`, `kopf ui` and `run --embedded`, in the process of that
//! command. It queries the operator at its debug endpoint and the cluster at its API, and keeps
//! only what it shows: the samples of the last minutes and a small row per object. It does not
//! handle objects itself.
//!
//! The pages are built from `ui/` by `cargo xtask ui` and compiled into the program; a build of this
//! crate needs no Node.

mod actions;
mod api;
mod assets;
mod children;
mod cluster_state;
mod follower;
mod guard;
mod kinds;
mod object_state;
mod operator;
mod pods;
mod problems;
mod request;
mod response;
mod samples;
mod server;
mod shared;
mod snapshots;
mod stored_state;
mod tables;

pub use operator::{ObjectAnswer, Operator, OperatorError};
pub use server::{ServeError, Serving};

use std::net::SocketAddr;

use kopf_apiserver::Server;
use kopf_client::Cluster;

/// What the UI shows.
pub struct Ui {
    /// The operator, by its debug endpoint.
    pub operator: Operator,
    /// The cluster.
    pub cluster: Cluster,
    /// The embedded server, if the cluster is one; the UI can then control it.
    pub embedded: Option<Server>,
    /// The kubeconfig for the commands that the pages show, if it is not the default one.
    pub kubeconfig: Option<String>,
}

impl Ui {
    /// Serves the pages at a local address; port 0 picks a free one.
    ///
    /// # Errors
    /// Fails if it cannot listen on the address, or if the address is reachable from other
    /// machines.
    pub async fn serve(self, address: SocketAddr) -> Result<Serving, ServeError> {
        server::serve(self, address).await
    }
}
