//! Dry runs of desired children: planned actions are reported instead of executed.
//!
//! Cycles write to it instead of the cluster; the code that started the engine reads it. Requests
//! are sent with `dryRun=All`, so the server's defaults, validations and rejections are real.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kopf_core::desired::Readiness;
use kopf_model::{Diff, Object};
use parking_lot::Mutex;
use serde_json::Value;

/// Collects what an engine would do about children; cheap to clone.
#[derive(Clone, Default)]
pub struct Rehearsal(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    /// Owners that are not completely processed yet.
    pending: BTreeSet<String>,
    owners: BTreeMap<String, Vec<Proposal>>,
}

/// What would be done about one child.
#[derive(Clone, Debug)]
pub struct Proposal {
    /// The child, such as `Service prod/web`; the id of the handler if it failed as a whole.
    pub child: String,
    /// What would be done about it.
    pub action: Action,
}

/// What would be done about a child.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Action {
    /// It is missing and would be created.
    Create,
    /// It has drifted, or its manifest has changed.
    Change(Diff),
    /// It is as desired and would be kept, ready or not.
    Keep(Readiness),
    /// It is no longer desired.
    Delete,
    /// Nothing can be done about it, for this reason.
    Refuse(String),
}

impl Rehearsal {
    /// What would be done, by owner, such as `Site prod/web`.
    #[must_use]
    pub fn proposals(&self) -> BTreeMap<String, Vec<Proposal>> {
        self.0.lock().owners.clone()
    }

    /// Whether all known owners are processed.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.0.lock().pending.is_empty()
    }

    pub(crate) fn begin(&self, owner: &Object) {
        self.0.lock().pending.insert(owner.uid().to_owned());
    }

    /// An owner is processed; later results replace earlier ones.
    pub(crate) fn end(&self, owner: &Object, proposals: Vec<Proposal>) {
        let mut inner = self.0.lock();
        inner.pending.remove(owner.uid());
        inner.owners.insert(format!("{} {}", owner.kind(), owner.key()), proposals);
    }
}

/// What applying would change, without the server's own counters.
pub(crate) fn difference(before: &Value, after: &Value) -> Diff {
    let (before, after) = (essential(before), essential(after));
    Diff::between(Some(&before), Some(&after))
}

fn essential(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(fields) = object.as_object_mut() {
        fields.shift_remove("status");
        if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
            for counter in ["resourceVersion", "managedFields", "generation"] {
                metadata.shift_remove(counter);
            }
        }
    }
    object
}
