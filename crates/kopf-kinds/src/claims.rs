//! Server-side defaults of claims: their data sources.

use serde_json::Value;

use super::KindContext;
use super::fields::{is_empty, object_mut, text};

/// Drops unsupported data sources, and sets the source in both fields.
pub(super) fn prepare_create(_: &KindContext<'_>, object: &mut Value) {
    let Some(spec) = object_mut(object, "spec") else { return };
    settle(spec, &Value::Null);
}

/// As for a new claim; an existing source is kept.
pub(super) fn prepare_update(context: &KindContext<'_>, object: &mut Value, old: &Value) {
    if context.subresource.is_empty()
        && let Some(spec) = object_mut(object, "spec")
    {
        settle(spec, &old["spec"]);
    }
}

fn settle(spec: &mut Value, old: &Value) {
    const FIELDS: [&str; 2] = ["dataSource", "dataSourceRef"];
    let has = |spec: &Value, field: &str| spec.get(field).is_some_and(Value::is_object);
    let is_in_use = FIELDS.iter().any(|field| has(old, field));
    if !is_in_use && !has(spec, "dataSourceRef") && !is_supported(&spec["dataSource"]) {
        spec.as_object_mut().and_then(|fields| fields.shift_remove("dataSource"));
    }
    for (source, target) in [FIELDS, ["dataSourceRef", "dataSource"]].map(|[a, b]| (a, b)) {
        if has(spec, source) && !has(spec, target) && is_empty(&spec[source], "namespace") {
            spec[target] = spec[source].clone();
        }
    }
}

/// Whether a data source is of a kind that the older field supports.
fn is_supported(source: &Value) -> bool {
    match text(source, "apiGroup") {
        "" => source["kind"] == "PersistentVolumeClaim",
        "snapshot.storage.k8s.io" => source["kind"] == "VolumeSnapshot",
        _ => false,
    }
}
