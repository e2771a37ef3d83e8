//! One record per built-in kind that is special to the verbs; kinds without one are plain.
//!
//! The verbs ask the record instead of comparing names.

mod cluster;
mod core;
mod workloads;

use std::collections::HashMap;
use std::sync::LazyLock;

use serde_json::Value;

use crate::{KindContext, ResourceInfo};

/// What is special about the objects of one kind.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    /// The API group, empty for the core group.
    pub group: &'static str,
    /// The plural name.
    pub resource: &'static str,
    /// A PUT of an object that does not exist creates it.
    pub creates_on_update: bool,
    /// A PUT must name the version that it replaces.
    pub needs_version: bool,
    /// How `metadata.generation` counts.
    pub generation: Generation,
    /// A new object may come with a status although `/status` exists.
    pub keeps_status_on_create: bool,
    /// What the built-in admission plugins change of a new object.
    pub(crate) admit: Option<fn(&KindContext<'_>, &mut Value)>,
    /// Resets and fills what clients may not choose on creation.
    pub(crate) prepare_create: Option<fn(&KindContext<'_>, &mut Value)>,
    /// Updates report what is wrong with the spec twice, as upstream checks it twice.
    pub(crate) is_checked_twice: bool,
    /// Carries over what an update may not change silently.
    pub(crate) prepare_update: Option<fn(&KindContext<'_>, &mut Value, &Value)>,
    /// What a write to `/status` may change of the metadata.
    pub status_metadata: StatusMetadata,
    /// The dependents of a deleted object stay, unless the request says otherwise.
    pub orphans_dependents: bool,
    /// Deleted objects get time to end.
    pub ends_gracefully: bool,
    /// `spec.finalizers` hold a deleted object.
    pub has_spec_finalizers: bool,
    /// The objects that may not be deleted.
    pub protection: Option<Protection>,
    /// A deletion answers with the object instead of a `Status`.
    pub returns_deleted: bool,
    /// The warning about deletions that do not say what becomes of the dependents.
    pub deletion_warning: Option<&'static str>,
    /// The warning that every answer carries.
    pub deprecation: Option<&'static str>,
    /// The fields besides name and namespace that objects can be selected by; none means that the
    /// kind registers no conversion.
    pub selectable_fields: Option<&'static [&'static str]>,
}

/// Objects that may not be deleted.
#[derive(Debug, Clone, Copy)]
pub struct Protection {
    /// Their names.
    pub names: &'static [&'static str],
    /// Why not.
    pub reason: &'static str,
}

/// How `metadata.generation` counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generation {
    /// There is none.
    Absent,
    /// It is 1, and no change counts.
    Fixed,
    /// It counts the changes of everything but metadata and status.
    CountsChanges,
}

/// What a write to `/status` may change of the metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusMetadata {
    /// As much as any write.
    Given,
    /// As much as any write, but for this field.
    GivenBut(&'static str),
    /// Nothing.
    Stored,
}

/// A built-in kind without peculiarities.
const PLAIN: Kind = Kind {
    group: "",
    resource: "",
    creates_on_update: false,
    needs_version: false,
    generation: Generation::Absent,
    keeps_status_on_create: false,
    admit: None,
    prepare_create: None,
    is_checked_twice: false,
    prepare_update: None,
    status_metadata: StatusMetadata::Given,
    orphans_dependents: false,
    ends_gracefully: false,
    has_spec_finalizers: false,
    protection: None,
    returns_deleted: false,
    deletion_warning: None,
    deprecation: None,
    selectable_fields: None,
};

/// Custom resources.
const CUSTOM: Kind = Kind { needs_version: true, generation: Generation::CountsChanges, ..PLAIN };

impl Kind {
    /// The kind of a resource.
    pub fn of(resource: &ResourceInfo) -> &'static Self {
        static PLAIN_KIND: Kind = PLAIN;
        static CUSTOM_KIND: Kind = CUSTOM;
        static KINDS: LazyLock<HashMap<(&str, &str), &'static Kind>> = LazyLock::new(|| {
            let all = [core::ALL, workloads::ALL, cluster::ALL].into_iter().flatten();
            all.map(|kind| ((kind.group, kind.resource), kind)).collect()
        });
        if resource.is_custom() {
            return &CUSTOM_KIND;
        }
        let key = (resource.group.as_str(), resource.resource.as_str());
        KINDS.get(&key).copied().unwrap_or(&PLAIN_KIND)
    }
}

#[cfg(test)]
mod tests;
