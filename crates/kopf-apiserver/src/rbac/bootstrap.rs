//! The roles and bindings that every cluster starts with.
//!
//! Recorded from a real server of release 1.33: the user-facing roles, discovery and basic rights.
//! The roles of upstream's own components are left out: ours act as `system:masters`.

use serde_json::Value;

/// Table and object of each role and binding, without uid and times.
pub(crate) fn objects() -> Vec<(&'static str, Value)> {
    const RECORDED: &str = include_str!("../data/bootstrap-rbac-1.33.json");
    let objects: Vec<Value> =
        serde_json::from_str(RECORDED).expect("the recorded roles are valid JSON");
    objects
        .into_iter()
        .map(|object| {
            let is_role = object["kind"] == "ClusterRole";
            let table = if is_role {
                "clusterroles.rbac.authorization.k8s.io"
            } else {
                "clusterrolebindings.rbac.authorization.k8s.io"
            };
            (table, object)
        })
        .collect()
}
