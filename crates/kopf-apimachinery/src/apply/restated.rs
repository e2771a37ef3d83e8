//! Handles an apply in a different version from the same manager's last apply.
//!
//! Pure. The fields that the manager set last time have the names of the other version, so fields
//! that it no longer sets are found in that version. The REST code converts the object in between.

use serde_json::Value;

use super::field_set::FieldSet;
use super::managers::{ManagerId, Managers};
use super::typed::TypeRef;
use super::typed::owned::{field_set, with_named_fields};
use super::typed::remove::remove;
use super::{ManagedFields, Manager};
use crate::schema::Schema;

/// The fields that a manager set last time, in another version.
pub struct Restated {
    id: ManagerId,
    api_version: String,
    last: FieldSet,
}

impl Restated {
    /// Returns the last apply if it was made in another version.
    pub fn find(manager: &Manager<'_>, before: &ManagedFields) -> Option<Self> {
        let id = ManagerId::applier(manager.name, manager.subresource);
        let managers = Managers::decode_stored(before)?;
        let last = managers.entries.get(&id)?;
        let is_elsewhere = manager.has_versions && last.api_version != manager.api_version;
        let fields = last.fields.set().into_owned();
        let api_version = last.api_version.clone();
        (is_elsewhere && !fields.is_empty()).then_some(Self { id, api_version, last: fields })
    }

    /// The version of the last apply.
    pub fn api_version(&self) -> &str {
        &self.api_version
    }

    /// The merged object, in the version of the last apply, without the fields set at that time.
    pub fn without_last(&self, merged: &Value, schema: Option<&Schema>) -> Value {
        let of = TypeRef::root(schema);
        remove(merged, &with_named_fields(&self.last, of), of)
    }

    /// The pruned object with the fields that are owned in a version. Both objects are in that
    /// version.
    ///
    /// The managers include the new apply.
    pub fn with_owned(
        &self,
        after: &ManagedFields,
        api_version: &str,
        schema: Option<&Schema>,
        (merged, pruned): (&Value, &Value),
    ) -> Value {
        let of = TypeRef::root(schema);
        let mut owned = FieldSet::default();
        let managers = Managers::decode_stored(after).unwrap_or_default();
        for ownership in managers.entries.values().filter(|it| it.api_version == api_version) {
            owned.extend(&ownership.fields.set());
        }
        let all = with_named_fields(&field_set(merged, of), of);
        let kept = with_named_fields(&field_set(pruned, of), of);
        remove(merged, &all.difference(&kept.union(&with_named_fields(&owned, of))), of)
    }

    /// The merged object without those fields of the last apply that the pruned object lacks. Both
    /// objects are in the version of the last apply.
    pub fn with_dangling(
        &self,
        schema: Option<&Schema>,
        (merged, pruned): (&Value, &Value),
    ) -> Value {
        let of = TypeRef::root(schema);
        let all = with_named_fields(&field_set(merged, of), of);
        let left = with_named_fields(&field_set(pruned, of), of);
        let last = with_named_fields(&self.last, of);
        remove(merged, &all.difference(&left).intersection(&last), of)
    }

    /// The managed fields with the time of an apply that has removed something.
    pub fn touched(&self, after: &ManagedFields, time: &str) -> ManagedFields {
        let mut managers = Managers::decode_stored(after).unwrap_or_default();
        if let Some(ownership) = managers.entries.get_mut(&self.id) {
            ownership.time = Some(time.to_owned());
        }
        managers.write()
    }
}
