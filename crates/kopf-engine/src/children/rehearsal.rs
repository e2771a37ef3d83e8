//! Dry runs of desired children: what would be done is reported, not done.
//!
//! Cycles write into it in place of the cluster; the code that started the engine reads it. The server is
//! asked with `dryRun=All`, so its defaults, validations and refusals are the real ones.

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
    /// Owners that were looked at, and not to the end.
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
    /// It is missing, and would be made.
    Create,
    /// It has drifted, or is desired otherwise now.
    Change(Diff),
    /// It is as desired, and would stay; ready or not.
    Keep(Readiness),
    /// It is not desired any more.
    Delete,
    /// Nothing can be done about it, and why.
    Refuse(String),
}

impl Rehearsal {
    /// What would be done, by owners such as `Site prod/web`.
    #[must_use]
    pub fn proposals(&self) -> BTreeMap<String, Vec<Proposal>> {
        self.0.lock().owners.clone()
    }

    /// Whether all owners that were looked at are done with.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.0.lock().pending.is_empty()
    }

    pub(crate) fn begin(&self, owner: &Object) {
        self.0.lock().pending.insert(owner.uid().to_owned());
    }

    /// An owner is done with; later looks replace earlier ones.
    pub(crate) fn end(&self, owner: &Object, proposals: Vec<Proposal>) {
        let mut inner = self.0.lock();
        inner.pending.remove(owner.uid());
        inner.owners.insert(format!("{} {}", owner.kind(), owner.key()), proposals);
    }
}

/// What an application would change, without the server's own counters.
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
