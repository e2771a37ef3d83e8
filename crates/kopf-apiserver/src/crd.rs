//! Custom resource definitions: from a CRD object to served resources and back.
//!
//! Runs synchronously after every write of a CRD, so that an accepted CRD is served before its
//! creator gets an answer. Refuses to know HTTP; schemas are compiled in `schema`.

mod lifecycle;
pub(crate) mod names;
mod served;
pub(crate) mod validation;

pub(crate) use lifecycle::{
    begin_deletion, fill_defaults, initial_status, note_storage_version, set_condition,
};
pub(crate) use served::{has_condition, refresh};

/// The table of CRDs.
pub(crate) const TABLE: &str = "customresourcedefinitions.apiextensions.k8s.io";
/// The finalizer that holds a CRD until its objects are gone.
pub(crate) const CLEANUP_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";
