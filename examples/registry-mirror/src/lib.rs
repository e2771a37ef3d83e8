//! What you learn: desired children; five objects per mirror from a resource of two fields.
mod children;
mod mirror;
#[cfg(test)]
mod tests;

use k8s_openapi::api::apps::v1::{DaemonSet, StatefulSet};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Service};
use kopf::prelude::*;

use mirror::RegistryMirror;

/// The registry itself, its disk, the way to it, and the port on every node that pods pull from.
#[kopf::desired(RegistryMirror, children(Service, StatefulSet, DaemonSet, PersistentVolumeClaim))]
fn mirrored(mirror: &RegistryMirror) -> Result<Vec<Child>> {
    let upstream =
        mirror.spec.upstream().map_err(|problem| kopf::permanent(problem.to_string()))?;
    Ok(vec![
        children::disk(mirror).into(),
        children::registry_service(mirror).into(),
        children::registry(mirror, upstream).into(),
        children::node_service(mirror).into(),
        children::node_proxy(mirror).into(),
    ])
}

fn operator() -> kopf::Operator {
    kopf::operator!("registry-mirror", [mirrored])
}

fn main() -> kopf::Exit {
    operator().main()
}
