//! The changes that a cycle makes to an object: a merge patch plus transformation functions.

mod conflict;

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::callback::CallbackError;
use crate::condition::{CONDITIONS, ConditionChanges};
use crate::field::FieldPath;
use crate::{finalizer, merge};

pub use conflict::{Conflict, Ledger, clashes};

/// A change that a merge patch cannot express, such as an edit of a list.
///
/// May run several times on newer bodies, so it must be idempotent.
#[derive(Clone)]
pub enum Transformation {
    /// Any change to the whole body.
    Function(Arc<TransformFn>),
    /// Ensures that the finalizer is present.
    AddFinalizer(Arc<str>),
    /// Ensures that the finalizer is absent.
    RemoveFinalizer(Arc<str>),
}

/// Changes a whole body.
pub type TransformFn = dyn Fn(&mut Value) -> Result<(), CallbackError> + Send + Sync;

impl Transformation {
    /// Applies the change to a body.
    ///
    /// # Errors
    /// Fails when the function does; the body may be changed in part then.
    pub fn apply(&self, body: &mut Value) -> Result<(), CallbackError> {
        match self {
            Self::Function(change) => return change(body),
            Self::AddFinalizer(name) => finalizer::add(body, name),
            Self::RemoveFinalizer(name) => finalizer::remove(body, name),
        }
        Ok(())
    }

    /// Whether it is a function of a user.
    #[must_use]
    pub fn is_function(&self) -> bool {
        matches!(self, Self::Function(_))
    }

    /// Whether it changes only the list of finalizers.
    #[must_use]
    pub fn is_about_finalizers(&self) -> bool {
        matches!(self, Self::AddFinalizer(_) | Self::RemoveFinalizer(_))
    }
}

/// The collected changes to one object.
#[derive(Clone, Default)]
pub struct Patch {
    /// The merge patch: null removes, maps merge, everything else replaces.
    pub merge: Map<String, Value>,
    /// Applied to the newest body after the merge, and sent as a JSON patch.
    pub transformations: Vec<Transformation>,
    /// Changes of single conditions in `status.conditions`, which has other writers too.
    pub conditions: ConditionChanges,
    /// Which writer requested what, if they identified themselves.
    pub ledger: Option<Box<Ledger>>,
}

impl Patch {
    /// Whether there is nothing to send.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.merge.is_empty() && self.transformations.is_empty() && self.conditions.is_empty()
    }

    /// Requests a value at a path; null requests its removal. The root path is ignored.
    pub fn set(&mut self, path: &FieldPath, value: Value) {
        let Some(last) = path.keys().next_back() else { return };
        self.map_at(path.keys().take(path.len() - 1)).insert(last.to_owned(), value);
    }

    /// The map at these keys, created on the way, replacing other values.
    fn map_at<'a>(&mut self, keys: impl Iterator<Item = &'a str>) -> &mut Map<String, Value> {
        keys.fold(&mut self.merge, |place, key| {
            let child = place.entry(key).or_insert(Value::Null);
            if !child.is_object() {
                *child = Value::Object(Map::new());
            }
            child.as_object_mut().expect("it was made a map just now")
        })
    }

    /// The requested value at a path; null means removal.
    #[must_use]
    pub fn get(&self, path: &FieldPath) -> Option<&Value> {
        let mut keys = path.keys();
        let first = self.merge.get(keys.next()?)?;
        keys.try_fold(first, |value, key| value.as_object()?.get(key))
    }

    /// Withdraws the request at a path, and removes the maps that become empty.
    pub fn forget(&mut self, path: &FieldPath) {
        let mut whole = Value::Object(std::mem::take(&mut self.merge));
        path.remove(&mut whole);
        if let Value::Object(map) = whole {
            self.merge = map;
        }
    }

    /// The requested value of an annotation; null means removal.
    #[must_use]
    pub fn annotation(&self, key: &str) -> Option<&Value> {
        self.merge.get("metadata")?.get("annotations")?.get(key)
    }

    /// Requests the value of an annotation, or its removal.
    pub fn set_annotation(&mut self, key: &str, value: Option<String>) {
        let annotations = self.map_at(["metadata", "annotations"].into_iter());
        annotations.insert(key.to_owned(), value.map_or(Value::Null, Value::String));
    }

    /// Requests the value of a label, or its removal.
    pub fn set_label(&mut self, key: &str, value: Option<String>) {
        let labels = self.map_at(["metadata", "labels"].into_iter());
        labels.insert(key.to_owned(), value.map_or(Value::Null, Value::String));
    }

    /// Stores the result of a handler in the status under its id: a map is merged with the existing
    /// one, other values replace it.
    pub fn set_result(&mut self, id: &str, result: Value) {
        if result.is_null() {
            return;
        }
        let status = self.map_at(std::iter::once("status"));
        match (status.get_mut(id), result) {
            (Some(Value::Object(present)), Value::Object(entries)) => present.extend(entries),
            (_, result) => drop(status.insert(id.to_owned(), result)),
        }
    }

    /// Requests the finalizer.
    pub fn add_finalizer(&mut self, finalizer: &str) {
        self.transformations.push(Transformation::AddFinalizer(finalizer.into()));
    }

    /// Requests the removal of the finalizer.
    pub fn remove_finalizer(&mut self, finalizer: &str) {
        self.transformations.push(Transformation::RemoveFinalizer(finalizer.into()));
    }

    /// Adds a transformation.
    pub fn transform(&mut self, change: impl Fn(&mut Value) + Send + Sync + 'static) {
        self.try_transform(move |body| {
            change(body);
            Ok(())
        });
    }

    /// Adds a transformation that may fail; it is dropped then.
    pub fn try_transform(
        &mut self,
        change: impl Fn(&mut Value) -> Result<(), CallbackError> + Send + Sync + 'static,
    ) {
        self.transformations.push(Transformation::Function(Arc::new(change)));
    }

    /// Adds all requests of another patch, which wins in case of conflict.
    ///
    /// A list of conditions in the status is merged by type.
    pub fn absorb(&mut self, mut other: Self) {
        self.adopt_conditions();
        other.adopt_conditions();
        if other.conditions_value().is_some() {
            // The other patch replaces or removes all of them.
            self.conditions.clear();
        }
        merge::combine(&mut self.merge, other.merge);
        self.transformations.extend(other.transformations);
        self.conditions.absorb(other.conditions);
    }

    /// Like [`absorb`](Self::absorb), and records the writer; see [`Self::take_conflicts`].
    pub fn absorb_from(&mut self, writer: &Arc<str>, mut other: Self) {
        other.adopt_conditions();
        let ledger = self.ledger.get_or_insert_default();
        ledger.note(writer, &other.merge, &other.conditions);
        self.absorb(other);
    }

    /// Returns the conflicts between writers since the last call.
    pub fn take_conflicts(&mut self) -> Vec<Conflict> {
        let taken = self.ledger.as_mut().map(|ledger| std::mem::take(&mut ledger.conflicts));
        taken.unwrap_or_default()
    }

    /// Turns a list of conditions in the merge patch into changes of these conditions.
    fn adopt_conditions(&mut self) {
        let changes = self.conditions_value().and_then(ConditionChanges::of_list);
        if let Some(changes) = changes {
            self.forget(&FieldPath::from_keys(["status", CONDITIONS]));
            self.conditions.absorb(changes);
        }
    }

    /// Whether the merge patch depends on the existing conditions; see [`Self::merge_for`].
    #[must_use]
    pub fn has_conditions(&self) -> bool {
        !self.conditions.is_empty() || self.conditions_value().is_some_and(Value::is_array)
    }

    /// The requested value of the conditions, or of the whole status.
    fn conditions_value(&self) -> Option<&Value> {
        match self.merge.get("status")? {
            Value::Object(status) => status.get(CONDITIONS),
            other => Some(other),
        }
    }

    /// The merge patch with the list of conditions computed from the newest known status.
    #[must_use]
    pub fn merge_for(&self, status: Option<&Value>) -> Cow<'_, Map<String, Value>> {
        if !self.has_conditions() {
            return Cow::Borrowed(&self.merge);
        }
        let mut whole = Self { merge: self.merge.clone(), ..Self::default() };
        // The list comes first: the changes were requested together with it or after it.
        whole.adopt_conditions();
        whole.conditions.absorb(self.conditions.clone());
        if whole.merge.get("status").is_some_and(|status| !status.is_object()) {
            // The whole status is removed, including all conditions.
            return Cow::Owned(whole.merge);
        }
        let wanted = whole.conditions_value().filter(|wanted| !wanted.is_null());
        let known = match whole.conditions_value() {
            Some(_) => wanted,
            None => status.and_then(|status| status.get(CONDITIONS)),
        };
        if let Some(list) = whole.conditions.applied_to(known) {
            whole.set(&FieldPath::from_keys(["status", CONDITIONS]), list);
        }
        Cow::Owned(whole.merge)
    }

    /// The status after the merge, including conditions; null if there is none.
    #[must_use]
    pub fn status_after(&self, status: Option<&Value>) -> Value {
        let mut after = status.cloned().unwrap_or_default();
        match self.merge_for(status).get("status") {
            Some(Value::Object(changes)) => merge::apply(&mut after, changes),
            Some(_) => after = Value::Null,
            None => {}
        }
        after
    }

    /// The body after the merge and all transformations.
    ///
    /// # Errors
    /// Fails when a transformation does.
    pub fn applied_to(&self, body: &Value) -> Result<Value, CallbackError> {
        let mut target = body.clone();
        merge::apply(&mut target, &self.merge_for(body.get("status")));
        for transformation in &self.transformations {
            transformation.apply(&mut target)?;
        }
        Ok(target)
    }
}

impl std::fmt::Debug for Patch {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Patch")
            .field("merge", &self.merge)
            .field("transformations", &self.transformations.len())
            .field("conditions", &self.conditions)
            .finish()
    }
}

#[cfg(test)]
mod tests;
