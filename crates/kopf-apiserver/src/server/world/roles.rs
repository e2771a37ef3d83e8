//! The initial roles and bindings of every cluster.
//!
//! Those of a real 1.33 server that users and charts refer to: the user-facing roles, discovery,
//! basic rights, delegated authentication, monitoring. The roles of upstream's own components are
//! left out, since ours act as `system:masters`.

use serde_json::Value;

/// The table and the object of each role and binding, without uid and times.
pub(super) fn objects() -> Vec<(&'static str, Value)> {
    const RECORDED: &str = include_str!("../../data/bootstrap-rbac-1.33.json");
    let objects: Vec<Value> =
        serde_json::from_str(RECORDED).expect("the recorded roles are valid JSON");
    objects
        .into_iter()
        .map(|object| {
            let table = match object["kind"].as_str() {
                Some("Role") => "roles.rbac.authorization.k8s.io",
                Some("ClusterRole") => "clusterroles.rbac.authorization.k8s.io",
                _ => "clusterrolebindings.rbac.authorization.k8s.io",
            };
            (table, object)
        })
        .collect()
}
