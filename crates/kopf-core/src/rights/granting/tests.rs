//! The rights needed to grant rights: no more than known to be enough.

use std::sync::Arc;

use kopf_model::Selector;

use super::{GROUP, notes};
use crate::handler::{Access, Grants, Need, Touches};
use crate::invoke::Output;
use crate::rights::{Serves, of};
use crate::settings::Settings;
use crate::{Call, Handler, HandlerKind, Invocation, Invoke};

struct Nothing;

impl Invoke for Nothing {
    fn invoke(&self, _call: Call) -> Invocation {
        Invocation::Blocking(Box::new(|| Ok(Output::Nothing)))
    }
}

fn making(children: &[&str], grants: Grants) -> Handler {
    let selector = Selector::exact("example.com", "v1", "teams");
    let handler = Handler::new("access", HandlerKind::Desired, Arc::new(Nothing));
    let children = children.iter().map(|plural| Selector::exact(GROUP, "v1", plural)).collect();
    let access = Access { grants, ..Access::from(Touches::nothing()) };
    Handler { access, children, ..handler.for_resources(selector) }
}

fn rules() -> Vec<Need> {
    let verbs = vec!["get".to_owned(), " list".to_owned()];
    vec![Need { group: String::new(), resource: "pods".into(), verbs }]
}

/// The rights beyond those for the children themselves.
#[track_caller]
fn check(handler: &Handler, expected: &[&str]) {
    let found = of([handler], &Settings::default(), Serves::Namespaces);
    let is_extra =
        |right: &String| ["escalate", "bind ", "pods"].iter().any(|word| right.contains(word));
    let found = found.iter().map(|right| format!("{:?}: {right}", right.scope));
    assert_eq!(found.filter(is_extra).collect::<Vec<_>>(), expected);
}

#[test]
fn declared_rules_are_held_and_nothing_more() {
    let grants = Grants { rules: rules(), ..Grants::default() };
    check(&making(&["roles", "rolebindings"], grants.clone()), &["Namespaces: get,list pods"]);
    check(&making(&["clusterroles"], grants), &["Cluster: get,list pods"]);
}

#[test]
fn unknown_roles_need_escalate() {
    check(
        &making(&["roles"], Grants::default()),
        &["Namespaces: create,delete,escalate,list,patch,watch roles.rbac.authorization.k8s.io"],
    );
}

#[test]
fn bindings_need_bind_for_declared_roles_or_for_all() {
    let bound = vec![("clusterroles".to_owned(), "view".to_owned())];
    let named = Grants { bound, ..Grants::default() };
    check(
        &making(&["rolebindings"], named.clone()),
        &["Namespaces: bind clusterroles.rbac.authorization.k8s.io view"],
    );
    check(
        &making(&["clusterrolebindings"], named),
        &["Cluster: bind clusterroles.rbac.authorization.k8s.io view"],
    );
    check(
        &making(&["rolebindings"], Grants::default()),
        &[
            "Namespaces: bind clusterroles.rbac.authorization.k8s.io",
            "Namespaces: bind roles.rbac.authorization.k8s.io",
        ],
    );
    check(
        &making(&["clusterrolebindings"], Grants::default()),
        &["Cluster: bind clusterroles.rbac.authorization.k8s.io"],
    );
}

#[test]
fn children_that_are_only_read_need_no_rights() {
    let watching = Handler { kind: HandlerKind::Observe, ..making(&["roles"], Grants::default()) };
    check(&watching, &[]);
    assert!(notes([&watching]).is_empty());
}

#[test]
fn notes_explain_the_rights_and_how_to_reduce_them() {
    let wide = notes([&making(&["roles", "rolebindings"], Grants::default())]);
    assert!(wide[0].contains("`access` makes roles") && wide[0].contains("grants ="), "{wide:?}");
    assert!(wide[1].contains("binds ="), "{wide:?}");
    let held = notes([&making(&["roles"], Grants { rules: rules(), ..Grants::default() })]);
    assert!(held[0].contains("holds what the handler declares"), "{held:?}");
    assert!(notes([&making(&["things"], Grants::default())]).is_empty());
}
