//! The rights follow from the handlers, and every document is one that Kubernetes knows.

use std::sync::Arc;

use expect_test::expect;
use kopf_core::handler::DesiredOptions;
use kopf_core::{Call, Handler, HandlerKind, Invocation, Invoke, Output};
use kopf_model::Selector;
use kopf_model::resource::SelectorName;
use serde_json::{Value, json};

use super::{Options, files, rules, to_yaml};

struct Nothing;

impl Invoke for Nothing {
    fn invoke(&self, _call: Call) -> Invocation {
        Invocation::Blocking(Box::new(|| Ok(Output::Nothing)))
    }
}

fn handler(kind: HandlerKind, group: &str, plural: &str) -> Handler {
    Handler::new("fn", kind, Arc::new(Nothing)).for_resources(Selector {
        group: Some(group.to_owned()),
        version: Some("v1".to_owned()),
        name: SelectorName::Plural(plural.to_owned()),
    })
}

fn options(serves: Option<Vec<String>>) -> Options {
    Options {
        name: "demo".into(),
        namespace: "operators".into(),
        serves,
        image: "demo:latest".into(),
    }
}

fn shown(handlers: &[Handler], options: &Options) -> String {
    let mut text = String::new();
    for rule in rules(handlers, options).unwrap() {
        text += &format!(
            "{:?} {}/{}: {}\n",
            rule.scope,
            rule.group,
            rule.resource,
            rule.verbs.join(",")
        );
    }
    text
}

fn cluster_scoped() -> Value {
    json!({"metadata": {"name": "tenants.example.com"}, "spec": {"scope": "Cluster", "versions": [{}]}})
}

#[test]
fn a_create_handler_may_watch_and_patch() {
    let handlers = [handler(HandlerKind::Create, "example.com", "greetings")];
    expect![[r#"
        Namespaces /events: create,patch
        Namespaces example.com/greetings: list,patch,watch
        Namespaces example.com/greetings/status: patch
        Cluster apiextensions.k8s.io/customresourcedefinitions: list,watch
    "#]]
    .assert_eq(&shown(&handlers, &options(None)));
}

#[test]
fn an_index_may_only_look() {
    let handlers = [handler(HandlerKind::Index, "", "pods")];
    expect![[r#"
        Namespaces /events: create,patch
        Namespaces /pods: list,watch
    "#]]
    .assert_eq(&shown(&handlers, &options(None)));
}

#[test]
fn desired_children_may_be_applied_and_deleted() {
    let children =
        vec![Selector::exact("apps", "v1", "deployments"), Selector::exact("", "v1", "namespaces")];
    let kind = HandlerKind::Desired(DesiredOptions { children });
    let handlers = [handler(kind, "example.com", "sites")];
    expect![[r#"
        Namespaces /events: create,patch
        Namespaces apps/deployments: create,delete,list,patch,watch
        Namespaces example.com/sites: list,patch,watch
        Namespaces example.com/sites/status: patch
        Cluster /namespaces: create,delete,list,patch,watch
        Cluster apiextensions.k8s.io/customresourcedefinitions: list,watch
    "#]]
    .assert_eq(&shown(&handlers, &options(None)));
}

#[test]
fn cluster_scoped_kinds_are_granted_in_the_cluster() {
    let mut tenants = handler(HandlerKind::Create, "example.com", "tenants");
    tenants.crd = Some(cluster_scoped);
    let text = shown(&[tenants], &options(Some(vec!["a".into()])));
    assert!(text.contains("Cluster example.com/tenants: list,patch,watch"), "{text}");
    assert!(!text.contains("tenants/status"), "{text}");
}

#[test]
fn a_selector_without_a_group_is_an_error_that_names_the_handler() {
    let mut vague = handler(HandlerKind::Create, "", "pods");
    vague.selector = Some(Selector { name: SelectorName::Everything, ..Selector::default() });
    let error = rules(&[vague], &options(None)).unwrap_err();
    assert_eq!(error.to_string(), "handler `fn` does not say which API group and plural it is for");
}

#[test]
fn namespaced_operators_get_a_role_in_each_namespace() {
    let handlers = [handler(HandlerKind::Create, "example.com", "greetings")];
    let files = files(&handlers, &options(Some(vec!["a".into(), "b".into()]))).unwrap();
    let roles: Vec<String> = files
        .iter()
        .flat_map(|(_, documents)| documents)
        .map(|document| format!("{} {}", document["kind"], document["metadata"]["namespace"]))
        .collect();
    expect![[r#"
        "ServiceAccount" "operators"
        "ClusterRole" null
        "ClusterRoleBinding" null
        "Role" "a"
        "RoleBinding" "a"
        "Role" "b"
        "RoleBinding" "b"
        "Deployment" "operators"
        "Kustomization" null"#]]
    .assert_eq(&roles.join("\n"));
}

#[test]
fn several_documents_make_one_stream() {
    let text = to_yaml(&[json!({"a": 1}), json!({"b": 2})]).unwrap();
    assert_eq!(text, "a: 1\n---\nb: 2\n");
}
