//! Asks the server whether it accepts patches of a resource if discovery does not say so.
//!
//! While a CustomResourceDefinition is terminating, discovery does not list `patch`, although the
//! server accepts patches until the last object is gone. Only the response to a patch is reliable.

use std::time::Duration;

use bytes::Bytes;
use http::Method;
use kopf_model::Resource;

use crate::address;
use crate::cluster::Cluster;
use crate::error::Failure;
use crate::outgoing::Outgoing;

/// The timeout; discovery waits for the response.
const PATIENCE: Duration = Duration::from_secs(3);

/// The object to patch. It need not exist, and is not changed if it does.
const NAME: &str = "kopf-patch-probe";

/// Whether a resource can be patched, according to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patchable {
    /// The server supports patches of this resource; it may still reject a single one.
    Yes,
    /// The server does not support patches of this resource.
    No,
    /// There was no relevant response.
    Unknown,
}

impl Patchable {
    /// Sends an empty patch of an object that usually does not exist, as a dry run.
    ///
    /// Needs no other rights than those for real patches. An operator without them gets a `Yes`,
    /// and notices the missing right when it patches.
    pub async fn ask(cluster: &Cluster, resource: &Resource, namespace: &str) -> Self {
        let mut path = address::object(resource, Some(namespace), NAME, None);
        address::push_query(&mut path, "dryRun", "All");
        let outgoing = Outgoing {
            method: Method::PATCH,
            content_type: Some("application/merge-patch+json"),
            body: Bytes::from_static(b"{}"),
            ..Outgoing::get(path)
        };
        match tokio::time::timeout(PATIENCE, cluster.fetch_at_once(&outgoing)).await {
            Ok(Ok(_)) => Self::Yes,
            Ok(Err(error)) => Self::of(error.failure),
            Err(_) => Self::Unknown,
        }
    }

    fn of(failure: Failure) -> Self {
        match failure {
            Failure::Client(405) | Failure::Server(501) => Self::No,
            // Neither says anything about the resource.
            Failure::Unauthorized | Failure::Login | Failure::Malformed => Self::Unknown,
            transient if transient.is_transient() => Self::Unknown,
            _ => Self::Yes,
        }
    }
}

#[cfg(test)]
mod tests;
