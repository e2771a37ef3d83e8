//! Storages that are written in Python: each method is a question to the event loop.

use std::sync::Arc;

use kopf_core::invoke::CallbackError;
use kopf_core::occasion::{Occasion, Subject};
use kopf_model::record::{Absent, ProgressRecord};
use kopf_model::storage::{DiffBaseStorage, ProgressStorage, StorageError};
use kopf_model::{Essence, FieldPath, Object, Patch, Resource, StoredForm};
use serde_json::{Value, json};

use crate::ask::{Asker, Query};
use crate::matter::Matter;

/// A storage of progress in Python.
pub(crate) struct PythonProgress(Asker);

/// A storage of last handled states in Python.
pub(crate) struct PythonDiffBase(Asker);

/// What a storage looks at.
fn about(asker: &Asker, object: &Object) -> Matter {
    let resource = Arc::new(Resource::cluster_wide("", "", object.kind()));
    let subject = Some(Subject { resource, object: object.clone() });
    let transformer = asker.transformer();
    Matter { subject, occasion: Occasion::Index, memo: None, patch: None, transformer }
}

/// Lets Python change a patch.
fn write(
    asker: &Asker,
    query: Query,
    object: &Object,
    mut value: Value,
    patch: &mut Patch,
) -> Result<(), CallbackError> {
    value["patch"] = Value::Object(patch.merge.clone());
    let (value, matter) = (Some(value), Some(about(asker, object)));
    if let Value::Object(merge) = asker.ask(Query { value, matter, ..query })? {
        patch.merge = merge;
    }
    Ok(())
}

impl PythonProgress {
    pub(crate) fn new(asker: Asker) -> Self {
        Self(asker)
    }
}

impl PythonDiffBase {
    pub(crate) fn new(asker: Asker) -> Self {
        Self(asker)
    }
}

fn query(kind: &'static str, id: &str) -> Query {
    Query { kind, key: Some(id.to_owned()), ..Query::default() }
}

impl ProgressStorage for PythonProgress {
    fn fetch(&self, id: &str, object: &Object) -> Result<Option<ProgressRecord>, StorageError> {
        let matter = Some(about(&self.0, object));
        match self.0.ask(Query { matter, ..query("progress.fetch", id) })? {
            Value::Null => Ok(None),
            record => Ok(Some(ProgressRecord::from_value(&record))),
        }
    }

    fn store(
        &self,
        id: &str,
        record: &ProgressRecord,
        object: &Object,
        patch: &mut Patch,
    ) -> Result<(), CallbackError> {
        let value = json!({"record": record.to_value(Absent::Null)});
        write(&self.0, query("progress.store", id), object, value, patch)
    }

    fn purge(&self, id: &str, object: &Object, patch: &mut Patch) -> Result<(), CallbackError> {
        write(&self.0, query("progress.purge", id), object, json!({}), patch)
    }

    fn touch(
        &self,
        object: &Object,
        patch: &mut Patch,
        value: Option<&str>,
    ) -> Result<(), CallbackError> {
        let value = json!({"value": value});
        write(&self.0, query("progress.touch", ""), object, value, patch)
    }

    fn clear(&self, essence: &mut Essence) -> Result<(), CallbackError> {
        let value = Some(essence.value().clone());
        let cleared = self.0.ask(Query { value, ..query("progress.clear", "") })?;
        essence.edit(|essence| *essence = cleared);
        Ok(())
    }
}

impl DiffBaseStorage for PythonDiffBase {
    fn build(&self, object: &Object, extra: &[FieldPath]) -> Result<Essence, CallbackError> {
        let keys = |field: &FieldPath| field.keys().map(Value::from).collect::<Value>();
        let value = Some(extra.iter().map(keys).collect::<Value>());
        let matter = Some(about(&self.0, object));
        let built = self.0.ask(Query { value, matter, ..query("diffbase.build", "") })?;
        Ok(built.into())
    }

    fn fetch(&self, object: &Object, _: &Essence) -> Result<Option<Essence>, StorageError> {
        let matter = Some(about(&self.0, object));
        match self.0.ask(Query { matter, ..query("diffbase.fetch", "") })? {
            Value::Null => Ok(None),
            essence => Ok(Some(essence.into())),
        }
    }

    fn store(
        &self,
        essence: &Essence,
        object: &Object,
        patch: &mut Patch,
    ) -> Result<StoredForm, CallbackError> {
        let value = json!({"essence": essence.value()});
        write(&self.0, query("diffbase.store", ""), object, value, patch)?;
        Ok(StoredForm::Plain)
    }
}
