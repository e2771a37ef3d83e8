//! Objects as table rows, as printed by `kubectl get`.
//!
//! Pure. Responsible for column definitions and cells; the encoder wraps them in a `Table`.
//! Built-in resources have the columns of the real server, custom ones those of their CRD, all
//! others name and creation time.

mod age;
mod custom;
mod format;
mod misc;
mod network;
mod pods;
mod storage;
mod workloads;

use std::collections::HashMap;
use std::sync::OnceLock;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::resource::ResourceInfo;

/// An object to be converted to a row.
pub(crate) struct Row<'a> {
    object: &'a Value,
    now: Timestamp,
}

/// The `columnDefinitions` of a resource.
pub fn columns(resource: &ResourceInfo) -> Value {
    if let Some(custom) = &resource.custom {
        return custom::columns(&custom.printer_columns);
    }
    match recorded().get(key(resource).as_str()) {
        Some(columns) => columns.clone(),
        None => {
            let created = column("Created At", "date", "", 0, CREATED_DESCRIPTION);
            json!([column("Name", "string", "name", 0, NAME_DESCRIPTION), created])
        }
    }
}

/// Whether the real server returns null instead of an empty list of rows for this resource.
pub fn has_null_rows(resource: &ResourceInfo) -> bool {
    !resource.is_custom() && columns(resource)[1]["name"] == "Created At"
}

/// The `cells` of one object; `now` is for ages.
pub fn cells(resource: &ResourceInfo, object: &Value, now: Timestamp) -> Vec<Value> {
    let row = Row { object, now };
    if let Some(custom) = &resource.custom {
        return custom::cells(&custom.printer_columns, &row);
    }
    match built_in(&resource.group, &resource.resource, &row) {
        Some(cells) => cells,
        // The real server prints the bare timestamp here.
        None => vec![row.name(), row.value("/metadata/creationTimestamp").clone()],
    }
}

/// The `conditions` of a row, by which kubectl hides finished pods in some views.
pub fn row_conditions(resource: &ResourceInfo, object: &Value) -> Option<Value> {
    if !resource.group.is_empty() || resource.resource != "pods" {
        return None;
    }
    let (reason, message) = match object.pointer("/status/phase").and_then(Value::as_str)? {
        "Succeeded" => ("Succeeded", "The pod has completed successfully."),
        "Failed" => ("Failed", "The pod failed."),
        _ => return None,
    };
    Some(json!([{"type": "Completed", "status": "True", "reason": reason, "message": message}]))
}

fn built_in(group: &str, resource: &str, row: &Row<'_>) -> Option<Vec<Value>> {
    match (group, resource) {
        ("", "pods") => Some(pods::pod(row)),
        ("" | "apps" | "batch" | "autoscaling" | "policy", _) => {
            workloads::cells(resource, row).or_else(|| core(resource, row))
        }
        ("networking.k8s.io" | "discovery.k8s.io", _) => network::cells(resource, row),
        ("storage.k8s.io", _) => storage::cells(resource, row),
        _ => misc::cells(group, resource, row),
    }
}

fn core(resource: &str, row: &Row<'_>) -> Option<Vec<Value>> {
    network::cells(resource, row)
        .or_else(|| storage::cells(resource, row))
        .or_else(|| misc::cells("", resource, row))
}

fn key(resource: &ResourceInfo) -> String {
    format!("{}/{}", resource.api_version(), resource.resource)
}

/// The description of all name columns.
const NAME_DESCRIPTION: &str = "Name must be unique within a namespace. Is required when creating resources, \
     although some resources may allow a client to request the generation of an \
     appropriate name automatically. Name is primarily intended for creation idempotence \
     and configuration definition. Cannot be updated. More info: \
     https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";
/// The description of ages and creation times.
const CREATED_DESCRIPTION: &str = "CreationTimestamp is a timestamp representing the server time when this object was \
     created. It is not guaranteed to be set in happens-before order across separate \
     operations. Clients may not set this value. It is represented in RFC3339 form and is \
     in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: \
     https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";

fn column(name: &str, kind: &str, format: &str, priority: i64, description: &str) -> Value {
    json!({
        "name": name,
        "type": kind,
        "format": format,
        "description": description,
        "priority": priority,
    })
}

fn recorded() -> &'static HashMap<&'static str, Value> {
    static COLUMNS: OnceLock<HashMap<&'static str, Value>> = OnceLock::new();
    COLUMNS.get_or_init(|| {
        let mut resources: HashMap<&'static str, Vec<Value>> = HashMap::new();
        let mut current = "";
        for line in include_str!("table/columns.txt").lines().filter(|line| !line.starts_with('#'))
        {
            let Some(definition) = line.strip_prefix(' ') else {
                current = line;
                continue;
            };
            let mut parts = definition.splitn(5, '|');
            let mut part = || parts.next().unwrap_or_default();
            let (name, kind, format) = (part(), part(), part());
            let priority = part().parse().unwrap_or(0);
            let description = part().replace("\\n", "\n");
            let column = column(name, kind, format, priority, &description);
            resources.entry(current).or_default().push(column);
        }
        resources.into_iter().map(|(key, columns)| (key, Value::Array(columns))).collect()
    })
}

#[cfg(test)]
mod tests;
