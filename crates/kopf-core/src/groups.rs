//! Distinguishes the API groups built into Kubernetes from those that can only come from
//! definitions.
//!
//! Pure. The suffix `.k8s.io` alone is not enough: many community projects define custom resources
//! there, such as `gateway.networking.k8s.io`. So the built-in groups are listed individually.

/// The groups with a dot that are built into API servers, including those of old versions.
///
/// Groups without a dot are always built in: servers reject definitions there.
const BUILT_IN: [&str; 20] = [
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "auditregistration.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "internal.apiserver.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "rbac.authorization.k8s.io",
    "resource.k8s.io",
    "scheduling.k8s.io",
    "settings.k8s.io",
    "storage.k8s.io",
    "storagemigration.k8s.io",
];

/// Whether a group may consist of custom resources.
///
/// ```
/// use kopf_core::groups::is_custom;
///
/// assert!(is_custom("example.com") && is_custom("gateway.networking.k8s.io"));
/// assert!(!is_custom("networking.k8s.io") && !is_custom("apps") && !is_custom(""));
/// ```
#[must_use]
pub fn is_custom(group: &str) -> bool {
    group.contains('.') && !BUILT_IN.contains(&group)
}

/// Whether definitions in a group need the annotation about their API approval.
#[must_use]
pub fn is_protected(group: &str) -> bool {
    ["k8s.io", "kubernetes.io"].iter().any(|domain| {
        group.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    })
}

#[cfg(test)]
mod tests;
