//! Autoscalers in their two versions: v1 supports only CPU, v2 is stored.
//!
//! Fields that v1 does not have are kept in annotations, as in upstream.

use serde_json::{Value, json};

use crate::meta::metadata_mut;

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";

/// Converts from v2 to v1.
pub(super) fn to_v1(object: &mut Value) {
    let Some(spec) = object["spec"].as_object_mut() else { return };
    let metrics = spec.shift_remove("metrics");
    let behavior = spec.shift_remove("behavior");
    let mut others = Vec::new();
    for metric in metrics.as_ref().and_then(Value::as_array).into_iter().flatten() {
        match cpu_target(metric) {
            Some(target) => {
                spec.insert("targetCPUUtilizationPercentage".into(), target.clone());
            }
            None => others.push(metric.clone()),
        }
    }
    annotate(object, METRICS, (!others.is_empty()).then(|| Value::Array(others)));
    annotate(object, BEHAVIOR, behavior);
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

fn status_to_v1(object: &mut Value) {
    let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) else { return };
    status.shift_remove("conditions");
    let current = status.shift_remove("currentMetrics");
    let cpu = current.as_ref().and_then(Value::as_array).into_iter().flatten().find_map(|metric| {
        let resource = &metric["resource"];
        (resource["name"] == "cpu").then(|| resource["current"].get("averageUtilization")).flatten()
    });
    if let Some(value) = cpu {
        status.insert("currentCPUUtilizationPercentage".into(), value.clone());
    }
}

/// Converts from v1 to v2.
pub(super) fn to_v2(object: &mut Value) {
    let mut metrics =
        restore(object, METRICS).and_then(|value| value.as_array().cloned()).unwrap_or_default();
    let behavior = restore(object, BEHAVIOR);
    let Some(spec) = object["spec"].as_object_mut() else { return };
    if let Some(target) = spec.shift_remove("targetCPUUtilizationPercentage") {
        let cpu = json!({
            "type": "Resource",
            "resource": {
                "name": "cpu",
                "target": { "type": "Utilization", "averageUtilization": target },
            },
        });
        metrics.insert(0, cpu);
    }
    if !metrics.is_empty() {
        spec.insert("metrics".into(), Value::Array(metrics));
    }
    if let Some(behavior) = behavior {
        spec.insert("behavior".into(), behavior);
    }
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
                {"type": "Resource", "resource": {"name": "cpu",
                    "target": {"type": "Utilization", "averageUtilization": 80}}},
                {"type": "Pods", "pods": {"metric": {"name": "m"}}},
            ],
            "behavior": {"scaleUp": {"policies": []}},
        }});
        let mut object = v2.clone();
        to_v1(&mut object);
        assert_eq!(object["spec"], json!({"maxReplicas": 3, "targetCPUUtilizationPercentage": 80}));
        to_v2(&mut object);
        assert_eq!(object, v2);
    }
}
