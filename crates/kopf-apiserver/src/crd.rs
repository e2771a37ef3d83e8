//! Custom resource definitions: converts CRD objects to served resources.
//!
//! Runs synchronously after every write of a CRD, so that a CRD is served before its creator gets a
//! response. Independent of HTTP; `schema` compiles the schemas.

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
/// The finalizer that keeps a CRD until its objects are gone.
pub(crate) const CLEANUP_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";
