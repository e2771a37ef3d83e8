//! Fields that an endpoint ignores, so that writing them through it gains no ownership.

use super::Manager;
use super::field_set::FieldSet;
use crate::shape::Shape;

/// The fields that the endpoint of this write ignores, with everything below them.
pub(super) fn ignored_fields(manager: &Manager<'_>) -> FieldSet {
    let is_built_in = Shape::of(manager.api_version, manager.kind).is_some();
    match (manager.subresource, manager.kind) {
        ("", "CertificateSigningRequest") if is_built_in => {
            FieldSet::of_fields(&[&["spec"], &["status"]])
        }
        ("", _) if manager.has_status => FieldSet::of_fields(&[&["status"]]),
        ("", _) => FieldSet::default(),
        ("status", _) if !is_built_in => FieldSet::of_fields(&[&["spec"]]),
        ("status", "Deployment") => FieldSet::of_fields(&[&["spec"], &["metadata", "labels"]]),
        ("status", "Pod") => FieldSet::of_fields(&[
            &["spec"],
            &["metadata", "deletionTimestamp"],
            &["metadata", "ownerReferences"],
        ]),
        (
            "status",
            "APIService"
            | "CustomResourceDefinition"
            | "FlowSchema"
            | "PriorityLevelConfiguration"
            | "VolumeAttachment"
            | "ValidatingAdmissionPolicy",
        ) => FieldSet::of_fields(&[&["metadata"], &["spec"]]),
        ("status", "CertificateSigningRequest") => {
            FieldSet::of_fields(&[&["spec"], &["status", "conditions"]])
        }
        ("approval", _) => FieldSet::of_fields(&[&["spec"], &["status", "certificate"]]),
        ("status", _) => FieldSet::of_fields(&[&["spec"]]),
        ("finalize", _) => FieldSet::of_fields(&[&["status"]]),
        _ => FieldSet::default(),
    }
}
