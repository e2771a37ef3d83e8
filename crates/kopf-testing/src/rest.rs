//! Requests to the server of a world, as JSON.

use http::{Method, Request};
use kopf_model::Resource;
use kube::Client;
use serde_json::Value;

use crate::error::WorldError;

/// The group and version as in manifests.
pub(crate) fn group_version_of(resource: &Resource) -> String {
    match resource.group.as_str() {
        "" => resource.version.clone(),
        group => format!("{group}/{}", resource.version),
    }
}

/// The path of an object, or of a collection if there is no name.
pub(crate) fn path(group_version: &str, namespace: &str, plural: &str, name: &str) -> String {
    let root = if group_version.contains('/') { "/apis" } else { "/api" };
    let place = match namespace {
        "" => String::new(),
        namespace => format!("/namespaces/{namespace}"),
    };
    let slash = if name.is_empty() { "" } else { "/" };
    format!("{root}/{group_version}{place}/{plural}{slash}{name}")
}

/// Sends a request with a body, unless the body is null.
pub(crate) async fn send(
    client: &Client,
    method: Method,
    path: &str,
    content_type: &str,
    body: &Value,
) -> Result<Value, WorldError> {
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", content_type)
        .body(body)
        .map_err(kube::Error::HttpError)?;
    Ok(client.request::<Value>(request).await?)
}
