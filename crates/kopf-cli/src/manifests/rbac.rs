//! The rights of an operator as documents: a service account, roles and bindings.
//!
//! Pure. `kopf_core::rights` decides which rights are needed.

use kopf_core::rights::{Right, Scope};
use serde_json::{Value, json};

use super::Options;

/// The API group of roles.
const GROUP: &str = "rbac.authorization.k8s.io";

/// ServiceAccount, roles and bindings.
pub fn documents(rights: &[Right], options: &Options) -> Vec<Value> {
    let account = json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": options.name, "namespace": options.namespace},
    });
    let mut documents = vec![account];
    let of = |scope: Scope| rights.iter().filter(move |right| right.scope == scope);
    match &options.serves {
        None => documents.extend(grant(None, options, rights.iter())),
        Some(namespaces) => {
            documents.extend(grant(None, options, of(Scope::Cluster)));
            for namespace in namespaces {
                documents.extend(grant(Some(namespace), options, of(Scope::Namespaces)));
            }
        }
    }
    if options.has_replicas() {
        documents.extend(leases(options, rights.iter().any(is_for_webhooks)));
    }
    if options.secure_metrics {
        documents.extend(metrics(options));
    }
    documents
}

/// The rules for reviewing the clients of metrics.
fn review_rules() -> [Value; 2] {
    let rule = |group: &str, resource: &str| {
        json!({
            "apiGroups": [format!("{group}.k8s.io")], "resources": [resource], "verbs": ["create"],
        })
    };
    [rule("authentication", "tokenreviews"), rule("authorization", "subjectaccessreviews")]
}

/// The right to review the clients of metrics, and a role for these clients, such as Prometheus.
fn metrics(options: &Options) -> Vec<Value> {
    let name = cluster_wide(options);
    let reader = json!({
        "apiVersion": format!("{GROUP}/v1"),
        "kind": "ClusterRole",
        "metadata": {"name": format!("{name}-metrics-reader")},
        "rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}],
    });
    let mut documents = role(None, format!("{name}-metrics-auth"), review_rules().into(), options);
    documents.push(reader);
    documents
}

/// Whether a right is needed to register webhooks.
fn is_for_webhooks(right: &Right) -> bool {
    let is_patched = right.verbs.iter().any(|verb| verb == "patch");
    right.group == "admissionregistration.k8s.io"
        || (right.resource == "customresourcedefinitions" && is_patched)
}

/// The right to write Leases, and the webhook certificate, in the operator's own namespace.
fn leases(options: &Options, has_webhooks: bool) -> Vec<Value> {
    let verbs = ["create", "get", "list", "watch", "patch", "delete"];
    let verbs = if options.shards { &verbs[..] } else { &verbs[..5] };
    let rule = json!({
        "apiGroups": [kopf_model::lease::GROUP], "resources": ["leases"], "verbs": verbs,
    });
    let events = json!({"apiGroups": [""], "resources": ["events"], "verbs": ["create"]});
    let mut rules = vec![rule, events];
    if has_webhooks {
        let secret = format!("{}-webhooks", options.name);
        rules.push(json!({"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]}));
        rules.push(json!({
            "apiGroups": [""], "resources": ["secrets"], "resourceNames": [secret],
            "verbs": ["get", "patch"],
        }));
    }
    let name = format!("{}-leases", options.name);
    role(Some(&options.namespace), name, rules, options)
}

/// A role and its binding; cluster-wide without a namespace; empty if there are no rights.
fn grant<'a>(
    namespace: Option<&str>,
    options: &Options,
    rights: impl Iterator<Item = &'a Right>,
) -> Vec<Value> {
    let rules: Vec<Value> = rights
        .map(|right| {
            let Right { group, resource, name, verbs, .. } = right;
            let mut rule = json!({"apiGroups": [group], "resources": [resource], "verbs": verbs});
            if let Some(name) = name {
                rule["resourceNames"] = json!([name]);
            }
            rule
        })
        .collect();
    if rules.is_empty() {
        return Vec::new();
    }
    let name = match namespace {
        Some(_) => options.name.clone(),
        None => cluster_wide(options),
    };
    role(namespace, name, rules, options)
}

fn role(namespace: Option<&str>, name: String, rules: Vec<Value>, options: &Options) -> Vec<Value> {
    let (kind, metadata) = match namespace {
        Some(namespace) => ("Role", json!({"name": name, "namespace": namespace})),
        None => ("ClusterRole", json!({"name": name})),
    };
    let account = &options.name;
    let subject =
        json!({"kind": "ServiceAccount", "name": account, "namespace": options.namespace});
    vec![
        json!({
            "apiVersion": format!("{GROUP}/v1"),
            "kind": kind,
            "metadata": metadata,
            "rules": rules,
        }),
        json!({
            "apiVersion": format!("{GROUP}/v1"),
            "kind": format!("{kind}Binding"),
            "metadata": metadata,
            "roleRef": {"apiGroup": GROUP, "kind": kind, "name": name},
            "subjects": [subject],
        }),
    ]
}

/// The name of cluster-scoped objects: the same operator may be installed in several namespaces.
fn cluster_wide(Options { name, namespace, .. }: &Options) -> String {
    if namespace == "default" { name.clone() } else { format!("{namespace}:{name}") }
}
