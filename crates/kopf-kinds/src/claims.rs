//! What the server decides about claims: where their data come from.

use serde_json::Value;

use super::KindContext;
use super::fields::{is_empty, object_mut, text};

/// Drops old data sources that were never supported, and names the source in both fields.
pub(super) fn prepare_create(_: &KindContext<'_>, object: &mut Value) {
    let Some(spec) = object_mut(object, "spec") else { return };
    settle(spec, &Value::Null);
}

/// Like a new claim; a source that is there stays.
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

/// Whether a data source was possible before there were references to anything.
fn is_supported(source: &Value) -> bool {
    match text(source, "apiGroup") {
        "" => source["kind"] == "PersistentVolumeClaim",
        "snapshot.storage.k8s.io" => source["kind"] == "VolumeSnapshot",
        _ => false,
    }
}
