//! The children of a mirror as typed objects; the framework fills in the common fields.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{DaemonSet, DaemonSetSpec, StatefulSet, StatefulSetSpec};
use k8s_openapi::api::core::v1::{
    Container, ContainerPort, EnvVar, PersistentVolumeClaim, PersistentVolumeClaimSpec,
    PersistentVolumeClaimVolumeSource, PodSpec, PodTemplateSpec, Service, ServicePort, ServiceSpec,
    Volume, VolumeMount, VolumeResourceRequirements,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use kube::ResourceExt as _;

use crate::mirror::RegistryMirror;

/// The port of the registry.
const PORT: i32 = 5000;

/// The volume for the images.
pub(crate) fn disk(mirror: &RegistryMirror) -> PersistentVolumeClaim {
    let storage = Quantity(mirror.spec.storage.clone());
    PersistentVolumeClaim {
        metadata: named(mirror, "images", "registry"),
        spec: Some(PersistentVolumeClaimSpec {
            access_modes: Some(vec!["ReadWriteOnce".into()]),
            resources: Some(VolumeResourceRequirements {
                requests: Some(BTreeMap::from([("storage".into(), storage)])),
                ..VolumeResourceRequirements::default()
            }),
            ..PersistentVolumeClaimSpec::default()
        }),
        ..PersistentVolumeClaim::default()
    }
}

/// The registry, as a pull-through cache of its upstream.
pub(crate) fn registry(mirror: &RegistryMirror, upstream: &str) -> StatefulSet {
    let container = Container {
        name: "registry".into(),
        image: Some("registry:2".into()),
        env: Some(vec![env("REGISTRY_PROXY_REMOTEURL", upstream)]),
        ports: Some(vec![port()]),
        volume_mounts: Some(vec![VolumeMount {
            name: "images".into(),
            mount_path: "/var/lib/registry".into(),
            ..VolumeMount::default()
        }]),
        ..Container::default()
    };
    let volume = Volume {
        name: "images".into(),
        persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
            claim_name: format!("{}-images", mirror.name_any()),
            read_only: None,
        }),
        ..Volume::default()
    };
    StatefulSet {
        metadata: named(mirror, "registry", "registry"),
        spec: Some(StatefulSetSpec {
            replicas: Some(1),
            service_name: Some(format!("{}-registry", mirror.name_any())),
            selector: selector(mirror, "registry"),
            template: template(mirror, "registry", container, vec![volume]),
            ..StatefulSetSpec::default()
        }),
        ..StatefulSet::default()
    }
}

/// The Service of the registry inside the cluster.
pub(crate) fn registry_service(mirror: &RegistryMirror) -> Service {
    service(mirror, "registry", "registry")
}

/// The Service of the proxies.
pub(crate) fn node_service(mirror: &RegistryMirror) -> Service {
    service(mirror, "node", "node")
}

/// A port on every node, since the container runtime does not use the cluster network.
pub(crate) fn node_proxy(mirror: &RegistryMirror) -> DaemonSet {
    let backend = format!("{}-registry:{PORT}", mirror.name_any());
    let container = Container {
        name: "proxy".into(),
        image: Some("alpine/socat:1.8.0.0".into()),
        args: Some(vec![format!("TCP-LISTEN:{PORT},fork"), format!("TCP:{backend}")]),
        ports: Some(vec![port()]),
        ..Container::default()
    };
    DaemonSet {
        metadata: named(mirror, "node", "node"),
        spec: Some(DaemonSetSpec {
            selector: selector(mirror, "node"),
            template: template(mirror, "node", container, Vec::new()),
            ..DaemonSetSpec::default()
        }),
        ..DaemonSet::default()
    }
}

fn service(mirror: &RegistryMirror, suffix: &str, part: &str) -> Service {
    Service {
        metadata: named(mirror, suffix, part),
        spec: Some(ServiceSpec {
            selector: Some(labels(mirror, part)),
            ports: Some(vec![ServicePort { port: PORT, ..ServicePort::default() }]),
            ..ServiceSpec::default()
        }),
        ..Service::default()
    }
}

fn named(mirror: &RegistryMirror, suffix: &str, part: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(format!("{}-{suffix}", mirror.name_any())),
        labels: Some(labels(mirror, part)),
        ..ObjectMeta::default()
    }
}

fn labels(mirror: &RegistryMirror, part: &str) -> BTreeMap<String, String> {
    let pairs = [
        ("app.kubernetes.io/name", "registry-mirror".to_owned()),
        ("app.kubernetes.io/instance", mirror.name_any()),
        ("app.kubernetes.io/component", part.to_owned()),
    ];
    pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

fn selector(mirror: &RegistryMirror, part: &str) -> LabelSelector {
    LabelSelector { match_labels: Some(labels(mirror, part)), ..LabelSelector::default() }
}

fn template(
    mirror: &RegistryMirror,
    part: &str,
    container: Container,
    volumes: Vec<Volume>,
) -> PodTemplateSpec {
    PodTemplateSpec {
        metadata: Some(ObjectMeta { labels: Some(labels(mirror, part)), ..ObjectMeta::default() }),
        spec: Some(PodSpec {
            containers: vec![container],
            volumes: Some(volumes).filter(|volumes| !volumes.is_empty()),
            ..PodSpec::default()
        }),
    }
}

fn env(name: &str, value: &str) -> EnvVar {
    EnvVar { name: name.into(), value: Some(value.into()), ..EnvVar::default() }
}

fn port() -> ContainerPort {
    ContainerPort { container_port: PORT, ..ContainerPort::default() }
}
