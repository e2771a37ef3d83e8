//! The behaviour of pods, step by step.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::*;
use crate::fields;

fn noon() -> Timestamp {
    "2026-11-15T12:00:00Z".parse().expect("a valid time")
}

fn pod(restart_policy: &str) -> Value {
    json!({
        "metadata": { "name": "p", "namespace": "n", "uid": "u" },
        "spec": { "restartPolicy": restart_policy, "containers": [{ "name": "c", "image": "i" }] },
        "status": { "phase": "Pending", "conditions": [
            { "type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-11-15T12:00:00Z" },
        ] },
    })
}

/// Makes steps until nothing changes at this time; returns the states that a watcher sees.
fn live(pod: &mut Value, stage: &Stage, now: Timestamp) -> Vec<String> {
    let addresses = Addresses { host: "1.1.1.1", pod: "2.2.2.2" };
    let mut seen = Vec::new();
    for _ in 0..10 {
        let step = step(pod, stage, addresses, now);
        if pod["status"] == step.status {
            return seen;
        }
        pod["status"] = step.status;
        let status = &pod["status"]["containerStatuses"][0];
        let (state, inner) =
            status["state"].as_object().and_then(|map| map.iter().next()).expect("a state");
        let reason = fields::text(inner, &["reason"]);
        let ready = if fields::is_condition_true(pod, "Ready") { " ready" } else { "" };
        seen.push(format!(
            "{} {state} {reason} #{}{ready}",
            fields::text(pod, &["status", "phase"]),
            status["restartCount"]
        ));
    }
    panic!("the pod never rests: {seen:?}");
}

#[test]
fn a_plain_pod_is_ready_at_once() {
    assert_eq!(live(&mut pod("Always"), &Stage::running(), noon()), ["Running running  #0 ready"]);
}

#[test]
fn ephemeral_containers_run_next_to_the_others() {
    let mut debugged = pod("Always");
    live(&mut debugged, &Stage::running(), noon());
    assert_eq!(debugged["status"].get("ephemeralContainerStatuses"), None);
    debugged["spec"]["ephemeralContainers"] = json!([{ "name": "debugger", "image": "i" }]);
    assert_eq!(live(&mut debugged, &Stage::running(), noon()), ["Running running  #0 ready"]);
    let status = &debugged["status"]["ephemeralContainerStatuses"][0];
    assert_eq!(status["state"], json!({ "running": { "startedAt": "2026-11-15T12:00:00Z" } }));
    assert_eq!(fields::text(&debugged, &["status", "phase"]), "Running");
}

#[test]
fn a_crash_restarts_once_and_then_backs_off() {
    let mut sick = pod("Always");
    let stage = Stage::crash(2);
    assert_eq!(
        live(&mut sick, &stage, noon()),
        [
            "Running running  #0",
            "Running terminated Error #0",
            "Running running  #1",
            "Running terminated Error #1",
            "Running waiting CrashLoopBackOff #1",
        ]
    );
    let message =
        fields::text(&sick["status"]["containerStatuses"][0], &["state", "waiting", "message"]);
    assert_eq!(message, "back-off 10s restarting failed container=c pod=p_n(u)");
    let later = after_seconds(noon(), 10);
    assert_eq!(
        live(&mut sick, &stage, later).first().map(String::as_str),
        Some("Running running  #2")
    );
}

#[test]
fn a_pod_that_is_never_restarted_fails_or_succeeds() {
    let ends = |code| live(&mut pod("Never"), &Stage::complete(code), noon()).pop();
    assert_eq!(ends(0).as_deref(), Some("Succeeded terminated Completed #0"));
    assert_eq!(ends(7).as_deref(), Some("Failed terminated Error #0"));
}

#[test]
fn failures_that_are_counted_end_in_health() {
    let mut flaky = pod("Always");
    let stage = Stage::crash(1).times(1);
    assert_eq!(
        live(&mut flaky, &stage, noon()).last().map(String::as_str),
        Some("Running running  #1 ready")
    );
}

#[test]
fn delays_are_waited_for() {
    let mut late = pod("Always");
    let stage = Stage::running().delay(Duration::from_secs(5)).ready_after(Duration::from_secs(3));
    assert_eq!(live(&mut late, &stage, noon()), ["Pending waiting ContainerCreating #0"]);
    assert_eq!(live(&mut late, &stage, after_seconds(noon(), 5)), ["Running running  #0"]);
    assert_eq!(live(&mut late, &stage, after_seconds(noon(), 8)), ["Running running  #0 ready"]);
}

#[test]
fn readiness_gates_hold_a_pod_back() {
    let mut gated = pod("Always");
    gated["spec"]["readinessGates"] = json!([{ "conditionType": "lb/up" }]);
    assert_eq!(live(&mut gated, &Stage::running(), noon()), ["Running running  #0"]);
    let condition = json!({ "type": "lb/up", "status": "True" });
    gated["status"]["conditions"].as_array_mut().expect("a list").push(condition);
    assert_eq!(live(&mut gated, &Stage::running(), noon()), ["Running running  #0 ready"]);
    assert!(fields::is_condition_true(&gated, "lb/up"), "foreign conditions stay");
}

#[test]
fn conditions_keep_their_times_while_they_hold() {
    let mut steady = pod("Always");
    live(&mut steady, &Stage::running(), noon());
    let before = steady.clone();
    live(&mut steady, &Stage::running(), after_seconds(noon(), 60));
    assert_eq!(steady, before);
}
