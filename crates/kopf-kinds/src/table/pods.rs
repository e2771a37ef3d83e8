//! The row of a pod: the state of its containers, in one word.

use serde_json::{Value, json};

use super::format::list;
use super::{Row, age};

/// The state gathered from the containers of a pod.
#[derive(Default)]
struct Summary {
    reason: String,
    ready: usize,
    restarts: i64,
    last_restart: String,
}

pub(super) fn pod(row: &Row<'_>) -> Vec<Value> {
    let mut summary = Summary { reason: first_reason(row), ..Summary::default() };
    let is_initializing = look_at_init_containers(row, &mut summary);
    if !is_initializing || row.condition("Initialized") == Some("True") {
        look_at_containers(row, &mut summary);
    }
    let phase = row.text("/status/phase");
    if row.is_deleting() && row.text("/status/reason") == "NodeLost" {
        summary.reason = "Unknown".into();
    } else if row.is_deleting() && !matches!(phase, "Succeeded" | "Failed") {
        summary.reason = "Terminating".into();
    }
    let sidecars =
        row.list("/spec/initContainers").iter().filter(|container| is_sidecar(container));
    let total = row.size("/spec/containers") + sidecars.count();
    let restarts = if summary.restarts != 0 && !summary.last_restart.is_empty() {
        format!("{} ({} ago)", summary.restarts, age::since(&summary.last_restart, row.now))
    } else {
        summary.restarts.to_string()
    };
    vec![
        row.name(),
        json!(format!("{}/{total}", summary.ready)),
        json!(summary.reason),
        json!(restarts),
        row.age(),
        row.text_or("/status/podIPs/0/ip", "<none>"),
        row.text_or("/spec/nodeName", "<none>"),
        row.text_or("/status/nominatedNodeName", "<none>"),
        json!(readiness_gates(row)),
    ]
}

fn first_reason(row: &Row<'_>) -> String {
    let is_gated = row.list("/status/conditions").iter().any(|condition| {
        condition["type"] == "PodScheduled" && condition["reason"] == "SchedulingGated"
    });
    match (is_gated, row.text("/status/reason")) {
        (true, _) => "SchedulingGated".into(),
        (false, "") => row.text("/status/phase").into(),
        (false, reason) => reason.into(),
    }
}

fn is_sidecar(container: &Value) -> bool {
    container["restartPolicy"] == "Always"
}

/// Checks init containers up to the first unfinished one; returns whether there is one.
fn look_at_init_containers(row: &Row<'_>, summary: &mut Summary) -> bool {
    let specs = row.list("/spec/initContainers");
    let mut sidecar_restarts = Summary::default();
    for (index, status) in row.list("/status/initContainerStatuses").iter().enumerate() {
        let spec = specs.iter().find(|spec| spec["name"] == status["name"]);
        let is_sidecar = spec.is_some_and(is_sidecar);
        summary.count_restarts(status);
        if is_sidecar {
            sidecar_restarts.count_restarts(status);
        }
        let terminated = &status["state"]["terminated"];
        if terminated["exitCode"] == 0 {
            continue;
        }
        if is_sidecar && status["started"] == true {
            summary.ready += usize::from(status["ready"] == true);
            continue;
        }
        let waiting = status["state"]["waiting"]["reason"].as_str().unwrap_or_default();
        summary.reason = if terminated.is_object() {
            format!("Init:{}", end_of(terminated))
        } else if !waiting.is_empty() && waiting != "PodInitializing" {
            format!("Init:{waiting}")
        } else {
            format!("Init:{index}/{}", specs.len())
        };
        return true;
    }
    // Restarts of finished init containers no longer matter.
    summary.restarts = sidecar_restarts.restarts;
    summary.last_restart = sidecar_restarts.last_restart;
    false
}

fn look_at_containers(row: &Row<'_>, summary: &mut Summary) {
    let mut has_running = false;
    for status in row.list("/status/containerStatuses").iter().rev() {
        summary.count_restarts(status);
        let state = &status["state"];
        let waiting = state["waiting"]["reason"].as_str().unwrap_or_default();
        if !waiting.is_empty() {
            summary.reason = waiting.to_owned();
        } else if state["terminated"].is_object() {
            summary.reason = end_of(&state["terminated"]);
        } else if status["ready"] == true && state["running"].is_object() {
            has_running = true;
            summary.ready += 1;
        }
    }
    if summary.reason == "Completed" && has_running {
        let is_ready = row.condition("Ready") == Some("True");
        summary.reason = if is_ready { "Running" } else { "NotReady" }.to_owned();
    }
}

fn end_of(terminated: &Value) -> String {
    let reason = terminated["reason"].as_str().unwrap_or_default();
    let signal = terminated["signal"].as_i64().unwrap_or_default();
    match (reason, signal) {
        ("", 0) => format!("ExitCode:{}", terminated["exitCode"].as_i64().unwrap_or_default()),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

impl Summary {
    fn count_restarts(&mut self, status: &Value) {
        self.restarts += status["restartCount"].as_i64().unwrap_or_default();
        let finished = status["lastState"]["terminated"]["finishedAt"].as_str().unwrap_or_default();
        if finished > self.last_restart.as_str() {
            self.last_restart = finished.to_owned();
        }
    }
}

fn readiness_gates(row: &Row<'_>) -> String {
    let gates = list(row.value("/spec/readinessGates"));
    if gates.is_empty() {
        return "<none>".into();
    }
    let passed = gates.iter().filter(|gate| {
        let kind = gate["conditionType"].as_str().unwrap_or_default();
        row.condition(kind) == Some("True")
    });
    format!("{}/{}", passed.count(), gates.len())
}
