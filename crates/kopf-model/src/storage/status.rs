//! Notes in the status, for operators that keep annotations clean.

use serde_json::Value;

use super::{DiffBaseStorage, ProgressStorage, StorageError, StoredForm};
use crate::essence;
use crate::field::FieldPath;
use crate::json_text::to_ascii;
use crate::object::Object;
use crate::patch::Patch;
use crate::record::{Absent, ProgressRecord};

/// The last handled state as a string in one field of the status.
#[derive(Clone, Debug)]
pub struct StatusDiffBase {
    field: FieldPath,
    ignored: Vec<FieldPath>,
}

/// Progress as one map in a field of the status, by handler ids.
#[derive(Clone, Debug)]
pub struct StatusProgress {
    field: FieldPath,
    touch_field: FieldPath,
}

impl StatusDiffBase {
    /// In `status.{name}.last-handled-configuration`.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self::in_field(FieldPath::from_keys(["status", name, "last-handled-configuration"]))
    }

    /// In a field.
    #[must_use]
    pub fn in_field(field: FieldPath) -> Self {
        Self { field, ignored: Vec::new() }
    }

    /// The same with fields that never count as a change.
    #[must_use]
    pub fn ignoring(mut self, fields: impl IntoIterator<Item = FieldPath>) -> Self {
        self.ignored.extend(fields);
        self
    }
}

impl DiffBaseStorage for StatusDiffBase {
    fn build(&self, object: &Object, extra: &[FieldPath]) -> Value {
        let mut built = essence::build(object, extra, &self.ignored);
        self.field.remove(&mut built);
        built
    }

    fn fetch(&self, object: &Object, _new: &Value) -> Result<Option<Value>, StorageError> {
        let found = object.field(&self.field);
        let Some(text) = found.as_deref().and_then(Value::as_str) else { return Ok(None) };
        let stored: Value = serde_json::from_str(text).map_err(|source| StorageError {
            place: format!("field {}", self.field),
            source: source.into(),
        })?;
        Ok(Some(stored).filter(|stored| !stored.is_null()))
    }

    fn store(&self, essence: &Value, _object: &Object, patch: &mut Patch) -> StoredForm {
        patch.set(&self.field, Value::String(to_ascii(essence)));
        StoredForm::Plain
    }

    fn own_fields(&self) -> Vec<FieldPath> {
        vec![self.field.clone()]
    }
}

impl StatusProgress {
    /// In `status.{name}.progress`, touching `status.{name}.dummy`.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self {
            field: FieldPath::from_keys(["status", name, "progress"]),
            touch_field: FieldPath::from_keys(["status", name, "dummy"]),
        }
    }

    /// The same in other fields.
    #[must_use]
    pub fn in_fields(field: FieldPath, touch_field: FieldPath) -> Self {
        Self { field, touch_field }
    }
}

impl ProgressStorage for StatusProgress {
    fn fetch(&self, id: &str, object: &Object) -> Result<Option<ProgressRecord>, StorageError> {
        let record = object.field(&self.field.join(id)).filter(|record| !record.is_null());
        Ok(record.map(|record| ProgressRecord::from_value(&record)))
    }

    fn store(&self, id: &str, record: &ProgressRecord, _object: &Object, patch: &mut Patch) {
        // Nulls are written out, so that a merge patch removes fields of the former record.
        patch.set(&self.field.join(id), record.to_value(Absent::Null));
    }

    fn purge(&self, id: &str, object: &Object, patch: &mut Patch) {
        let place = self.field.join(id);
        if object.field(&place).is_some() {
            patch.set(&place, Value::Null);
        } else {
            patch.forget(&place);
        }
    }

    fn touch(&self, object: &Object, patch: &mut Patch, value: Option<&str>) {
        if object.field(&self.touch_field).as_deref().and_then(Value::as_str) != value {
            patch.set(&self.touch_field, value.map_or(Value::Null, Value::from));
        }
    }

    fn clear(&self, essence: &mut Value) {
        self.field.remove(essence);
        essence::drop_empty_stanzas(essence);
    }
}
