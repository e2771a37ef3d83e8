//! Rules of namespaces.

use serde_json::Value;

use super::Problems;
use crate::fields::list;
use crate::names::qualified_name_problems;

/// The errors of a namespace.
pub(super) fn check(spec: &Value, problems: &mut Problems) {
    for name in list(spec, "finalizers") {
        finalizer(name, "spec.finalizers", problems);
    }
}

/// The errors of a write to `/finalize`, which reports each finalizer by its index.
pub(super) fn finalize(object: &Value, problems: &mut Problems) {
    for (index, name) in list(&object["spec"], "finalizers").iter().enumerate() {
        finalizer(name, &format!("spec.finalizers[{index}]"), problems);
    }
}

fn finalizer(finalizer: &Value, path: &str, problems: &mut Problems) {
    const STANDARD: [&str; 3] = ["kubernetes", "orphan", "foregroundDeletion"];
    let name = finalizer.as_str().unwrap_or_default();
    for problem in qualified_name_problems(name) {
        problems.invalid(path, finalizer, &problem);
    }
    if !name.contains('/') && !STANDARD.contains(&name) {
        let detail = "name is neither a standard finalizer name nor is it fully qualified";
        problems.invalid(path, finalizer, detail);
    }
}
