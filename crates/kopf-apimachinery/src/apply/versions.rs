//! Managers that own fields in a different version from that of a write.
//!
//! Pure. Different versions may have different fields. The fields that such managers lose are found
//! by comparing the object before and after the write in their version; the REST code converts it.

use serde_json::{Value, json};

use super::managers::{ManagerId, Managers, Ownership};
use super::ownership::Conflict;
use super::typed::compare::compare;
use super::typed::{self, TypeRef};
use super::{ManagedFields, Manager, conflict_error, reset};
use crate::StatusError;
use crate::schema::Schema;

/// A write as seen in another version.
pub struct Elsewhere<'a> {
    /// The other version.
    pub api_version: &'a str,
    /// Its schema.
    pub schema: Option<&'a Schema>,
    /// The object before.
    pub old: &'a Value,
    /// The object after.
    pub new: &'a Value,
}

/// What a write may take from managers of other versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// Every field that it changes.
    Update,
    /// With force, every field that it sets; otherwise nothing.
    Apply {
        /// Whether the request has `force=true`.
        force: bool,
    },
}

/// The versions other than `api_version` in which a manager owns fields.
pub fn other_versions(managed: &ManagedFields, api_version: &str) -> Vec<String> {
    let managers = Managers::decode_stored(managed).unwrap_or_default();
    let mut versions: Vec<String> =
        managers.entries.into_values().map(|ownership| ownership.api_version).collect();
    versions.retain(|version| version != api_version);
    versions.sort_unstable();
    versions.dedup();
    versions
}

/// The managed fields without managers that wrote in another group.
pub fn of_group(managed: &ManagedFields, group: &str) -> ManagedFields {
    let mut managers = Managers::decode_stored(managed).unwrap_or_default();
    let is_other = |version: &str| crate::resource::split_api_version(version).0 != group;
    if !managers.entries.values().any(|ownership| is_other(&ownership.api_version)) {
        return managed.clone();
    }
    managers.entries.retain(|_, ownership| !is_other(&ownership.api_version));
    managers.write()
}

/// The mismatches between an object and the schema of a version, such as undeclared fields. Upstream
/// then tracks no fields.
pub fn undeclared(schema: Option<&Schema>, object: &Value) -> Option<String> {
    let problems = typed::check(object, TypeRef::root(schema), false);
    (!problems.is_empty()).then(|| super::listed(&problems))
}

/// Whether an object asks the server to reset its managed fields.
pub fn resets_managers(object: &Value) -> bool {
    crate::meta::field(object, "managedFields").is_some_and(is_reset)
}

/// An empty list, or a list of one empty entry, resets.
pub(super) fn is_reset(given: &Value) -> bool {
    given.as_array().is_some_and(|entries| {
        entries.is_empty() || (entries.len() == 1 && entries[0] == json!({}))
    })
}

/// Returns the managed fields after a write, with changed fields taken from managers of another
/// version.
///
/// `before` is the stored state, `after` the result of the write itself. An apply without force
/// conflicts with every manager that would lose fields.
pub fn settle(
    manager: &Manager<'_>,
    elsewhere: &Elsewhere<'_>,
    before: &ManagedFields,
    after: &ManagedFields,
    claim: Claim,
) -> Result<ManagedFields, StatusError> {
    let comparison = compare(elsewhere.old, elsewhere.new, TypeRef::root(elsewhere.schema))
        .without(&reset::ignored_fields(manager));
    let changed = comparison.changed();
    // The applier's own earlier fields have already been replaced, in all versions.
    let own =
        (claim != Claim::Update).then(|| ManagerId::applier(manager.name, manager.subresource));
    let stored = Managers::decode_stored(before).unwrap_or_default();
    let mut managers = Managers::decode_stored(after).unwrap_or_default();
    let mut conflicts = Vec::new();
    for (id, ownership) in stored.entries {
        if ownership.api_version != elsewhere.api_version || Some(&id) == own.as_ref() {
            continue;
        }
        let Ownership { mut fields, api_version, time } = ownership;
        let contested = fields.set().intersection(&changed).paths();
        conflicts.extend(contested.into_iter().map(|path| Conflict { manager: id.clone(), path }));
        fields.subtract(&changed);
        fields.subtract(&comparison.removed);
        managers.entries.insert(id, Ownership { fields, api_version, time });
    }
    if claim == (Claim::Apply { force: false }) && !conflicts.is_empty() {
        return Err(conflict_error(&conflicts));
    }
    managers.drop_empty();
    Ok(managers.write())
}
