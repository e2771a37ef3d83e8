//! How often upstream checks the metadata of an updated object of a kind.
//!
//! Pure. The generic code of upstream checks it once; most kinds check it again, some twice.

use crate::ResourceInfo;

/// The checks of metadata by the kind itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetadataChecks {
    /// How often the metadata is checked like that of a new object.
    pub as_new: usize,
    /// How often the metadata is compared with the old one.
    pub as_changed: usize,
}

impl MetadataChecks {
    /// The checks of a kind at an endpoint.
    pub fn of(resource: &ResourceInfo, subresource: &str) -> Self {
        if resource.is_custom() || !subresource.is_empty() {
            return Self { as_new: 0, as_changed: 1 };
        }
        let (as_new, as_changed) = match (resource.group.as_str(), resource.resource.as_str()) {
            ("policy", "poddisruptionbudgets")
            | ("", "limitranges")
            | (
                "flowcontrol.apiserver.k8s.io"
                | "admissionregistration.k8s.io"
                | "discovery.k8s.io",
                _,
            ) => (1, 0),
            ("", "persistentvolumes") | ("storage.k8s.io", "volumeattachments") => (2, 0),
            ("", "persistentvolumeclaims") | ("rbac.authorization.k8s.io", _) => (2, 1),
            (
                "",
                "configmaps"
                | "secrets"
                | "serviceaccounts"
                | "pods"
                | "services"
                | "nodes"
                | "namespaces"
                | "endpoints"
                | "replicationcontrollers",
            )
            | ("apps", "daemonsets" | "replicasets")
            | ("batch", "jobs")
            | ("networking.k8s.io", "networkpolicies" | "ipaddresses")
            | ("storage.k8s.io", "storageclasses" | "volumeattributesclasses")
            | ("node.k8s.io", _) => (1, 1),
            _ => (0, 1),
        };
        Self { as_new, as_changed }
    }
}
