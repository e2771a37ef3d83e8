//! The resource of a chaos run: its definition, its objects, and their paths.

use serde_json::{Value, json};

pub(super) const NAMESPACE: &str = "chaos";
pub(super) const ACCOUNT: &str = "operator";
pub(super) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
pub(super) const DEFINITION_NAME: &str = "gadgets.chaos.kopf.dev";
pub(super) const GADGETS: &str = "/apis/chaos.kopf.dev/v1/namespaces/chaos/gadgets";
pub(super) const CONFIG_MAPS: &str = "/api/v1/namespaces/chaos/configmaps";
/// The prefix of operators' annotations.
const PREFIX: &str = "kopf.zalando.org/";
const LAST_HANDLED: &str = "kopf.zalando.org/last-handled-configuration";

pub(super) fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": DEFINITION_NAME},
        "spec": {
            "group": "chaos.kopf.dev",
            "scope": "Namespaced",
            "names": {"kind": "Gadget", "plural": "gadgets", "singular": "gadget"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {
                        "value": {"type": "integer"},
                        "color": {"type": "string"},
                        "note": {"type": "string"},
                    }},
                    "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                }}},
            }],
        },
    })
}

/// The namespace, the operator's account and its rights: paths and objects.
pub(super) fn surroundings() -> Vec<(String, Value)> {
    let account = json!({"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE});
    vec![
        (
            "/api/v1/namespaces".to_owned(),
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}),
        ),
        (
            format!("/api/v1/namespaces/{NAMESPACE}/serviceaccounts"),
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT}}),
        ),
        (
            "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings".to_owned(),
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRoleBinding",
                "metadata": {"name": "chaos-operator"},
                "roleRef": {
                    "apiGroup": "rbac.authorization.k8s.io",
                    "kind": "ClusterRole",
                    "name": "cluster-admin",
                },
                "subjects": [account],
            }),
        ),
        (DEFINITIONS.to_owned(), definition()),
    ]
}

pub(super) fn gadget(name: &str, state: &Value) -> Value {
    json!({
        "apiVersion": "chaos.kopf.dev/v1",
        "kind": "Gadget",
        "metadata": {"name": name, "labels": state["labels"]},
        "spec": state["spec"],
    })
}

/// The state that handlers react to: the spec and the labels.
pub(super) fn state(object: &Value) -> Value {
    let labels = object["metadata"]["labels"].as_object().cloned().unwrap_or_default();
    json!({"spec": object["spec"], "labels": labels})
}

/// The last-handled state of the operator.
pub(super) fn handled(object: &Value) -> Option<Value> {
    let text = object["metadata"]["annotations"][LAST_HANDLED].as_str()?;
    Some(state(&serde_json::from_str(text).ok()?))
}

/// The progress records on the object, by annotation name without the prefix.
pub(super) fn progress(object: &Value) -> std::collections::BTreeMap<String, String> {
    let annotations = object["metadata"]["annotations"].as_object();
    annotations
        .into_iter()
        .flatten()
        .filter(|(name, _)| *name != LAST_HANDLED)
        .filter_map(|(name, value)| Some((name.strip_prefix(PREFIX)?, value.as_str()?)))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// The data of the child that the operator declares.
pub(super) fn child_data(spec: &Value) -> Value {
    let color = spec["color"].as_str().unwrap_or("none");
    json!({"value": spec["value"].to_string(), "color": color})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_reported_from_the_last_handled_state() {
        let object = json!({
            "metadata": {"labels": {"tier": "gold"}, "annotations": {
                "kopf.zalando.org/last-handled-configuration":
                    "{\"spec\":{\"value\":1},\"metadata\":{\"labels\":{\"tier\":\"gold\"}}}\n",
                "kopf.zalando.org/parent.a": "{\"success\":true}",
                "other.example.com/x": "1",
            }},
            "spec": {"value": 1},
        });
        assert_eq!(handled(&object), Some(state(&object)));
        assert_eq!(progress(&object).into_keys().collect::<Vec<_>>(), ["parent.a"]);
    }
}
