//! Rows of tables, kind by kind.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{age, cells, columns};
use crate::resource::{CustomResource, ResourceInfo};

fn resource(group: &str, version: &str, resource: &str) -> ResourceInfo {
    ResourceInfo {
        group: group.into(),
        version: version.into(),
        resource: resource.into(),
        singular: String::new(),
        kind: String::new(),
        list_kind: String::new(),
        namespaced: true,
        verbs: Vec::new(),
        short_names: Vec::new(),
        categories: Vec::new(),
        subresources: Vec::new(),
        table: Arc::from(resource),
        storage_version: version.into(),
        custom: None,
        schema: None,
    }
}

fn now() -> Timestamp {
    "2026-01-01T01:00:00Z".parse().unwrap()
}

fn check(group: &str, name: &str, mut object: Value, expected: Value) {
    object["metadata"]["name"] = json!("x");
    object["metadata"]["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
    let info = resource(group, "v1", name);
    let cells = cells(&info, &object, now());
    assert_eq!(Value::Array(cells.clone()), expected, "{name}");
    assert_eq!(columns(&info).as_array().unwrap().len(), cells.len(), "{name}");
}

#[test]
fn every_recorded_resource_has_as_many_cells_as_columns() {
    for key in super::recorded().keys() {
        let parts: Vec<&str> = key.split('/').collect();
        let (group, version, name) = match parts[..] {
            [version, name] => ("", version, name),
            [group, version, name] => (group, version, name),
            _ => panic!("{key}"),
        };
        let info = resource(group, version, name);
        let cells = cells(&info, &json!({"metadata": {"name": "x"}}), now());
        // The real server sends one more cell than columns for this kind.
        let extra = usize::from(name == "ipaddresses");
        assert_eq!(columns(&info).as_array().unwrap().len() + extra, cells.len(), "{key}");
    }
}

#[test]
fn durations_are_short() {
    for (seconds, text) in [
        (-5, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (599, "9m59s"),
        (600, "10m"),
        (3 * 3600, "3h"),
        (3 * 3600 + 300, "3h5m"),
        (8 * 3600, "8h"),
        (48 * 3600, "2d"),
        (50 * 3600, "2d2h"),
        (8 * 86400, "8d"),
        (730 * 86400, "2y"),
        (731 * 86400, "2y1d"),
        (3000 * 86400, "8y"),
    ] {
        assert_eq!(age::human(seconds), text, "{seconds}");
    }
}

#[test]
fn workloads_show_their_progress() {
    check(
        "apps",
        "deployments",
        json!({"spec": {"replicas": 3, "selector": {"matchLabels": {"b": "2", "a": "1"}},
                        "template": {"spec": {"containers": [{"name": "c", "image": "i"},
                                                             {"name": "d", "image": "j"}]}}},
               "status": {"readyReplicas": 2, "updatedReplicas": 3, "availableReplicas": 1}}),
        json!(["x", "2/3", 3, 1, "60m", "c,d", "i,j", "a=1,b=2"]),
    );
    check(
        "batch",
        "jobs",
        json!({"spec": {"completions": 2, "template": {"spec": {}}},
               "status": {"succeeded": 1, "startTime": "2026-01-01T00:59:00Z"}}),
        json!(["x", "Running", "1/2", "60s", "60m", "", "", "<none>"]),
    );
}

#[test]
fn services_show_addresses_and_ports() {
    check(
        "",
        "services",
        json!({"spec": {"type": "NodePort", "clusterIPs": ["10.0.0.1"], "selector": {"a": "b"},
                        "ports": [{"port": 80, "nodePort": 30080, "protocol": "TCP"},
                                  {"port": 53, "protocol": "UDP"}]}}),
        json!(["x", "NodePort", "10.0.0.1", "<none>", "80:30080/TCP,53/UDP", "60m", "a=b"]),
    );
}

fn check_pod(pod: Value, ready: &str, status: &str, restarts: &str) {
    let mut object = pod;
    object["metadata"]["name"] = json!("x");
    object["metadata"]["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
    let cells = cells(&resource("", "v1", "pods"), &object, now());
    assert_eq!(
        [&cells[1], &cells[2], &cells[3]],
        [&json!(ready), &json!(status), &json!(restarts)],
        "{object}"
    );
}

#[test]
fn pods_are_summed_up_in_one_word() {
    let spec =
        json!({"containers": [{"name": "a"}, {"name": "b"}], "initContainers": [{"name": "i"}]});
    check_pod(json!({"spec": spec, "status": {"phase": "Pending"}}), "0/2", "Pending", "0");
    check_pod(
        json!({"spec": spec, "status": {"phase": "Pending", "initContainerStatuses": [
            {"name": "i", "state": {"waiting": {"reason": "PodInitializing"}}}]}}),
        "0/2",
        "Init:0/1",
        "0",
    );
    check_pod(
        json!({"spec": spec, "status": {"phase": "Running", "containerStatuses": [
            {"name": "a", "ready": true, "restartCount": 0, "state": {"running": {}}},
            {"name": "b", "ready": false, "restartCount": 3,
             "lastState": {"terminated": {"finishedAt": "2026-01-01T00:59:30Z"}},
             "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]}}),
        "1/2",
        "CrashLoopBackOff",
        "3 (30s ago)",
    );
    check_pod(
        json!({"spec": spec, "status": {"phase": "Failed", "containerStatuses": [
            {"name": "a", "state": {"terminated": {"exitCode": 3}}}]}}),
        "0/2",
        "ExitCode:3",
        "0",
    );
    check_pod(
        json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "spec": spec,
               "status": {"phase": "Running"}}),
        "0/2",
        "Terminating",
        "0",
    );
}

#[test]
fn custom_columns_follow_their_paths() {
    let declared = vec![
        json!({"name": "N", "type": "integer", "jsonPath": ".spec.n"}),
        json!({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}),
        json!({"name": "Ph", "type": "string", "jsonPath": ".status.phase", "priority": 1}),
        json!({"name": "DT", "type": "date", "jsonPath": ".spec.none"}),
    ];
    let mut info = resource("t.io", "v1", "foos");
    info.custom =
        Some(Arc::new(CustomResource { printer_columns: declared, ..CustomResource::default() }));
    let object = json!({"metadata": {"name": "f1", "creationTimestamp": "2026-01-01T00:59:55Z"},
                        "spec": {"n": 4}, "status": {"phase": "P"}});
    assert_eq!(Value::Array(cells(&info, &object, now())), json!(["f1", 4, "5s", "P", null]));
    assert_eq!(columns(&info)[3]["priority"], 1);
}
