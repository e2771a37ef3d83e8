//! The kubeconfig of an embedded server, which also contains the address of its operator.
//!
//! The address is in an extension of the cluster's entry, so that `kopf explain` finds the operator
//! with the same file with which clients find the server.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use kube::config::Kubeconfig;
use serde_json::{Value, json};

use crate::failure::Failure;

/// The name of the extension.
const OPERATOR: &str = "kopf.dev/operator";

/// Only the owner may read a file with a token.
const MODE: u32 = 0o600;

/// Writes a kubeconfig atomically: if the file exists, it is complete.
///
/// # Errors
/// Fails if the file cannot be written.
pub fn write(path: &Path, text: &str, operator: Option<SocketAddr>) -> Result<(), Failure> {
    let staging = path.with_extension("kopf-new");
    let write = || -> Result<()> {
        let text = with_operator(text, operator)?;
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(MODE).open(&staging)?;
        file.write_all(text.as_bytes())?;
        Ok(std::fs::rename(&staging, path)?)
    };
    write()
        .with_context(|| format!("could not write the kubeconfig `{}`", path.display()))
        .map_err(|error| Failure::usage(error).hint("give a writable path with `--kubeconfig`"))
}

fn with_operator(text: &str, operator: Option<SocketAddr>) -> Result<String> {
    let Some(address) = operator else { return Ok(text.to_owned()) };
    let mut config: Value = serde_norway::from_str(text)?;
    let extension = json!({"name": OPERATOR, "extension": {"url": format!("http://{address}")}});
    config["clusters"][0]["cluster"]["extensions"] = json!([extension]);
    Ok(serde_norway::to_string(&config)?)
}

/// The address of the operator of a cluster, if the kubeconfig has one.
#[must_use]
pub fn operator_url(config: &Kubeconfig, context: Option<&str>) -> Option<String> {
    let context = context.or(config.current_context.as_deref())?;
    let context = config.contexts.iter().find(|it| it.name == context)?.context.as_ref()?;
    let cluster = config.clusters.iter().find(|it| it.name == context.cluster)?;
    let extensions = cluster.cluster.as_ref()?.extensions.as_ref()?;
    let extension = extensions.iter().find(|it| it.name == OPERATOR)?;
    Some(extension.extension.get("url")?.as_str()?.to_owned())
}

#[cfg(test)]
mod tests;
