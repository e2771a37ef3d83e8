//! Storages in the status, for operators that do not use annotations.

use serde_json::{Value, json};

use super::{DiffBaseStorage, ProgressStorage, StorageError, StoredForm};
use crate::callback::CallbackError;
use crate::essence::{self, Essence};
use crate::field::FieldPath;
use crate::json::deep;
use crate::object::Object;
use crate::patch::Patch;
use crate::record::{Absent, ProgressRecord};

/// The field with the state for which a handler has finished.
const HANDLED: &str = "handled";
/// What the id of this state has in addition to the id of the handler.
const STATE_SUFFIX: &str = "/handled-state";

/// Stores the last-handled state as a string in one field of the status.
#[derive(Clone, Debug)]
pub struct StatusDiffBase {
    field: FieldPath,
    ignored: Vec<FieldPath>,
}

/// Stores progress as one map in a field of the status, keyed by handler id.
///
/// The state for which a handler has finished is stored beside its record, as if it were the record
/// of a sub-handler. Kopf would drop an unknown field from a record that it has read, but a merge
/// patch does not remove the field: the patch changes nothing, and Kopf waits for an event that
/// never comes. Kopf keeps the ids of sub-handlers, and removes their records at the end. Since it
/// removes only what the record of the outermost handler names, that record also names the states of
/// its sub-handlers.
#[derive(Clone, Debug)]
pub struct StatusProgress {
    field: FieldPath,
    touch_field: FieldPath,
}

impl StatusDiffBase {
    /// Uses `status.{name}.last-handled-configuration`.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self::in_field(FieldPath::from_keys(["status", name, "last-handled-configuration"]))
    }

    /// Uses the given field.
    #[must_use]
    pub fn in_field(field: FieldPath) -> Self {
        Self { field, ignored: Vec::new() }
    }

    /// Sets fields that never count as a change.
    #[must_use]
    pub fn ignoring(mut self, fields: impl IntoIterator<Item = FieldPath>) -> Self {
        self.ignored.extend(fields);
        self
    }
}

impl DiffBaseStorage for StatusDiffBase {
    fn build(&self, object: &Object, extra: &[FieldPath]) -> Result<Essence, CallbackError> {
        let mut built = essence::build(object, extra, &self.ignored, |_| true);
        if may_have(&built, &self.field) {
            built.edit(|tree| drop(self.field.remove(tree)));
        }
        Ok(built)
    }

    fn fetch(&self, object: &Object, new: &Essence) -> Result<Option<Essence>, StorageError> {
        let found = object.field(&self.field);
        let Some(text) = found.as_deref().and_then(Value::as_str) else { return Ok(None) };
        if text.trim_ascii_end() == new.text() {
            return Ok(Some(new.clone()));
        }
        if let Some(stored) = Essence::from_stored(text.trim_ascii_end()) {
            return Ok(Some(stored));
        }
        let stored: Value =
            deep::read(text.as_bytes()).map_err(|source| StorageError::Malformed {
                place: format!("field {}", self.field),
                source: source.into(),
            })?;
        Ok(Some(stored).filter(|stored| !stored.is_null()).map(Essence::from))
    }

    fn store(
        &self,
        essence: &Essence,
        _object: &Object,
        patch: &mut Patch,
    ) -> Result<StoredForm, CallbackError> {
        patch.set(&self.field, Value::from(essence.text()));
        Ok(StoredForm::Plain)
    }

    fn own_fields(&self) -> Vec<FieldPath> {
        vec![self.field.clone()]
    }

    fn adds_fields(&self) -> bool {
        false
    }
}

impl StatusProgress {
    /// Uses `status.{name}.progress`, and touches `status.{name}.dummy`.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self {
            field: FieldPath::from_keys(["status", name, "progress"]),
            touch_field: FieldPath::from_keys(["status", name, "dummy"]),
        }
    }

    /// Uses the given fields.
    #[must_use]
    pub fn in_fields(field: FieldPath, touch_field: FieldPath) -> Self {
        Self { field, touch_field }
    }
}

impl StatusProgress {
    /// Requests that an entry be removed from the stored map and from the patch.
    fn remove(&self, id: &str, stored: Option<&Value>, patch: &mut Patch) {
        if stored.is_some_and(|records| records.get(id).is_some()) {
            patch.set(&self.field.join(id), Value::Null);
        } else if patch.get(&self.field).is_some() {
            patch.forget(&self.field.join(id));
        }
    }

    /// Names a state in the records that already name the handler as a sub-handler.
    fn name_in_outer_records(&self, id: &str, stored: Option<&Value>, patch: &mut Patch) {
        let outer_ids = id.rmatch_indices('/').map(|(end, _)| &id[..end]);
        for outer_id in outer_ids {
            let requested = patch.get(&self.field).and_then(|records| records.get(outer_id));
            let present = stored.and_then(|records| records.get(outer_id));
            let Some(outer) = requested.or(present).filter(|record| record.is_object()) else {
                continue;
            };
            let mut subrefs = ProgressRecord::from_value(outer).subrefs;
            let state_id = handled_state_id(id);
            if subrefs.iter().any(|subref| subref == id) && !subrefs.contains(&state_id) {
                subrefs.push(state_id);
                subrefs.sort();
                patch.set(&self.field.join(outer_id).join("subrefs"), subrefs.into());
            }
        }
    }

    /// The ids of the states of sub-handlers that are stored or about to be.
    fn inner_states(
        &self,
        record: &ProgressRecord,
        stored: Option<&Value>,
        patch: &Patch,
    ) -> Vec<String> {
        let requested = patch.get(&self.field);
        let exists = |id: &String| {
            let entry = requested.and_then(|records| records.get(id));
            entry.or_else(|| stored?.get(id)).is_some_and(|entry| !entry.is_null())
        };
        record.subrefs.iter().map(|subref| handled_state_id(subref)).filter(exists).collect()
    }
}

impl ProgressStorage for StatusProgress {
    fn fetch(&self, id: &str, object: &Object) -> Result<Option<ProgressRecord>, StorageError> {
        let records = object.field(&self.field);
        let entry = |id: &str| {
            let entry = records.as_deref()?.as_object()?.get(id)?;
            (!entry.is_null()).then_some(entry)
        };
        let Some(mut record) = entry(id).map(ProgressRecord::from_value) else { return Ok(None) };
        if !record.subrefs.is_empty() {
            let state = entry(&handled_state_id(id));
            let state = state.and_then(|entry| ProgressRecord::from_value(entry).handled);
            record.subrefs.retain(|subref| !subref.ends_with(STATE_SUFFIX));
            record.handled = state.or(record.handled);
        }
        Ok(Some(record))
    }

    fn store(
        &self,
        id: &str,
        record: &ProgressRecord,
        object: &Object,
        patch: &mut Patch,
    ) -> Result<(), CallbackError> {
        let stored = object.field(&self.field);
        let (mut record, state_id) = (record.clone(), handled_state_id(id));
        record.subrefs.extend(self.inner_states(&record, stored.as_deref(), patch));
        match record.handled.take() {
            Some(state) => {
                patch.set(&self.field.join(&state_id), json!({ HANDLED: state }));
                self.name_in_outer_records(id, stored.as_deref(), patch);
                record.subrefs.push(state_id);
            }
            None => self.remove(&state_id, stored.as_deref(), patch),
        }
        record.subrefs.sort();
        // Nulls are written explicitly, so that a merge patch removes fields of the previous
        // record; earlier releases stored the state in the record itself.
        let mut value = record.to_value(Absent::Null);
        let previous = stored.as_deref().and_then(|records| records.get(id));
        if previous.is_some_and(|previous| previous.get(HANDLED).is_some()) {
            value[HANDLED] = Value::Null;
        }
        patch.set(&self.field.join(id), value);
        Ok(())
    }

    fn purge(&self, id: &str, object: &Object, patch: &mut Patch) -> Result<(), CallbackError> {
        let stored = object.field(&self.field);
        if stored.is_none() && patch.get(&self.field).is_none() {
            return Ok(());
        }
        self.remove(id, stored.as_deref(), patch);
        self.remove(&handled_state_id(id), stored.as_deref(), patch);
        Ok(())
    }

    fn touch(
        &self,
        object: &Object,
        patch: &mut Patch,
        value: Option<&str>,
    ) -> Result<(), CallbackError> {
        if object.field(&self.touch_field).as_deref().and_then(Value::as_str) != value {
            patch.set(&self.touch_field, value.map_or(Value::Null, Value::from));
        }
        Ok(())
    }

    fn clear(&self, essence: &mut Essence) -> Result<(), CallbackError> {
        if may_have(essence, &self.field) {
            essence.edit(|tree| {
                self.field.remove(tree);
                essence::drop_empty_stanzas(tree);
            });
        }
        Ok(())
    }

    fn own_fields(&self) -> Vec<FieldPath> {
        vec![self.field.clone(), self.touch_field.clone()]
    }
}

/// The id under which the state for which a handler has finished is stored.
fn handled_state_id(id: &str) -> String {
    format!("{id}{STATE_SUFFIX}")
}

fn may_have(essence: &Essence, field: &FieldPath) -> bool {
    field.keys().next().is_none_or(|key| essence.may_have(key))
}
