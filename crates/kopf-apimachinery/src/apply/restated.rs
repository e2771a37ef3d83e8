//! An apply in another version than the last one of the same manager.
//!
//! Pure. What the manager stated last time has the names of that version, so what it does not state
//! any more is found there. The REST code converts the object from version to version in between.

use serde_json::Value;

use super::field_set::FieldSet;
use super::managers::{ManagerId, Managers};
use super::typed::TypeRef;
use super::typed::owned::{field_set, with_named_fields};
use super::typed::remove::remove;
use super::{ManagedFields, Manager};
use crate::schema::Schema;

/// What a manager stated last time, in another version.
pub struct Restated {
    id: ManagerId,
    api_version: String,
    last: FieldSet,
}

impl Restated {
    /// The last statement, if it was made in another version.
    pub fn find(manager: &Manager<'_>, before: &ManagedFields) -> Option<Self> {
        let id = ManagerId::applier(manager.name, manager.subresource);
        let managers = Managers::decode_stored(before)?;
        let last = managers.entries.get(&id)?;
        let is_elsewhere = manager.has_versions && last.api_version != manager.api_version;
        let fields = last.fields.set().into_owned();
        let api_version = last.api_version.clone();
        (is_elsewhere && !fields.is_empty()).then_some(Self { id, api_version, last: fields })
    }

    /// The version of the last statement.
    pub fn api_version(&self) -> &str {
        &self.api_version
    }

    /// The merged object, in the version of the last statement, without all that was stated then.
    pub fn without_last(&self, merged: &Value, schema: Option<&Schema>) -> Value {
        let of = TypeRef::root(schema);
        remove(merged, &with_named_fields(&self.last, of), of)
    }

    /// The pruned object with what is owned in a version, in which both objects are.
    ///
    /// The new statement is among the managers.
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

    /// The merged object without those parts of the last statement that the pruned one lacks; both
    /// are in the version of the last statement.
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

    /// The managed fields with the time of a statement that has removed something.
    pub fn touched(&self, after: &ManagedFields, time: &str) -> ManagedFields {
        let mut managers = Managers::decode_stored(after).unwrap_or_default();
        if let Some(ownership) = managers.entries.get_mut(&self.id) {
            ownership.time = Some(time.to_owned());
        }
        managers.write()
    }
}
