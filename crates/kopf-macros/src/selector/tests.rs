//! Versions in dotted names.

use super::is_version;

#[test]
fn versions_are_distinguished_from_groups() {
    for version in ["v1", "v12", "v1alpha1", "v2beta3"] {
        assert!(is_version(version), "{version}");
    }
    for group in ["apps", "v", "vault", "v1gamma1", "v1alpha", "alpha1", "kopf"] {
        assert!(!is_version(group), "{group}");
    }
}
