//! The conditions of a pod on a node, from its containers and readiness gates.
//!
//! Pure. Conditions set by others are kept.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::fields::{self, at, flag, items, stamp, text};

/// A condition without its times.
struct Finding {
    kind: &'static str,
    is_true: bool,
    reason: &'static str,
    message: String,
}

impl Finding {
    fn plain(kind: &'static str, is_true: bool) -> Self {
        Self { kind, is_true, reason: "", message: String::new() }
    }
}

/// Recomputes the conditions of `status`, keeping times where nothing changed.
pub(super) fn renew(pod: &Value, status: &mut Value, now: Timestamp) {
    let previous = items(pod, &["status", "conditions"]);
    let phase = text(status, &["phase"]).to_owned();
    let is_finished = matches!(phase.as_str(), "Succeeded" | "Failed");
    let statuses = items(status, &["containerStatuses"]);
    let unready: Vec<&str> = statuses
        .iter()
        .filter(|status| !flag(status, &["ready"]))
        .map(|status| text(status, &["name"]))
        .collect();
    let mut findings = vec![
        Finding::plain("PodReadyToStartContainers", phase != "Pending" && !is_finished),
        initialized(pod, &phase),
    ];
    let containers_ready = |kind| match (is_finished, unready.is_empty()) {
        (true, _) => {
            let reason = if phase == "Failed" { "PodFailed" } else { "PodCompleted" };
            Finding { kind, is_true: false, reason, message: String::new() }
        }
        (false, true) => Finding::plain(kind, true),
        (false, false) => Finding {
            kind,
            is_true: false,
            reason: "ContainersNotReady",
            message: format!("containers with unready status: [{}]", unready.join(" ")),
        },
    };
    let mut ready = containers_ready("Ready");
    if ready.is_true
        && let Some(problem) = gate_problem(pod)
    {
        ready = Finding {
            kind: "Ready",
            is_true: false,
            reason: "ReadinessGatesNotReady",
            message: problem,
        };
    }
    findings.push(ready);
    findings.push(containers_ready("ContainersReady"));
    findings.push(Finding::plain("PodScheduled", true));
    let mut conditions: Vec<Value> =
        findings.iter().map(|finding| timed(finding, previous, now)).collect();
    let foreign = previous.iter().filter(|condition| {
        findings.iter().all(|finding| finding.kind != text(condition, &["type"]))
    });
    conditions.extend(foreign.cloned());
    status["conditions"] = Value::Array(conditions);
}

fn initialized(pod: &Value, phase: &str) -> Finding {
    let has_init = !items(pod, &["spec", "initContainers"]).is_empty();
    if phase == "Pending" && has_init {
        let names: Vec<&str> = items(pod, &["spec", "initContainers"])
            .iter()
            .map(|container| text(container, &["name"]))
            .collect();
        return Finding {
            kind: "Initialized",
            is_true: false,
            reason: "ContainersNotInitialized",
            message: format!("containers with incomplete status: [{}]", names.join(" ")),
        };
    }
    let reason = if phase == "Succeeded" { "PodCompleted" } else { "" };
    Finding { kind: "Initialized", is_true: true, reason, message: String::new() }
}

/// The problem with the first unfulfilled readiness gate.
fn gate_problem(pod: &Value) -> Option<String> {
    items(pod, &["spec", "readinessGates"]).iter().find_map(|gate| {
        let kind = text(gate, &["conditionType"]);
        match fields::condition(pod, kind) {
            None => Some(format!(
                "corresponding condition of pod readiness gate \"{kind}\" does not exist."
            )),
            Some(condition) if text(condition, &["status"]) != "True" => Some(format!(
                "the status of pod readiness gate \"{kind}\" is not \"True\", but {}",
                text(condition, &["status"])
            )),
            Some(_) => None,
        }
    })
}

fn timed(finding: &Finding, previous: &[Value], now: Timestamp) -> Value {
    let status = if finding.is_true { "True" } else { "False" };
    let since = previous
        .iter()
        .find(|other| text(other, &["type"]) == finding.kind)
        .filter(|other| text(other, &["status"]) == status)
        .and_then(|other| at(other, &["lastTransitionTime"]).cloned())
        .unwrap_or_else(|| json!(stamp(now)));
    let mut condition = json!({
        "type": finding.kind,
        "status": status,
        "lastProbeTime": null,
        "lastTransitionTime": since,
    });
    if !finding.reason.is_empty() {
        condition["reason"] = json!(finding.reason);
    }
    if !finding.message.is_empty() {
        condition["message"] = json!(finding.message);
    }
    condition
}
