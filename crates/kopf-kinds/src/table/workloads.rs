//! Rows of workloads, and of the kinds that scale and protect them.

use serde_json::{Value, json};

use super::format::{int_or_string, labels, selector, selector_text};
use super::{Row, age};

pub(super) fn cells(resource: &str, row: &Row<'_>) -> Option<Vec<Value>> {
    Some(match resource {
        "deployments" => deployment(row),
        "replicasets" => replica_set(row, selector(row.value("/spec/selector"))),
        "replicationcontrollers" => replica_set(row, labels(row.value("/spec/selector"))),
        "statefulsets" => stateful_set(row),
        "daemonsets" => daemon_set(row),
        "jobs" => job(row),
        "cronjobs" => cron_job(row),
        "controllerrevisions" => controller_revision(row),
        "horizontalpodautoscalers" => autoscaler(row),
        "poddisruptionbudgets" => disruption_budget(row),
        _ => return None,
    })
}

fn deployment(row: &Row<'_>) -> Vec<Value> {
    let [names, images] = row.containers("/spec/template/spec");
    vec![
        row.name(),
        json!(format!("{}/{}", row.count("/status/readyReplicas"), row.count("/spec/replicas"))),
        json!(row.count("/status/updatedReplicas")),
        json!(row.count("/status/availableReplicas")),
        row.age(),
        names,
        images,
        json!(selector_text(row.value("/spec/selector"))),
    ]
}

fn replica_set(row: &Row<'_>, selector: String) -> Vec<Value> {
    let [names, images] = row.containers("/spec/template/spec");
    vec![
        row.name(),
        json!(row.count("/spec/replicas")),
        json!(row.count("/status/replicas")),
        json!(row.count("/status/readyReplicas")),
        row.age(),
        names,
        images,
        json!(selector),
    ]
}

fn stateful_set(row: &Row<'_>) -> Vec<Value> {
    let [names, images] = row.containers("/spec/template/spec");
    let ready = row.count("/status/readyReplicas");
    let ready = format!("{ready}/{}", row.count("/spec/replicas"));
    vec![row.name(), json!(ready), row.age(), names, images]
}

fn daemon_set(row: &Row<'_>) -> Vec<Value> {
    let [names, images] = row.containers("/spec/template/spec");
    vec![
        row.name(),
        json!(row.count("/status/desiredNumberScheduled")),
        json!(row.count("/status/currentNumberScheduled")),
        json!(row.count("/status/numberReady")),
        json!(row.count("/status/updatedNumberScheduled")),
        json!(row.count("/status/numberAvailable")),
        json!(labels(row.value("/spec/template/spec/nodeSelector"))),
        row.age(),
        names,
        images,
        json!(selector(row.value("/spec/selector"))),
    ]
}

fn job(row: &Row<'_>) -> Vec<Value> {
    let succeeded = row.count("/status/succeeded");
    let completions = match row.value("/spec/completions").as_i64() {
        Some(wanted) => format!("{succeeded}/{wanted}"),
        None if row.count("/spec/parallelism") > 1 => {
            format!("{succeeded}/1 of {}", row.count("/spec/parallelism"))
        }
        None => format!("{succeeded}/1"),
    };
    let (start, end) = (row.text("/status/startTime"), row.text("/status/completionTime"));
    let duration = match (start, end) {
        ("", _) => String::new(),
        (start, "") => age::since(start, row.now),
        (start, end) => age::between(start, end),
    };
    let is = |condition: &str| row.condition(condition) == Some("True");
    let status = match () {
        () if is("Complete") => "Complete",
        () if is("Failed") => "Failed",
        () if row.is_deleting() => "Terminating",
        () if is("Suspended") => "Suspended",
        () if is("FailureTarget") => "FailureTarget",
        () => "Running",
    };
    let [names, images] = row.containers("/spec/template/spec");
    vec![
        row.name(),
        json!(status),
        json!(completions),
        json!(duration),
        row.age(),
        names,
        images,
        json!(selector(row.value("/spec/selector"))),
    ]
}

fn cron_job(row: &Row<'_>) -> Vec<Value> {
    let last = match row.text("/status/lastScheduleTime") {
        "" => "<none>".to_owned(),
        time => age::since(time, row.now),
    };
    let suspend = match row.value("/spec/suspend").as_bool() {
        Some(true) => "True",
        Some(false) => "False",
        None => "<unset>",
    };
    let [names, images] = row.containers("/spec/jobTemplate/spec/template/spec");
    vec![
        row.name(),
        json!(row.text("/spec/schedule")),
        row.text_or("/spec/timeZone", "<none>"),
        json!(suspend),
        json!(row.size("/status/active")),
        json!(last),
        row.age(),
        names,
        images,
        json!(selector(row.value("/spec/jobTemplate/spec/selector"))),
    ]
}

fn controller_revision(row: &Row<'_>) -> Vec<Value> {
    let owners = row.list("/metadata/ownerReferences");
    let controller = owners.iter().find(|owner| owner["controller"] == true).map(|owner| {
        let text = |field: &str| owner[field].as_str().unwrap_or_default();
        let group = text("apiVersion").split_once('/').map_or("", |(group, _)| group);
        let dot = if group.is_empty() { "" } else { "." };
        format!("{}{dot}{group}/{}", text("kind").to_lowercase(), text("name"))
    });
    let controller = controller.unwrap_or_else(|| "<none>".into());
    vec![row.name(), json!(controller), json!(row.count("/revision")), row.age()]
}

fn autoscaler(row: &Row<'_>) -> Vec<Value> {
    let kind = row.text("/spec/scaleTargetRef/kind");
    let reference = format!("{kind}/{}", row.text("/spec/scaleTargetRef/name"));
    let minimum = row.value("/spec/minReplicas").as_i64();
    let minimum = minimum.map_or_else(|| "<unset>".to_owned(), |minimum| minimum.to_string());
    vec![
        row.name(),
        json!(reference),
        json!(metrics(row)),
        json!(minimum),
        json!(row.count("/spec/maxReplicas")),
        json!(row.count("/status/currentReplicas")),
        row.age(),
    ]
}

fn metrics(row: &Row<'_>) -> String {
    const SHOWN_MAX: usize = 2;
    if let Some(target) = row.value("/spec/targetCPUUtilizationPercentage").as_i64() {
        let current = row.value("/status/currentCPUUtilizationPercentage").as_i64();
        let current = current.map_or_else(|| "<unknown>".into(), |current| format!("{current}%"));
        return format!("cpu: {current}/{target}%");
    }
    let specs = row.list("/spec/metrics");
    if specs.is_empty() {
        return "<none>".into();
    }
    let statuses = row.list("/status/currentMetrics");
    let texts: Vec<String> = specs
        .iter()
        .enumerate()
        .map(|(index, spec)| metric(spec, statuses.get(index).unwrap_or(&Value::Null)))
        .collect();
    let shown = texts[..texts.len().min(SHOWN_MAX)].join(", ");
    if texts.len() > SHOWN_MAX {
        format!("{shown} + {} more...", texts.len() - SHOWN_MAX)
    } else {
        shown
    }
}

fn metric(spec: &Value, status: &Value) -> String {
    let (field, has_name) = match spec["type"].as_str() {
        Some("External") => ("external", false),
        Some("Pods") => ("pods", false),
        Some("Object") => ("object", false),
        Some("Resource") => ("resource", true),
        Some("ContainerResource") => ("containerResource", true),
        _ => return "<unknown type>".into(),
    };
    let target = &spec[field]["target"];
    let current = &status[field]["current"];
    let quantity = |value: &Value| value.as_str().map(str::to_owned);
    let percent = |value: &Value| value.as_i64().map(|value| format!("{value}%"));
    let unknown = || "<unknown>".to_owned();
    let prefix = if has_name {
        format!("{}: ", spec[field]["name"].as_str().unwrap_or_default())
    } else {
        String::new()
    };
    if let Some(average) = quantity(&target["averageValue"]) {
        let now = quantity(&current["averageValue"]).unwrap_or_else(unknown);
        let suffix = if matches!(field, "external" | "object") { " (avg)" } else { "" };
        return format!("{prefix}{now}/{average}{suffix}");
    }
    if has_name {
        let now = percent(&current["averageUtilization"]).unwrap_or_else(unknown);
        let wanted = percent(&target["averageUtilization"]).unwrap_or_else(|| "<auto>".into());
        return format!("{prefix}{now}/{wanted}");
    }
    let now = quantity(&current["value"]).unwrap_or_else(unknown);
    format!("{now}/{}", quantity(&target["value"]).unwrap_or_default())
}

fn disruption_budget(row: &Row<'_>) -> Vec<Value> {
    let bound = |pointer: &str| match row.value(pointer) {
        Value::Null => json!("N/A"),
        value => json!(int_or_string(value)),
    };
    vec![
        row.name(),
        bound("/spec/minAvailable"),
        bound("/spec/maxUnavailable"),
        json!(row.count("/status/disruptionsAllowed")),
        row.age(),
    ]
}
