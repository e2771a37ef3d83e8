//! Which calls were stored, according to the administrator's watch of all versions of all objects.
//!
//! The write that stores a success also stores the identity of the call: our operator in an
//! annotation, that of controller-runtime in the status.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use crate::chaos::watcher::Notes;

const ANNOTATION: &str = "kopf.zalando.org/counted-by";
const STATUS_FIELD: &str = "countedBy";

/// Filled by the watch.
#[derive(Default)]
pub(super) struct Stored {
    calls: Mutex<BTreeSet<String>>,
    gaps: AtomicU32,
}

impl Stored {
    /// The identities of all calls that were stored.
    pub(super) fn calls(&self) -> BTreeSet<String> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How often versions may have been missed.
    pub(super) fn gaps(&self) -> u32 {
        self.gaps.load(Ordering::Relaxed)
    }
}

impl Notes for Stored {
    fn note(&self, object: &Value, _is_gone: bool) {
        let annotation = &object["metadata"]["annotations"][ANNOTATION];
        let call = annotation.as_str().or_else(|| object["status"][STATUS_FIELD].as_str());
        if let Some(call) = call {
            let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
            calls.insert(call.to_owned());
        }
    }

    fn note_gap(&self) {
        self.gaps.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_call_that_any_version_names_was_stored() {
        let stored = Stored::default();
        let ours = |call: &str| json!({"metadata": {"annotations": {ANNOTATION: call}}});
        stored.note(&json!({"metadata": {}}), false);
        stored.note(&ours("7-1"), false);
        stored.note(&ours("8-1"), false);
        stored.note(&json!({"metadata": {}, "status": {STATUS_FIELD: "9-1"}}), false);
        assert_eq!(stored.calls(), ["7-1", "8-1", "9-1"].map(str::to_owned).into());
        assert_eq!(stored.gaps(), 0);
        stored.note_gap();
        assert_eq!(stored.gaps(), 1);
    }
}
