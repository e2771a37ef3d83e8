//! Rules of autoscalers, in both versions.

use serde_json::Value;

use super::{Problems, limits, resources};
use crate::fields::{is_empty, list, text, text_at};
use crate::names::{label_problems, path_segment_problems};

const METRIC_TYPES: [&str; 5] = ["ContainerResource", "External", "Object", "Pods", "Resource"];
/// The field of each type of metric, in the order of the checks.
const SOURCES: [(&str, &str); 5] = [
    ("Object", "object"),
    ("External", "external"),
    ("Pods", "pods"),
    ("Resource", "resource"),
    ("ContainerResource", "containerResource"),
];
const WINDOW_SECONDS_MAX: i64 = 3600;
const PERIOD_SECONDS_MAX: i64 = 1800;

/// Checks an autoscaler; one whose minimum was 0 may keep it.
pub(super) fn check(object: &Value, old: Option<&Value>, problems: &mut Problems) {
    let spec = &object["spec"];
    let may_be_zero = old.is_some_and(|old| old["spec"]["minReplicas"] == 0);
    let least = i64::from(!may_be_zero);
    let minimum = spec["minReplicas"].as_i64();
    let maximum = spec["maxReplicas"].as_i64().unwrap_or_default();
    if minimum.is_some_and(|minimum| minimum < least) {
        let detail = format!("must be greater than or equal to {least}");
        problems.invalid("spec.minReplicas", &spec["minReplicas"], &detail);
    }
    if maximum < 1 {
        problems.invalid("spec.maxReplicas", &maximum.into(), "must be greater than 0");
    }
    if minimum.is_some_and(|minimum| maximum < minimum) {
        let detail = "must be greater than or equal to `minReplicas`";
        problems.invalid("spec.maxReplicas", &maximum.into(), detail);
    }
    reference(&spec["scaleTargetRef"], "spec.scaleTargetRef", problems);
    metrics(object, minimum, problems);
    for direction in ["scaleUp", "scaleDown"] {
        let rules = &spec["behavior"][direction];
        if rules.is_object() {
            scaling(rules, &format!("spec.behavior.{direction}"), problems);
        }
    }
}

fn metrics(object: &Value, minimum: Option<i64>, problems: &mut Problems) {
    let spec = &object["spec"];
    let metrics = list(spec, "metrics");
    for (index, metric) in metrics.iter().enumerate() {
        self::metric(metric, &format!("spec.metrics[{index}]"), problems);
    }
    // The old version stores all metrics except CPU in an annotation.
    let others = text_at(object, "/metadata/annotations/autoscaling.alpha.kubernetes.io~1metrics");
    let others: Vec<Value> = serde_json::from_str(others).unwrap_or_default();
    let utilization = &spec["targetCPUUtilizationPercentage"];
    if utilization.as_i64().is_some_and(|percent| percent < 1) {
        let at = format!("spec.metrics[{}].resource.target.averageUtilization", others.len());
        problems.invalid(&at, utilization, "must be greater than 0");
    }
    let reaches_zero = |metric: &Value| matches!(text(metric, "type"), "Object" | "External");
    if minimum == Some(0) && !metrics.iter().chain(&others).any(reaches_zero) {
        let detail = "must specify at least one Object or External metric to support scaling to zero \
             replicas";
        problems.forbidden("spec.metrics", detail);
    }
}

/// Checks the kind and the name of another object.
fn reference(reference: &Value, path: &str, problems: &mut Problems) {
    for field in ["kind", "name"] {
        segment(reference, field, path, "", problems);
    }
}

/// Checks a required string that can be part of a URL.
fn segment(owner: &Value, field: &str, path: &str, missing: &str, problems: &mut Problems) {
    let path = format!("{path}.{field}");
    if is_empty(owner, field) {
        problems.required(&path, missing);
        return;
    }
    for problem in path_segment_problems(text(owner, field)) {
        problems.invalid(&path, &owner[field], &problem);
    }
}

fn metric(metric: &Value, path: &str, problems: &mut Problems) {
    let kind = text(metric, "type");
    let type_path = format!("{path}.type");
    if kind.is_empty() {
        problems.required(&type_path, "must specify a metric source type");
    }
    let kind_value = Value::from(kind);
    problems.one_of(&type_path, &kind_value, &METRIC_TYPES);
    let present: Vec<&str> = SOURCES
        .iter()
        .map(|(_, field)| *field)
        .filter(|field| metric[*field].is_object())
        .collect();
    if let Some(first) = present.first() {
        source(&metric[*first], first, &format!("{path}.{first}"), problems);
    }
    let expected = SOURCES.iter().find(|(each, _)| *each == kind).map(|(_, field)| *field);
    match expected {
        Some(field) if !metric[field].is_object() => {
            let detail = "must populate information for the given metric source";
            problems.required(&format!("{path}.{field}"), detail);
        }
        Some(_) => {}
        // Upstream reports this twice: for the type and for its source.
        None => problems.one_of(&type_path, &kind_value, &METRIC_TYPES),
    }
    if present.len() > 1 {
        for field in present.iter().filter(|field| Some(**field) != expected) {
            let detail = "must populate the given metric source only";
            problems.forbidden(&format!("{path}.{field}"), detail);
        }
    }
}

fn source(source: &Value, field: &str, path: &str, problems: &mut Problems) {
    match field {
        "object" => {
            reference(&source["describedObject"], &format!("{path}.describedObject"), problems);
        }
        "containerResource" => {
            container_resource(source, path, problems);
        }
        "resource" if is_empty(source, "name") => {
            problems.required(&format!("{path}.name"), "must specify a resource name");
        }
        _ => {}
    }
    let is_named = matches!(field, "object" | "external" | "pods");
    if is_named {
        let (metric, at) = (&source["metric"], format!("{path}.metric"));
        segment(metric, "name", &at, "must specify a metric name", problems);
    }
    let (wanted, at) = (&source["target"], format!("{path}.target"));
    target(wanted, &at, problems);
    let has = |field: &str| !wanted[field].is_null();
    let missing = match field {
        "object" if !has("value") && !has("averageValue") => {
            Some("must set either a target value or averageValue")
        }
        "external" if !has("value") && !has("averageValue") => {
            Some("must set either a target value for metric or a per-pod target")
        }
        "pods" if !has("averageValue") => Some("must specify a positive target averageValue"),
        _ => None,
    };
    if let Some(detail) = missing {
        problems.required(&format!("{at}.averageValue"), detail);
    }
    if field == "external" && has("value") && has("averageValue") {
        let detail = "may not set both a target value for metric and a per-pod target";
        problems.forbidden(&format!("{at}.value"), detail);
    }
    if is_named {
        return;
    }
    if !has("averageUtilization") && !has("averageValue") {
        let detail = "must set either a target raw value or a target utilization";
        problems.required(&format!("{at}.averageUtilization"), detail);
    }
    if has("averageUtilization") && has("averageValue") {
        let detail = "may not set both a target raw value and a target utilization";
        problems.forbidden(&format!("{at}.averageValue"), detail);
    }
}

fn container_resource(source: &Value, path: &str, problems: &mut Problems) {
    let name = format!("{path}.name");
    if is_empty(source, "name") {
        problems.required(&name, "must specify a resource name");
    } else {
        resources::container_resource(text(source, "name"), &name, problems);
    }
    let container = format!("{path}.container");
    if is_empty(source, "container") {
        problems.required(&container, "must specify a container");
    } else {
        for problem in label_problems(text(source, "container")) {
            problems.invalid(&container, &source["container"], &problem);
        }
    }
}

fn target(target: &Value, path: &str, problems: &mut Problems) {
    let kind = text(target, "type");
    let type_path = format!("{path}.type");
    if kind.is_empty() {
        problems.required(&type_path, "must specify a metric target type");
    }
    if !matches!(kind, "Utilization" | "Value" | "AverageValue") {
        let detail = "must be either Utilization, Value, or AverageValue";
        problems.invalid(&type_path, &kind.into(), detail);
    }
    for field in ["value", "averageValue"] {
        if resources::nanos(&target[field]).is_some_and(|amount| amount <= 0) {
            let shown = limits::go_quantity(&target[field]);
            problems.invalid_text(&format!("{path}.{field}"), &shown, "must be positive");
        }
    }
    let utilization = &target["averageUtilization"];
    if utilization.as_i64().is_some_and(|percent| percent < 1) {
        let at = format!("{path}.averageUtilization");
        problems.invalid(&at, utilization, "must be greater than 0");
    }
}

fn scaling(rules: &Value, path: &str, problems: &mut Problems) {
    let window = rules["stabilizationWindowSeconds"].as_i64();
    let window_path = format!("{path}.stabilizationWindowSeconds");
    let mut refuse_window = |detail: &str| {
        problems.invalid(&window_path, &rules["stabilizationWindowSeconds"], detail);
    };
    if window.is_some_and(|seconds| seconds < 0) {
        refuse_window("must be greater than or equal to zero");
    }
    if window.is_some_and(|seconds| seconds > WINDOW_SECONDS_MAX) {
        refuse_window(&format!("must be less than or equal to {WINDOW_SECONDS_MAX}"));
    }
    problems.one_of_if_set(rules, path, "selectPolicy", &["Disabled", "Max", "Min"]);
    if is_empty(rules, "policies") {
        problems.required(&format!("{path}.policies"), "must specify at least one Policy");
    }
    for (index, policy) in list(rules, "policies").iter().enumerate() {
        self::policy(policy, &format!("{path}.policies[{index}]"), problems);
    }
}

fn policy(policy: &Value, path: &str, problems: &mut Problems) {
    problems.one_of(&format!("{path}.type"), &text(policy, "type").into(), &["Percent", "Pods"]);
    for field in ["value", "periodSeconds"] {
        let number = policy[field].as_i64().unwrap_or_default();
        if number <= 0 {
            let at = format!("{path}.{field}");
            problems.invalid(&at, &number.into(), "must be greater than zero");
        }
    }
    let period = &policy["periodSeconds"];
    if period.as_i64().is_some_and(|seconds| seconds > PERIOD_SECONDS_MAX) {
        let detail = format!("must be less than or equal to {PERIOD_SECONDS_MAX}");
        problems.invalid(&format!("{path}.periodSeconds"), period, &detail);
    }
}
