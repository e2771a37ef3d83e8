//! The account of operators in a world, and its rights.

use kopf_core::rights::Right;
use serde_json::{Value, json};

/// The default namespace of objects.
pub(crate) const NAMESPACE: &str = "default";
/// The name of the operators' account.
pub(crate) const OPERATOR: &str = "operator";
/// The label of objects that the test kit itself created.
pub(crate) const OURS: &str = "kopf.dev/testing";
/// The API group of roles and bindings.
const RBAC: &str = "rbac.authorization.k8s.io";

/// The rights of operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rights {
    /// All rights.
    All,
    /// Exactly the rights derived from their handlers.
    Own,
    /// The same without one verb: the index of the right, and of the verb in it.
    OwnWithout(usize, usize),
}

impl Rights {
    /// The operator's account and the objects that grant its rights; empty if everything is
    /// allowed.
    pub(crate) fn documents(self, rights: &[Right]) -> Vec<Value> {
        if self == Self::All {
            return Vec::new();
        }
        let rules: Vec<_> = rights
            .iter()
            .enumerate()
            .map(|(number, right)| {
                let is_kept = |position: usize| self != Self::OwnWithout(number, position);
                let verbs = right.verbs.iter().enumerate();
                let verbs: Vec<_> =
                    verbs.filter(|(at, _)| is_kept(*at)).map(|(_, verb)| verb).collect();
                let names: Vec<_> = right.name.iter().collect();
                json!({
                    "apiGroups": [right.group], "resources": [right.resource],
                    "resourceNames": names, "verbs": verbs,
                })
            })
            .filter(|rule| rule["verbs"] != json!([]))
            .collect();
        let metadata = json!({"name": OPERATOR, "labels": {OURS: "true"}});
        let account =
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata.clone()});
        let role = json!({
            "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole",
            "metadata": metadata.clone(), "rules": rules,
        });
        let binding = json!({
            "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": OPERATOR},
            "subjects": [{"kind": "ServiceAccount", "name": OPERATOR, "namespace": NAMESPACE}],
        });
        vec![account, role, binding]
    }
}
