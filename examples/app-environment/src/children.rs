//! The children of one stage, as manifests.

use base64::Engine as _;
use kopf::children::Child;
use kopf::prelude::json;
use kube::ResourceExt as _;

use crate::environment::{AppEnvironment, Provisioned};

/// The host from which images are pulled.
const HOST: &str = "registry.example.com";

/// The namespace of a stage with everything in it.
pub(crate) fn of_stage(environment: &AppEnvironment, stage: &str, password: &str) -> Vec<Child> {
    let namespace = format!("{}-{stage}", environment.name_any());
    let labels =
        json!({"example.com/application": environment.name_any(), "example.com/stage": stage});
    let quota = &environment.spec.quota;
    let user = Provisioned::of(environment).user;
    let encode = |text: String| base64::engine::general_purpose::STANDARD.encode(text);
    let access = json!({"auths": {HOST: {
        "username": user, "password": password, "auth": encode(format!("{user}:{password}")),
    }}});
    let group = "rbac.authorization.k8s.io";
    let all = [
        json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": namespace, "labels": labels},
        }),
        json!({
            "apiVersion": "v1", "kind": "ResourceQuota",
            "metadata": {"name": "limits", "namespace": namespace},
            "spec": {"hard": {"limits.cpu": quota.cpu, "limits.memory": quota.memory}},
        }),
        // Only traffic from the same namespace is allowed.
        json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
            "metadata": {"name": "walls", "namespace": namespace},
            "spec": {
                "podSelector": {}, "policyTypes": ["Ingress"],
                "ingress": [{"from": [{"podSelector": {}}]}],
            },
        }),
        json!({
            "apiVersion": format!("{group}/v1"), "kind": "Role",
            "metadata": {"name": "developer", "namespace": namespace},
            // The same as `grants` at the handler: only rights that the operator holds can be
            // granted.
            "rules": [
                {
                    "apiGroups": [""], "resources": ["pods", "services", "configmaps"],
                    "verbs": ["get", "list", "watch", "create", "patch", "delete"],
                },
                {"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]},
                {
                    "apiGroups": ["apps"], "resources": ["deployments"],
                    "verbs": ["get", "list", "watch", "create", "patch", "delete"],
                },
                {
                    "apiGroups": ["batch"], "resources": ["jobs"],
                    "verbs": ["get", "list", "watch", "create", "patch", "delete"],
                },
            ],
        }),
        json!({
            "apiVersion": format!("{group}/v1"), "kind": "RoleBinding",
            "metadata": {"name": "developers", "namespace": namespace},
            "roleRef": {"apiGroup": group, "kind": "Role", "name": "developer"},
            "subjects": [
                {"apiGroup": group, "kind": "Group", "name": environment.spec.team},
                {"kind": "ServiceAccount", "name": "deployer", "namespace": namespace},
            ],
        }),
        json!({
            "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/dockerconfigjson",
            "metadata": {"name": "image-pull", "namespace": namespace},
            "data": {".dockerconfigjson": encode(access.to_string())},
        }),
        json!({
            "apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": "deployer", "namespace": namespace},
            "imagePullSecrets": [{"name": "image-pull"}],
        }),
        // The cluster adds the token.
        json!({
            "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
            "metadata": {
                "name": "deployer-key", "namespace": namespace,
                "annotations": {"kubernetes.io/service-account.name": "deployer"},
            },
        }),
    ];
    all.into_iter().map(Child::from).collect()
}
