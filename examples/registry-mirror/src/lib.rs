//! What you learn: desired children; five objects per mirror from a resource of two fields.
mod children;
mod mirror;

use k8s_openapi::api::apps::v1::{DaemonSet, StatefulSet};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Service};
use kopf::children::Child;
use kopf::prelude::*;

pub use mirror::{InvalidUpstream, RegistryMirror, RegistryMirrorSpec, RegistryMirrorStatus};

/// The registry itself, its volume, its Service, and the port on every node for pulling images.
#[kopf::on::desired(
    RegistryMirror,
    children(Service, StatefulSet, DaemonSet, PersistentVolumeClaim)
)]
pub fn mirrored(mirror: &RegistryMirror) -> Result<Vec<Child>> {
    let upstream = mirror.spec.upstream().permanent()?;
    Ok(vec![
        children::disk(mirror).into(),
        children::registry_service(mirror).into(),
        children::registry(mirror, upstream).into(),
        children::node_service(mirror).into(),
        children::node_proxy(mirror).into(),
    ])
}

/// The operator.
pub fn operator() -> kopf::Operator {
    kopf::operator!("registry-mirror", [mirrored])
}
