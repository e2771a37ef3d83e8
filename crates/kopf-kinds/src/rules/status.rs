//! Rules of the status of built-in kinds.

use std::collections::HashSet;

use serde_json::Value;

use super::Problems;
use super::network::{ADDRESS_DETAIL, is_address};
use crate::fields::{list, text};
use crate::names::{qualified_name_problems, subdomain_problems};

/// The errors of an updated status.
pub(super) fn check(
    group: &str,
    resource: &str,
    object: &Value,
    old: &Value,
    problems: &mut Problems,
) {
    let status = &object["status"];
    match (group, resource) {
        ("", "pods") => pod(status, old, problems),
        ("", "services") => service(object, problems),
        ("networking.k8s.io", "ingresses") => balancer(status, problems),
        ("", "namespaces") => namespace(object, problems),
        ("", "nodes") => super::nodes::update(object, old, problems),
        ("", "persistentvolumeclaims") => super::storage::claim_status(object, problems),
        ("", "resourcequotas") => super::limits::quota_status(status, problems),
        ("flowcontrol.apiserver.k8s.io", _) => super::flow_control::conditions(status, problems),
        ("batch", "jobs") => super::job_status::check(object, old, problems),
        ("autoscaling", "horizontalpodautoscalers") => {
            counts(status, &["currentReplicas", "desiredReplicas"], problems);
        }
        ("policy", "poddisruptionbudgets") => budget(status, problems),
        ("apps", _) | ("", "replicationcontrollers") => {
            super::workloads::status(resource, object, old, problems);
        }
        _ => {}
    }
}

const BUDGET_COUNTS: [&str; 4] =
    ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"];

fn counts(status: &Value, fields: &[&str], problems: &mut Problems) {
    for field in fields {
        problems.not_negative(&format!("status.{field}"), &status[*field]);
    }
}

/// The errors of the status of a disruption budget.
fn budget(status: &Value, problems: &mut Problems) {
    conditions(list(status, "conditions"), "status.conditions", problems);
    counts(status, &BUDGET_COUNTS, problems);
}

/// Checks standard conditions: each has a unique type, a status, a time and a reason.
fn conditions(conditions: &[Value], path: &str, problems: &mut Problems) {
    const REASON_LENGTH_MAX: usize = 1024;
    const MESSAGE_LENGTH_MAX: usize = 32_768;
    let mut seen = HashSet::new();
    for (index, condition) in conditions.iter().enumerate() {
        let path = format!("{path}[{index}]");
        let kind = text(condition, "type");
        if !seen.insert(kind) {
            problems.duplicate(&format!("{path}.type"), &kind.into());
        }
        for problem in qualified_name_problems(kind) {
            problems.invalid(&format!("{path}.type"), &kind.into(), &problem);
        }
        let status = &condition["status"];
        if !matches!(status.as_str(), Some("True" | "False" | "Unknown")) {
            let status = Value::from(text(condition, "status"));
            let supported = ["False", "True", "Unknown"];
            problems.one_of(&format!("{path}.status"), &status, &supported);
        }
        problems
            .not_negative(&format!("{path}.observedGeneration"), &condition["observedGeneration"]);
        if condition["lastTransitionTime"].is_null() {
            problems.required(&format!("{path}.lastTransitionTime"), "must be set");
        }
        let reason = text(condition, "reason");
        if reason.is_empty() {
            problems.required(&format!("{path}.reason"), "must be set");
        } else if reason.len() > REASON_LENGTH_MAX {
            problems.too_long(&format!("{path}.reason"), REASON_LENGTH_MAX);
        }
        if text(condition, "message").len() > MESSAGE_LENGTH_MAX {
            problems.too_long(&format!("{path}.message"), MESSAGE_LENGTH_MAX);
        }
    }
}

fn pod(status: &Value, old_pod: &Value, problems: &mut Problems) {
    let old = &old_pod["status"];
    for (index, condition) in list(status, "conditions").iter().enumerate() {
        for problem in qualified_name_problems(text(condition, "type")) {
            // Upstream capitalizes this field.
            let path = format!("status.conditions[{index}].Type");
            problems.invalid(&path, &condition["type"], &problem);
        }
    }
    let hosts = list(status, "hostIPs");
    if let Some(first) = hosts.first().filter(|first| text(first, "ip") != text(status, "hostIP")) {
        let path = "status.hostIPs[0].ip";
        problems.invalid(path, &first["ip"], "must be equal to `hostIP`");
    }
    for (field, kind) in [("podIPs", "PodIP"), ("hostIPs", "HostIP")] {
        let path = format!("status.{field}");
        addresses(list(status, field), list(old, field), &path, kind, problems);
    }
    let node = text(status, "nominatedNodeName");
    if !node.is_empty() && node != text(old, "nominatedNodeName") {
        for problem in subdomain_problems(node) {
            problems.invalid("status.nominatedNodeName", &node.into(), &problem);
        }
    }
    if status["observedGeneration"].as_i64().is_some_and(|number| number < 0) {
        let path = "status.observedGeneration";
        problems.invalid(path, &status["observedGeneration"], "must be a non-negative integer");
    }
    if !old["qosClass"].is_null() && !status["qosClass"].is_null() {
        problems.immutable("status.qosClass", &status["qosClass"], &old["qosClass"]);
    }
    let policy = text(&old_pod["spec"], "restartPolicy");
    for (field, policy) in [("containerStatuses", policy), ("ephemeralContainerStatuses", "Never")]
    {
        ended_containers(list(status, field), list(old, field), field, policy, problems);
    }
}

/// A terminated container that is not restarted stays terminated.
fn ended_containers(
    statuses: &[Value],
    old: &[Value],
    field: &str,
    policy: &str,
    problems: &mut Problems,
) {
    if policy == "Always" {
        return;
    }
    for (index, old) in old.iter().enumerate() {
        let end = &old["state"]["terminated"];
        let is_restarted = policy == "OnFailure" && end["exitCode"] != 0;
        if !end.is_object() || is_restarted {
            continue;
        }
        let is_back = |status: &&Value| {
            status["name"] == old["name"] && !status["state"]["terminated"].is_object()
        };
        for _ in statuses.iter().filter(is_back) {
            let path = format!("status.{field}[{index}].state");
            problems.forbidden(&path, "may not be transitioned to non-terminated state");
        }
    }
}

/// Checks that there is at most one address of each family; existing ones remain valid.
fn addresses(items: &[Value], old: &[Value], path: &str, kind: &str, problems: &mut Problems) {
    let mut is_valid = true;
    for (index, item) in items.iter().enumerate() {
        let was_there = old.iter().any(|old| old["ip"] == item["ip"]);
        if !is_address(text(item, "ip")) && !was_there {
            is_valid = false;
            problems.invalid(&format!("{path}[{index}]"), &item["ip"], ADDRESS_DETAIL);
        }
    }
    let families = |is_wide: bool| {
        items.iter().filter(|item| text(item, "ip").contains(':') == is_wide).count()
    };
    if is_valid && (families(false) > 1 || families(true) > 1) {
        let shown: Vec<String> =
            items.iter().map(|item| format!("core.{kind}{{IP:{:?}}}", text(item, "ip"))).collect();
        let shown = format!("[]core.{kind}{{{}}}", shown.join(", "));
        let detail = "may specify no more than one IP for each IP family";
        problems.invalid_text(path, &shown, detail);
    }
}

fn service(object: &Value, problems: &mut Problems) {
    let status = &object["status"];
    if object["spec"]["type"] == "LoadBalancer" {
        balancer(status, problems);
    } else if !list(&status["loadBalancer"], "ingress").is_empty() {
        let detail = "may only be used when `spec.type` is 'LoadBalancer'";
        problems.forbidden("status.loadBalancer.ingress", detail);
    }
}

/// Checks the addresses of a load balancer.
fn balancer(status: &Value, problems: &mut Problems) {
    for (index, ingress) in list(&status["loadBalancer"], "ingress").iter().enumerate() {
        let path = format!("status.loadBalancer.ingress[{index}]");
        let (address, host) = (text(ingress, "ip"), text(ingress, "hostname"));
        if !address.is_empty() && !is_address(address) {
            problems.invalid(&format!("{path}.ip"), &ingress["ip"], ADDRESS_DETAIL);
        }
        let mode = text(ingress, "ipMode");
        if !mode.is_empty() && address.is_empty() {
            problems
                .forbidden(&format!("{path}.ipMode"), "may not be specified when `ip` is not set");
        } else if !mode.is_empty() {
            problems.one_of(&format!("{path}.ipMode"), &ingress["ipMode"], &["Proxy", "VIP"]);
        }
        if host.is_empty() {
            continue;
        }
        for problem in subdomain_problems(host) {
            problems.invalid(&format!("{path}.hostname"), &ingress["hostname"], &problem);
        }
        if is_address(host) {
            let detail = "must be a DNS name, not an IP address";
            problems.invalid(&format!("{path}.hostname"), &ingress["hostname"], detail);
        }
    }
}

fn namespace(object: &Value, problems: &mut Problems) {
    let phase = &object["status"]["phase"];
    let is_deleting = !object["metadata"]["deletionTimestamp"].is_null();
    let (expected, state) = match is_deleting {
        true => ("Terminating", "is not empty"),
        false => ("Active", "is empty"),
    };
    if phase != expected && !phase.is_null() {
        let detail = format!("may only be '{expected}' if `deletionTimestamp` {state}");
        problems.invalid("status.Phase", phase, &detail);
    }
}
