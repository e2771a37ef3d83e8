use kopf_core::handler::HandlerKind;
use kopf_core::invoke::{Call, Invocation, Invoke, Output};
use kopf_model::Selector;
use serde_json::json;

use super::*;

struct Nothing;

impl Invoke for Nothing {
    fn invoke(&self, _: Call) -> Invocation {
        Invocation::Future(Box::pin(async { Ok(Output::Nothing) }))
    }
}

fn handler(selector: &[&str]) -> Arc<Handler> {
    let selector = Selector::parse(selector).expect("a selector");
    Arc::new(Handler::new("fn", HandlerKind::Create, Arc::new(Nothing)).for_resources(selector))
}

fn resource(group: &str, plural: &str) -> Resource {
    Resource {
        group: group.into(),
        version: "v1".into(),
        plural: plural.into(),
        kind: plural.into(),
        singular: plural.into(),
        shortcuts: BTreeSet::new(),
        categories: BTreeSet::new(),
        subresources: BTreeSet::new(),
        namespaced: true,
        preferred: true,
        verbs: ["list", "watch", "patch"].map(String::from).into(),
    }
}

fn discovered(resources: Vec<Resource>) -> Discovered {
    Discovered { resources, unavailable: Vec::new() }
}

fn crd(established: &str) -> Object {
    Object::from_value(json!({
        "metadata": {"name": "as.x.dev"},
        "spec": {
            "group": "x.dev",
            "names": {"plural": "as"},
            "versions": [{"name": "v1", "served": true}],
        },
        "status": {"conditions": [{"type": "Established", "status": established}]},
    }))
}

#[test]
fn missing_resources_are_awaited() {
    let mut cluster_view = ClusterView::default();
    let handlers = [handler(&["x.dev", "v1", "as"])];
    let revision = cluster_view.revise(&handlers, &Scope::Cluster);
    assert!(revision.watches.is_empty());
    assert_eq!(revision.waiting_for.len(), 1);
    cluster_view.learn(None, discovered(vec![resource("x.dev", "as")]));
    let revision = cluster_view.revise(&handlers, &Scope::Cluster);
    assert_eq!(revision.watches.len(), 1);
    assert!(revision.waiting_for.is_empty());
}

#[test]
fn discovery_that_lags_behind_the_crds_is_repeated() {
    let mut cluster_view = ClusterView::default();
    assert_eq!(cluster_view.learn_crd(&crd("False"), false, false), None);
    assert_eq!(cluster_view.learn_crd(&crd("True"), false, true).as_deref(), Some("x.dev"));
    let group = BTreeSet::from(["x.dev".to_owned()]);
    cluster_view.learn(Some(&group), discovered(Vec::new()));
    assert_eq!(cluster_view.lagging(), group);
    cluster_view.learn(Some(&group), discovered(vec![resource("x.dev", "as")]));
    assert!(cluster_view.lagging().is_empty());
    assert_eq!(cluster_view.learn_crd(&crd("True"), true, false).as_deref(), Some("x.dev"));
    assert_eq!(cluster_view.lagging(), group);
}

#[test]
fn namespaces_multiply_the_watches_of_namespaced_resources() {
    let mut cluster_view = ClusterView::default();
    let scope = Scope::Namespaces(vec!["team-*".into()]);
    let handlers = [handler(&["x.dev", "v1", "as"])];
    cluster_view.learn(None, discovered(vec![resource("x.dev", "as")]));
    let namespace = |name: &str| Object::from_value(json!({"metadata": {"name": name}}));
    assert!(cluster_view.learn_namespace(&scope, &namespace("team-a"), false));
    assert!(cluster_view.learn_namespace(&scope, &namespace("team-b"), false));
    assert!(!cluster_view.learn_namespace(&scope, &namespace("other"), false));
    assert_eq!(cluster_view.revise(&handlers, &scope).watches.len(), 2);
    assert!(cluster_view.learn_namespace(&scope, &namespace("team-a"), true));
    assert_eq!(cluster_view.revise(&handlers, &scope).watches.len(), 1);
}

#[test]
fn a_group_is_replaced_and_others_stay() {
    let mut cluster_view = ClusterView::default();
    cluster_view.learn(None, discovered(vec![resource("x.dev", "as"), resource("y.dev", "bs")]));
    let group = BTreeSet::from(["x.dev".to_owned()]);
    cluster_view.learn(Some(&group), discovered(Vec::new()));
    let handlers = [handler(&["x.dev", "v1", "as"]), handler(&["y.dev", "v1", "bs"])];
    let revision = cluster_view.revise(&handlers, &Scope::Cluster);
    assert_eq!(revision.watches.len(), 1);
    assert_eq!(revision.waiting_for, ["x.dev/v1/as"]);
}

#[test]
fn only_named_versions_are_discovered_alone() {
    let named = [handler(&["x.dev", "v1", "as"]), handler(&["x.dev", "v1", "bs"])];
    let versions = ClusterView::wanted_versions(&named).expect("versions");
    assert_eq!(Vec::from_iter(versions), [("x.dev".to_owned(), "v1".to_owned())]);
    let open = [handler(&["x.dev", "v1", "as"]), handler(&["bs"])];
    assert_eq!(ClusterView::wanted_versions(&open), None);
    let many = ["v1", "v2", "v3", "v4", "v5"].map(|version| handler(&["x.dev", version, "as"]));
    assert_eq!(ClusterView::wanted_versions(&many), None);
}

#[test]
fn one_warning_names_all_missing_resources() {
    let mut cluster_view = ClusterView::default();
    let names = |names: &[&str]| names.iter().map(|it| (*it).to_owned()).collect();
    let both: BTreeSet<String> = names(&["x.dev/v1/as", "x.dev/v1/bs"]);
    let warning = cluster_view.warning_of(&both).expect("a warning");
    let prefix = "Unresolved resources cannot be served (try creating their CRDs): ";
    assert_eq!(warning, format!("{prefix}x.dev/v1/as, x.dev/v1/bs"));
    assert_eq!(cluster_view.warning_of(&both), None);
    let rest = cluster_view.warning_of(&names(&["x.dev/v1/bs"]));
    assert_eq!(rest, Some(format!("{prefix}x.dev/v1/bs")));
    assert_eq!(cluster_view.warning_of(&names(&[])), None);
    assert!(cluster_view.warning_of(&both).is_some(), "they are missing again");
}

#[test]
fn one_warning_names_all_unsuitable_resources_of_a_kind() {
    let with = |plural: &str, verbs: &[&str]| {
        let verbs = verbs.iter().map(|it| (*it).to_owned()).collect();
        let resource = Arc::new(Resource { verbs, ..resource("x.dev", plural) });
        (id_of(&resource), (resource, true))
    };
    let all = ["list", "watch", "patch"];
    let mut wanted = BTreeMap::from([
        with("as", &["create"]),
        with("bs", &["list", "patch"]),
        with("cs", &["list", "watch"]),
        with("ds", &all),
    ]);
    let notes = drop_unsuitable(&mut wanted);
    assert_eq!(
        notes,
        [
            "Non-patchable resources will not be served: {cs.v1.x.dev}",
            "Non-watchable resources will not be served: {as.v1.x.dev, bs.v1.x.dev}",
        ]
    );
    assert_eq!(wanted.len(), 1);
}
