//! Storages in annotations: Kopf's default.

use std::sync::Arc;

use serde_json::Value;

use super::compact;
use super::{DiffBaseStorage, ProgressStorage, StorageError, StoredForm};
use crate::callback::CallbackError;
use crate::essence::{self, Essence};
use crate::field::FieldPath;
use crate::json::deep;
use crate::json::text::to_ascii;
use crate::keys::KeyMaker;
use crate::object::Object;
use crate::patch::Patch;
use crate::record::{Absent, ProgressRecord};

/// Stores the last-handled state in one annotation.
#[derive(Clone, Debug)]
pub struct AnnotationsDiffBase {
    keys: KeyMaker,
    key: String,
    ignored: Vec<FieldPath>,
}

/// Stores progress in one annotation per handler.
#[derive(Clone, Debug)]
pub struct AnnotationsProgress {
    keys: KeyMaker,
    touch_key: String,
    absent: Absent,
}

impl AnnotationsDiffBase {
    /// Uses the annotation `prefix/key`.
    #[must_use]
    pub fn new(keys: KeyMaker, key: impl Into<String>) -> Self {
        Self { keys, key: key.into(), ignored: Vec::new() }
    }

    /// Sets fields that never count as a change.
    #[must_use]
    pub fn ignoring(mut self, fields: impl IntoIterator<Item = FieldPath>) -> Self {
        self.ignored.extend(fields);
        self
    }

    /// The annotations that hold the state, in reading order.
    pub(super) fn places(&self, object: &Object) -> Arc<[String]> {
        self.keys.keys(&self.key, object)
    }

    /// Requests that an encoded state be stored in all places, and the marker.
    pub(super) fn store_text(&self, text: String, object: &Object, patch: &mut Patch) {
        if let Some((last, others)) = self.places(object).split_last() {
            for key in others {
                patch.set_annotation(key, Some(text.clone()));
            }
            patch.set_annotation(last, Some(text));
        }
        store_marker(&self.keys, object, patch);
    }
}

impl DiffBaseStorage for AnnotationsDiffBase {
    fn build(&self, object: &Object, extra: &[FieldPath]) -> Result<Essence, CallbackError> {
        let own = self.places(object);
        let is_own = |key: &str| own.iter().any(|other| other == key);
        Ok(essence::build(object, extra, &self.ignored, |key| !is_own(key)))
    }

    fn fetch(&self, object: &Object, new: &Essence) -> Result<Option<Essence>, StorageError> {
        for key in self.places(object).iter() {
            if let Some(text) = object.note(key) {
                if text.trim_ascii_end() == new.text() {
                    return Ok(Some(new.clone()));
                }
                if let Some(stored) = compact::plain(&text) {
                    return Ok(Some(stored));
                }
                let error =
                    |source| StorageError::Malformed { place: format!("annotation {key}"), source };
                let stored = deep::read(text.as_bytes()).map_err(|source| error(source.into()))?;
                let stored = compact::expand(stored, new).map_err(error)?;
                if !stored.is_null() {
                    return Ok(Some(stored.into()));
                }
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
        self.store_text([essence.text(), "\n"].concat(), object, patch);
        Ok(StoredForm::Plain)
    }

    fn own_annotations(&self, object: &Object) -> Vec<String> {
        self.places(object).to_vec()
    }

    fn adds_fields(&self) -> bool {
        false
    }
}

impl AnnotationsProgress {
    /// Uses annotations with the prefix of the keys.
    #[must_use]
    pub fn new(keys: KeyMaker) -> Self {
        Self { keys, touch_key: "touch-dummy".to_owned(), absent: Absent::Omitted }
    }

    /// Writes absent fields as nulls.
    #[must_use]
    pub fn verbose(mut self) -> Self {
        self.absent = Absent::Null;
        self
    }

    /// Sets the name of the annotation for touching.
    #[must_use]
    pub fn touching(mut self, touch_key: impl Into<String>) -> Self {
        self.touch_key = touch_key.into();
        self
    }
}

impl ProgressStorage for AnnotationsProgress {
    fn fetch(&self, id: &str, object: &Object) -> Result<Option<ProgressRecord>, StorageError> {
        for key in self.keys.keys(id, object).iter() {
            if let Some(text) = object.note(key) {
                let stored: Value =
                    serde_json::from_str(&text).map_err(|source| StorageError::Malformed {
                        place: format!("annotation {key}"),
                        source: source.into(),
                    })?;
                if !stored.is_null() {
                    return Ok(Some(ProgressRecord::from_value(&stored)));
                }
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
        let text = to_ascii(&record.to_value(self.absent));
        for key in self.keys.keys(id, object).iter() {
            patch.set_annotation(key, Some(text.clone()));
        }
        store_marker(&self.keys, object, patch);
        Ok(())
    }

    fn purge(&self, id: &str, object: &Object, patch: &mut Patch) -> Result<(), CallbackError> {
        for key in self.keys.keys(id, object).iter() {
            if object.note(key).is_some() {
                patch.set_annotation(key, None);
            } else if patch.annotation(key).is_some() {
                patch.forget(&annotation_path(key));
            }
        }
        Ok(())
    }

    fn touch(
        &self,
        object: &Object,
        patch: &mut Patch,
        value: Option<&str>,
    ) -> Result<(), CallbackError> {
        for key in self.keys.keys(&self.touch_key, object).iter() {
            if object.note(key).as_deref() != value {
                patch.set_annotation(key, value.map(str::to_owned));
                store_marker(&self.keys, object, patch);
            }
        }
        Ok(())
    }

    fn clear(&self, essence: &mut Essence) -> Result<(), CallbackError> {
        essence::retain_annotations(essence, |key| !self.keys.owns(key));
        Ok(())
    }

    fn own_annotations(&self) -> Vec<String> {
        vec![format!("{}/", self.keys.prefix())]
    }
}

fn annotation_path(key: &str) -> FieldPath {
    FieldPath::from_keys(["metadata", "annotations", key])
}

/// Marks a custom prefix as used by an operator, so that other operators ignore it. Prefixes that
/// begin with `kopf.` are recognised without the marker.
fn store_marker(keys: &KeyMaker, object: &Object, patch: &mut Patch) {
    if keys.prefix().starts_with("kopf.") {
        return;
    }
    let marker = format!("{}/kopf-managed", keys.prefix());
    if object.note(&marker).is_none() && patch.annotation(&marker).is_none() {
        patch.set_annotation(&marker, Some("yes".to_owned()));
    }
}
