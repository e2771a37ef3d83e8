//! Several storages as one, for migrating an operator from one storage to another.

use super::{
    AnnotationsProgress, DiffBaseStorage, ProgressStorage, StatusProgress, StorageError, StoredForm,
};
use crate::callback::CallbackError;
use crate::essence::{self, Essence};
use crate::field::FieldPath;
use crate::object::Object;
use crate::patch::Patch;
use crate::record::ProgressRecord;

/// Writes the last-handled state to all storages, and reads the first one present.
pub struct MultiDiffBase(pub Vec<Box<dyn DiffBaseStorage>>);

/// Writes progress to all storages, and reads the first one present.
///
/// Only the first storage gets the states for which handlers have finished: Kopf ignores and drops
/// them where it reads, but would leave them behind in the others.
pub struct MultiProgress(pub Vec<Box<dyn ProgressStorage>>);

/// Stores progress in annotations; reads and purges progress that old releases stored in the
/// status.
pub struct SmartProgress {
    /// Where progress is stored.
    pub annotations: AnnotationsProgress,
    /// Where old progress may be stored.
    pub status: StatusProgress,
}

impl DiffBaseStorage for MultiDiffBase {
    fn build(&self, object: &Object, extra: &[FieldPath]) -> Result<Essence, CallbackError> {
        let built = essence::build(object, extra, &[], |_| true);
        self.0.iter().try_fold(built, |built, storage| {
            storage.build(&Object::from_value(built.value().clone()), extra)
        })
    }

    fn fetch(&self, object: &Object, new: &Essence) -> Result<Option<Essence>, StorageError> {
        for storage in &self.0 {
            if let Some(found) = storage.fetch(object, new)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn store(
        &self,
        essence: &Essence,
        object: &Object,
        patch: &mut Patch,
    ) -> Result<StoredForm, CallbackError> {
        let stored = self.0.iter().map(|storage| storage.store(essence, object, patch));
        let forms: Vec<_> = stored.collect::<Result<_, _>>()?;
        let other = forms.into_iter().find(|form| *form != StoredForm::Plain);
        Ok(other.unwrap_or(StoredForm::Plain))
    }

    fn own_annotations(&self, object: &Object) -> Vec<String> {
        self.0.iter().flat_map(|storage| storage.own_annotations(object)).collect()
    }

    fn own_fields(&self) -> Vec<FieldPath> {
        self.0.iter().flat_map(|storage| storage.own_fields()).collect()
    }

    fn adds_fields(&self) -> bool {
        self.0.iter().any(|storage| storage.adds_fields())
    }
}

impl ProgressStorage for MultiProgress {
    fn fetch(&self, id: &str, object: &Object) -> Result<Option<ProgressRecord>, StorageError> {
        for storage in &self.0 {
            if let Some(found) = storage.fetch(id, object)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn store(
        &self,
        id: &str,
        record: &ProgressRecord,
        object: &Object,
        patch: &mut Patch,
    ) -> Result<(), CallbackError> {
        let Some((first, others)) = self.0.split_first() else { return Ok(()) };
        first.store(id, record, object, patch)?;
        let copy = ProgressRecord { handled: None, ..record.clone() };
        others.iter().try_for_each(|storage| storage.store(id, &copy, object, patch))
    }

    fn purge(&self, id: &str, object: &Object, patch: &mut Patch) -> Result<(), CallbackError> {
        self.0.iter().try_for_each(|storage| storage.purge(id, object, patch))
    }

    fn touch(
        &self,
        object: &Object,
        patch: &mut Patch,
        value: Option<&str>,
    ) -> Result<(), CallbackError> {
        self.0.iter().try_for_each(|storage| storage.touch(object, patch, value))
    }

    fn clear(&self, essence: &mut Essence) -> Result<(), CallbackError> {
        self.0.iter().try_for_each(|storage| storage.clear(essence))
    }

    fn own_annotations(&self) -> Vec<String> {
        self.0.iter().flat_map(|storage| storage.own_annotations()).collect()
    }

    fn own_fields(&self) -> Vec<FieldPath> {
        self.0.iter().flat_map(|storage| storage.own_fields()).collect()
    }
}

impl ProgressStorage for SmartProgress {
    fn fetch(&self, id: &str, object: &Object) -> Result<Option<ProgressRecord>, StorageError> {
        match self.annotations.fetch(id, object)? {
            Some(found) => Ok(Some(found)),
            None => self.status.fetch(id, object),
        }
    }

    fn store(
        &self,
        id: &str,
        record: &ProgressRecord,
        object: &Object,
        patch: &mut Patch,
    ) -> Result<(), CallbackError> {
        self.annotations.store(id, record, object, patch)
    }

    fn purge(&self, id: &str, object: &Object, patch: &mut Patch) -> Result<(), CallbackError> {
        self.annotations.purge(id, object, patch)?;
        self.status.purge(id, object, patch)
    }

    fn touch(
        &self,
        object: &Object,
        patch: &mut Patch,
        value: Option<&str>,
    ) -> Result<(), CallbackError> {
        self.annotations.touch(object, patch, value)
    }

    fn clear(&self, essence: &mut Essence) -> Result<(), CallbackError> {
        self.annotations.clear(essence)?;
        self.status.clear(essence)
    }

    fn own_annotations(&self) -> Vec<String> {
        self.annotations.own_annotations()
    }

    fn own_fields(&self) -> Vec<FieldPath> {
        self.status.own_fields()
    }
}
