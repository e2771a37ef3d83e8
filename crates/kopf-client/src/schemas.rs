//! The versions of the schemas of the server's group versions.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::cluster::Cluster;
use crate::error::{Failure, RequestError};
use crate::outgoing::Outgoing;

const INDEX: &str = "/openapi/v3";

#[derive(Deserialize)]
struct Index {
    paths: BTreeMap<String, Document>,
}

#[derive(Deserialize)]
struct Document {
    #[serde(rename = "serverRelativeURL")]
    url: String,
}

/// The hashes of the schemas by group version (`api/v1`, `apis/apps/v1`). A hash changes when the
/// schema of any resource in the group version changes.
///
/// # Errors
/// Fails if the server does not list its schemas.
pub async fn schema_hashes(cluster: &Cluster) -> Result<BTreeMap<String, String>, RequestError> {
    let outgoing = Outgoing::get(INDEX.to_owned());
    let bytes = cluster.fetch(&outgoing).await?;
    let index: Index = serde_json::from_slice(&bytes).map_err(|error| {
        let message = "the index of schemas could not be read".to_owned();
        let mut failed =
            RequestError::local(Failure::Malformed, &http::Method::GET, INDEX, message);
        failed.source = Some(Box::new(error));
        failed
    })?;
    let hash = |url: &str| url.split_once("hash=").map(|(_, hash)| hash.to_owned());
    let paths = index.paths.into_iter();
    Ok(paths.filter_map(|(path, document)| Some((path, hash(&document.url)?))).collect())
}
