//! Autoscalers in their two versions: v1 supports only CPU, v2 is stored.
//!
//! Fields that v1 does not have are kept in annotations, as in upstream. The annotations of an
//! object in v2 are never those of the conversion.

mod metrics;

use serde_json::{Map, Value, json};

use crate::meta::metadata_mut;

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";

/// Converts from v2 to v1.
pub(super) fn to_v1(object: &mut Value) {
    for key in [METRICS, CURRENT_METRICS, CONDITIONS, BEHAVIOR] {
        restore(object, key);
    }
    let Some(spec) = object["spec"].as_object_mut() else { return };
    let metrics = spec.shift_remove("metrics");
    let behavior = spec.shift_remove("behavior");
    let mut others = Vec::new();
    for metric in metrics.as_ref().and_then(Value::as_array).into_iter().flatten() {
        match cpu_target(metric) {
            Some(target) => {
                spec.entry("targetCPUUtilizationPercentage").or_insert_with(|| target.clone());
            }
            None => others.push(metrics::source_to_v1(metric)),
        }
    }
    annotate(object, METRICS, (!others.is_empty()).then_some(Value::Array(others)));
    annotate(object, BEHAVIOR, behavior.filter(|it| !it.is_null()).map(|it| go_behavior(&it)));
    status_to_v1(object);
}

fn cpu_target(metric: &Value) -> Option<&Value> {
    let resource = &metric["resource"];
    (metric["type"] == "Resource" && resource["name"] == "cpu")
        .then(|| resource["target"].get("averageUtilization"))
        .flatten()
}

fn annotate(object: &mut Value, key: &str, value: Option<Value>) {
    let Some(value) = value else { return };
    let metadata = metadata_mut(object);
    let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
    annotations[key] = Value::String(value.to_string());
}

/// The behavior as upstream writes it: with the names of Go's fields, and with absent ones as null.
fn go_behavior(behavior: &Value) -> Value {
    let policy = |policy: &Value| {
        json!({
            "Type": policy["type"],
            "Value": policy["value"],
            "PeriodSeconds": policy["periodSeconds"],
        })
    };
    let rules = |rules: &Value| {
        if rules.is_null() {
            return Value::Null;
        }
        let policies: Option<Vec<Value>> =
            rules["policies"].as_array().map(|policies| policies.iter().map(policy).collect());
        json!({
            "StabilizationWindowSeconds": rules["stabilizationWindowSeconds"],
            "SelectPolicy": rules["selectPolicy"],
            "Policies": policies,
            "Tolerance": rules["tolerance"],
        })
    };
    json!({ "ScaleUp": rules(&behavior["scaleUp"]), "ScaleDown": rules(&behavior["scaleDown"]) })
}

/// The behavior with the names of the API. Go accepts any case of the first letter.
fn api_behavior(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let lower = |name: &str| name[..1].to_lowercase() + &name[1..];
            let fields: Map<String, Value> = fields
                .iter()
                .filter(|(name, value)| !value.is_null() && name.is_ascii() && !name.is_empty())
                .map(|(name, value)| (lower(name), api_behavior(value)))
                .collect();
            Value::Object(fields)
        }
        Value::Array(items) => items.iter().map(api_behavior).collect(),
        other => other.clone(),
    }
}

fn status_to_v1(object: &mut Value) {
    let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) else { return };
    let conditions = status.shift_remove("conditions");
    let current = status.shift_remove("currentMetrics");
    let current = current.as_ref().and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let cpu = current.iter().find_map(|metric| {
        let resource = &metric["resource"];
        (resource["name"] == "cpu").then(|| resource["current"].get("averageUtilization")).flatten()
    });
    if let Some(value) = cpu {
        status.insert("currentCPUUtilizationPercentage".into(), value.clone());
    }
    let metrics: Vec<Value> = current.iter().map(metrics::status_to_v1).collect();
    annotate(object, CURRENT_METRICS, (!metrics.is_empty()).then_some(Value::Array(metrics)));
    let conditions: Vec<Value> = conditions
        .as_ref()
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .map(condition)
        .collect();
    annotate(object, CONDITIONS, (!conditions.is_empty()).then_some(Value::Array(conditions)));
}

/// A condition with its fields in the order of Go's struct.
fn condition(condition: &Value) -> Value {
    let mut ordered = json!({
        "type": condition["type"],
        "status": condition["status"],
        "lastTransitionTime": condition["lastTransitionTime"],
    });
    for key in ["reason", "message"] {
        if condition[key].as_str().is_some_and(|text| !text.is_empty()) {
            ordered[key] = condition[key].clone();
        }
    }
    ordered
}

/// Converts from v1 to v2.
pub(super) fn to_v2(object: &mut Value) {
    let others = restore(object, METRICS);
    let mut metrics: Vec<Value> = list(others.as_ref()).iter().map(metrics::source_to_v2).collect();
    let behavior = restore(object, BEHAVIOR)
        .map(|behavior| api_behavior(&behavior))
        .filter(|behavior| behavior.as_object().is_some_and(|fields| !fields.is_empty()));
    let Some(spec) = object["spec"].as_object_mut() else { return };
    if let Some(target) = spec.shift_remove("targetCPUUtilizationPercentage") {
        metrics.push(json!({
            "type": "Resource",
            "resource": {
                "name": "cpu",
                "target": { "type": "Utilization", "averageUtilization": target },
            },
        }));
    }
    if !metrics.is_empty() {
        spec.insert("metrics".into(), Value::Array(metrics));
    }
    if let Some(behavior) = behavior {
        spec.insert("behavior".into(), behavior);
    }
    status_to_v2(object);
}

fn status_to_v2(object: &mut Value) {
    let current = restore(object, CURRENT_METRICS).filter(Value::is_array);
    let conditions = restore(object, CONDITIONS).filter(Value::is_array);
    let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) else { return };
    let cpu = status.shift_remove("currentCPUUtilizationPercentage");
    if let Some(current) = current {
        let current: Vec<Value> = list(Some(&current)).iter().map(metrics::status_to_v2).collect();
        status.insert("currentMetrics".into(), Value::Array(current));
    } else if let Some(cpu) = cpu.filter(|cpu| !cpu.is_null()) {
        let metric = json!({
            "type": "Resource",
            "resource": { "name": "cpu", "current": { "averageUtilization": cpu } },
        });
        status.insert("currentMetrics".into(), json!([metric]));
    }
    if let Some(conditions) = conditions {
        status.insert("conditions".into(), conditions);
    }
}

fn list(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// Removes an annotation and returns its value.
fn restore(object: &mut Value, key: &str) -> Option<Value> {
    let annotations = object["metadata"].get_mut("annotations")?.as_object_mut()?;
    let text = annotations.shift_remove(key)?;
    serde_json::from_str(text.as_str()?).ok()
}

#[cfg(test)]
mod tests {
    //! Tests for autoscaler conversion.
    use serde_json::json;

    use super::{to_v1, to_v2};

    #[test]
    fn nothing_is_lost_between_versions() {
        let v2 = json!({"metadata": {"name": "a", "annotations": {"x": "y"}}, "spec": {
            "maxReplicas": 3,
            "metrics": [
                {"type": "Pods", "pods": {"metric": {"name": "m"},
                    "target": {"type": "AverageValue", "averageValue": "1"}}},
                {"type": "Resource", "resource": {"name": "cpu",
                    "target": {"type": "Utilization", "averageUtilization": 80}}},
            ],
            "behavior": {"scaleUp": {"policies": []}},
        }, "status": {
            "currentMetrics": [{"type": "Resource", "resource": {"name": "cpu",
                "current": {"averageUtilization": 7, "averageValue": "1"}}}],
            "conditions": [{"type": "AbleToScale", "status": "True", "lastTransitionTime": null}],
        }});
        let mut object = v2.clone();
        to_v1(&mut object);
        assert_eq!(object["spec"], json!({"maxReplicas": 3, "targetCPUUtilizationPercentage": 80}));
        assert_eq!(object["status"], json!({"currentCPUUtilizationPercentage": 7}));
        to_v2(&mut object);
        assert_eq!(object, v2);
    }

    #[test]
    fn the_cpu_metric_of_v1_comes_last_and_behavior_has_the_names_of_go() {
        let mut object = json!({"metadata": {"name": "a"}, "spec": {
            "metrics": [
                {"type": "Resource", "resource": {"name": "cpu",
                    "target": {"type": "Utilization", "averageUtilization": 80}}},
                {"type": "Pods", "pods": {"metric": {"name": "m"},
                    "target": {"type": "AverageValue", "averageValue": "1"}}},
            ],
            "behavior": {"scaleDown": {"selectPolicy": "Min"}},
        }});
        to_v1(&mut object);
        assert_eq!(
            object["metadata"]["annotations"][super::BEHAVIOR],
            r#"{"ScaleUp":null,"ScaleDown":{"StabilizationWindowSeconds":null,"SelectPolicy":"Min","Policies":null,"Tolerance":null}}"#
        );
        to_v2(&mut object);
        assert_eq!(object["spec"]["metrics"][1]["type"], "Resource");
        assert_eq!(object["spec"]["behavior"], json!({"scaleDown": {"selectPolicy": "Min"}}));
    }
}
