//! One record per built-in kind with special behaviour; other kinds are plain.
//!
//! The verbs use the record instead of comparing names.

mod cluster;
mod core;
mod workloads;

use std::collections::HashMap;
use std::sync::LazyLock;

use serde_json::Value;

use crate::{KindContext, ResourceInfo};

/// The special behaviour of one kind.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    /// The API group, empty for the core group.
    pub group: &'static str,
    /// The plural name.
    pub resource: &'static str,
    /// Whether a PUT of a nonexistent object creates it.
    pub creates_on_update: bool,
    /// Whether a PUT must specify the version that it replaces.
    pub needs_version: bool,
    /// How `metadata.generation` is maintained.
    pub generation: Generation,
    /// Whether a new object may have a status although `/status` exists.
    pub keeps_status_on_create: bool,
    /// Applies the built-in admission plugins that change a new object.
    pub(crate) admit: Option<fn(&KindContext<'_>, &mut Value)>,
    /// Sets the fields that clients may not choose on creation.
    pub(crate) prepare_create: Option<fn(&KindContext<'_>, &mut Value)>,
    /// Whether updates report errors in the spec twice, as upstream validates it twice.
    pub(crate) is_checked_twice: bool,
    /// Carries over fields that an update may not change silently.
    pub(crate) prepare_update: Option<fn(&KindContext<'_>, &mut Value, &Value)>,
    /// Which metadata a write to `/status` may change.
    pub status_metadata: StatusMetadata,
    /// Whether the dependents of a deleted object are kept by default.
    pub orphans_dependents: bool,
    /// Whether deleted objects have a grace period.
    pub ends_gracefully: bool,
    /// Whether `spec.finalizers` keep a deleted object.
    pub has_spec_finalizers: bool,
    /// The objects that may not be deleted.
    pub protection: Option<Protection>,
    /// Whether a deletion returns the object instead of a `Status`.
    pub returns_deleted: bool,
    /// The warning about deletions without a propagation policy.
    pub deletion_warning: Option<&'static str>,
    /// The warning in every response.
    pub deprecation: Option<&'static str>,
    /// The selectable fields besides name and namespace; `None` means that the kind registers no
    /// conversion.
    pub selectable_fields: Option<&'static [&'static str]>,
}

/// Objects that may not be deleted.
#[derive(Debug, Clone, Copy)]
pub struct Protection {
    /// Their names.
    pub names: &'static [&'static str],
    /// The reason.
    pub reason: &'static str,
}

/// How `metadata.generation` is maintained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generation {
    /// There is none.
    Absent,
    /// It is always 1.
    Fixed,
    /// It counts the changes of everything except metadata and status.
    CountsChanges,
    /// It counts these changes from zero, so that new objects have none.
    CountsFromZero,
    /// It counts these changes and those of annotations.
    CountsAnnotations,
}

/// Which metadata a write to `/status` may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusMetadata {
    /// The same as any write.
    Given,
    /// The same as any write, except this field.
    GivenBut(&'static str),
    /// Nothing.
    Stored,
}

/// A built-in kind without special behaviour.
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
