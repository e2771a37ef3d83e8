//! Which writes are announced, with upstream's messages.

use serde_json::json;

use super::*;

fn texts(done: &Done<'_>) -> Vec<String> {
    let text = |found: &Announcement| format!("{}: {}", found.reason, found.message);
    announcements(done).iter().map(text).collect()
}

#[test]
fn a_deployment_reports_how_it_scales() {
    let deployment = json!({"metadata": {"name": "web"}});
    let set = |replicas: i64| json!({"spec": {"replicas": replicas}});
    let create = Action::Create { collection: REPLICA_SETS, object: set(3) };
    let mut done = Done {
        controller: "deployment",
        subject: &deployment,
        action: &create,
        before: None,
        name: "web-1",
    };
    assert_eq!(texts(&done), ["ScalingReplicaSet: Scaled up replica set web-1 from 0 to 3"]);
    let (before, key) = (set(3), Key::new(REPLICA_SETS, "d", "web-1"));
    let update =
        |replicas| Action::Update { key: key.clone(), subresource: "", object: set(replicas) };
    let (smaller, same) = (update(1), update(3));
    done.before = Some(&before);
    done.action = &smaller;
    assert_eq!(texts(&done), ["ScalingReplicaSet: Scaled down replica set web-1 from 3 to 1"]);
    done.action = &same;
    assert!(texts(&done).is_empty());
}

#[test]
fn a_kubelet_reports_each_container_once() {
    let status = |state: &str, id: &str| {
        json!({"metadata": {"name": "p"}, "status": {"containerStatuses": [
            {"name": "c", "image": "i", "containerID": id, "state": {state: {}}}]}})
    };
    let (before, after) = (status("waiting", ""), status("running", "x"));
    let key = Key::new(PODS, "d", "p");
    let start = Action::Update { key: key.clone(), subresource: "status", object: after.clone() };
    let done = Done {
        controller: "pod-life",
        subject: &before,
        action: &start,
        before: Some(&before),
        name: "p",
    };
    let expected = [
        "Pulled: Container image \"i\" already present on machine",
        "Created: Created container: c",
        "Started: Started container c",
    ];
    assert_eq!(texts(&done), expected);
    let place = Regarding::Container("spec.containers{c}".to_owned());
    assert!(announcements(&done).iter().all(|found| found.regarding == place));
    let again = Done { before: Some(&after), ..done };
    assert!(texts(&again).is_empty());
    let mut ended = status("terminated", "x");
    ended["metadata"]["deletionTimestamp"] = json!("2026-11-15T12:00:00Z");
    let stop = Action::Update { key, subresource: "status", object: ended };
    let last = Done { action: &stop, before: Some(&after), ..again };
    assert_eq!(texts(&last), ["Killing: Stopping container c"]);
}
