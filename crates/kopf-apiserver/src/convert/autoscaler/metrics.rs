//! The metrics of autoscalers as v1 writes them into annotations: flat, where v2 has nested fields.
//!
//! Pure. The tables list the fields of v1 in the order of Go's structs.

use serde_json::{Map, Value, json};

/// A field of v1, the path of the same field in v2, and whether v1 writes it even if it is absent.
type Row = (&'static str, &'static [&'static str], bool);
type Table = [(&'static str, &'static [Row]); 5];

const SOURCES: Table = [
    (
        "object",
        &[
            ("target", &["describedObject"], true),
            ("metricName", &["metric", "name"], true),
            ("targetValue", &["target", "value"], true),
            ("selector", &["metric", "selector"], false),
            ("averageValue", &["target", "averageValue"], false),
        ],
    ),
    (
        "pods",
        &[
            ("metricName", &["metric", "name"], true),
            ("targetAverageValue", &["target", "averageValue"], true),
            ("selector", &["metric", "selector"], false),
        ],
    ),
    (
        "resource",
        &[
            ("name", &["name"], true),
            ("targetAverageUtilization", &["target", "averageUtilization"], false),
            ("targetAverageValue", &["target", "averageValue"], false),
        ],
    ),
    (
        "containerResource",
        &[
            ("name", &["name"], true),
            ("targetAverageUtilization", &["target", "averageUtilization"], false),
            ("targetAverageValue", &["target", "averageValue"], false),
            ("container", &["container"], true),
        ],
    ),
    (
        "external",
        &[
            ("metricName", &["metric", "name"], true),
            ("metricSelector", &["metric", "selector"], false),
            ("targetValue", &["target", "value"], false),
            ("targetAverageValue", &["target", "averageValue"], false),
        ],
    ),
];

const STATUSES: Table = [
    (
        "object",
        &[
            ("target", &["describedObject"], true),
            ("metricName", &["metric", "name"], true),
            ("currentValue", &["current", "value"], true),
            ("selector", &["metric", "selector"], false),
            ("averageValue", &["current", "averageValue"], false),
        ],
    ),
    (
        "pods",
        &[
            ("metricName", &["metric", "name"], true),
            ("currentAverageValue", &["current", "averageValue"], true),
            ("selector", &["metric", "selector"], false),
        ],
    ),
    (
        "resource",
        &[
            ("name", &["name"], true),
            ("currentAverageUtilization", &["current", "averageUtilization"], false),
            ("currentAverageValue", &["current", "averageValue"], true),
        ],
    ),
    (
        "containerResource",
        &[
            ("name", &["name"], true),
            ("currentAverageUtilization", &["current", "averageUtilization"], false),
            ("currentAverageValue", &["current", "averageValue"], true),
            ("container", &["container"], true),
        ],
    ),
    (
        "external",
        &[
            ("metricName", &["metric", "name"], true),
            ("metricSelector", &["metric", "selector"], false),
            ("currentValue", &["current", "value"], true),
            ("currentAverageValue", &["current", "averageValue"], false),
        ],
    ),
];

/// An item of `spec.metrics` in the form of v1.
pub(super) fn source_to_v1(metric: &Value) -> Value {
    flattened(metric, &SOURCES)
}

/// An item of `status.currentMetrics` in the form of v1.
pub(super) fn status_to_v1(metric: &Value) -> Value {
    flattened(metric, &STATUSES)
}

/// An item of `spec.metrics` from the form of v1.
pub(super) fn source_to_v2(metric: &Value) -> Value {
    let mut nested = nested(metric, &SOURCES);
    for (kind, _) in SOURCES {
        if let Some(target) = nested.get_mut(kind).map(|source| &mut source["target"]) {
            target["type"] = target_type(kind, target).into();
        }
    }
    nested
}

/// An item of `status.currentMetrics` from the form of v1.
pub(super) fn status_to_v2(metric: &Value) -> Value {
    nested(metric, &STATUSES)
}

fn target_type(kind: &str, target: &Value) -> &'static str {
    let has = |key: &str| target.get(key).is_some_and(|value| !value.is_null());
    match kind {
        "object" if !has("averageValue") => "Value",
        "external" if has("value") => "Value",
        "resource" | "containerResource" if has("averageUtilization") => "Utilization",
        _ => "AverageValue",
    }
}

fn flattened(metric: &Value, table: &Table) -> Value {
    let mut flat = json!({ "type": metric["type"] });
    for (kind, rows) in table {
        let source = &metric[*kind];
        if source.is_null() {
            continue;
        }
        let mut fields = Map::new();
        for (name, path, is_always_written) in *rows {
            let value = path.iter().fold(source, |value, key| &value[*key]);
            let value = if *name == "target" { reference(value) } else { value.clone() };
            if !value.is_null() {
                fields.insert((*name).into(), value);
            } else if *is_always_written {
                let zero = if name.ends_with("Value") { "0" } else { "" };
                fields.insert((*name).into(), zero.into());
            }
        }
        flat[*kind] = Value::Object(fields);
    }
    flat
}

/// A reference with its fields in the order of Go's struct.
fn reference(value: &Value) -> Value {
    let mut ordered = json!({ "kind": value["kind"], "name": value["name"] });
    if let Some(version) = value.get("apiVersion").filter(|version| !version.is_null()) {
        ordered["apiVersion"] = version.clone();
    }
    ordered
}

fn nested(metric: &Value, table: &Table) -> Value {
    let mut nested = json!({ "type": metric["type"] });
    for (kind, rows) in table {
        let source = &metric[*kind];
        if source.is_null() {
            continue;
        }
        let mut fields = json!({});
        for (name, path, _) in *rows {
            let value = &source[*name];
            if !value.is_null() {
                let place = path.iter().fold(&mut fields, |place, key| &mut place[*key]);
                *place = value.clone();
            }
        }
        nested[*kind] = fields;
    }
    nested
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{source_to_v1, source_to_v2};

    #[test]
    fn v1_has_flat_metrics_in_the_order_of_go() {
        let pods = json!({"type": "Pods", "pods": {
            "metric": {"name": "rps", "selector": {"matchLabels": {"a": "b"}}},
            "target": {"type": "AverageValue", "averageValue": "10"},
        }});
        assert_eq!(
            source_to_v1(&pods).to_string(),
            r#"{"type":"Pods","pods":{"metricName":"rps","targetAverageValue":"10","selector":{"matchLabels":{"a":"b"}}}}"#
        );
        assert_eq!(source_to_v2(&source_to_v1(&pods)), pods);
    }

    #[test]
    fn the_type_of_a_target_follows_from_its_fields() {
        for (metric, kind) in [
            (
                json!({"type": "External", "external": {"metricName": "m", "targetValue": "1"}}),
                "Value",
            ),
            (
                json!({"type": "External", "external": {"metricName": "m", "targetAverageValue": "1"}}),
                "AverageValue",
            ),
        ] {
            assert_eq!(source_to_v2(&metric)["external"]["target"]["type"], kind);
        }
    }
}
