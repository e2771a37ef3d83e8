//! The rights follow only from the handlers.

use std::sync::Arc;

use kopf_model::Selector;
use kopf_model::resource::SelectorName;
use serde_json::{Value, json};

use super::{Serves, of};
use crate::handler::{ConvertOptions, Need, Touches, TypeDefinition, WebhookOptions};
use crate::invoke::Output;
use crate::settings::Settings;
use crate::{Call, Handler, HandlerKind, Invocation, Invoke};

struct Nothing;

impl Invoke for Nothing {
    fn invoke(&self, _call: Call) -> Invocation {
        Invocation::Blocking(Box::new(|| Ok(Output::Nothing)))
    }
}

fn handler(kind: HandlerKind, group: &str, plural: &str) -> Handler {
    let selector = Selector::exact(group, "v1", plural);
    let handler = Handler::new("fn", kind, Arc::new(Nothing)).for_resources(selector);
    Handler { access: Touches::nothing().into(), ..handler }
}

fn greeting(kind: HandlerKind) -> Handler {
    handler(kind, "example.com", "greetings")
}

fn check(handlers: &[Handler], expected: &[&str]) {
    let found = of(handlers, &Settings::default(), Serves::Namespaces);
    let found: Vec<String> =
        found.iter().map(|right| format!("{:?}: {right}", right.scope)).collect();
    assert_eq!(found, expected);
}

const CRDS: &str = "Cluster: list,watch customresourcedefinitions.apiextensions.k8s.io";

#[test]
fn a_change_handler_keeps_its_state_on_the_object() {
    let patched = "Namespaces: list,patch,watch greetings.example.com";
    check(&[greeting(HandlerKind::Create)], &[patched, CRDS]);
}

#[test]
fn definitions_are_followed_for_custom_resources_in_any_domain() {
    for group in ["gateway.networking.k8s.io", "snapshot.storage.k8s.io", "autoscaling.k8s.io"] {
        let looked_at = format!("Namespaces: list,watch things.{group}");
        check(&[handler(HandlerKind::Event, group, "things")], &[&looked_at, CRDS]);
    }
    let looked_at = "Namespaces: list,watch ingresses.networking.k8s.io";
    check(&[handler(HandlerKind::Event, "networking.k8s.io", "ingresses")], &[looked_at]);
}

#[test]
fn results_go_to_the_status_and_recorded_events_to_the_cluster() {
    let touches = Touches { status: true, events: true, object: false };
    let handler = Handler { access: touches.into(), ..greeting(HandlerKind::Create) };
    check(
        &[handler],
        &[
            "Namespaces: create,patch events",
            "Namespaces: list,patch,watch greetings.example.com",
            "Namespaces: patch greetings/status.example.com",
            CRDS,
        ],
    );
}

#[test]
fn event_handlers_and_indexes_only_read() {
    check(&[greeting(HandlerKind::Event)], &["Namespaces: list,watch greetings.example.com", CRDS]);
    check(&[handler(HandlerKind::Index, "", "pods")], &["Namespaces: list,watch pods"]);
}

#[test]
fn unknown_functions_may_change_anything_of_their_object() {
    let spy = Handler { access: Touches::everything().into(), ..greeting(HandlerKind::Event) };
    check(
        &[spy],
        &[
            "Namespaces: create,patch events",
            "Namespaces: list,patch,watch greetings.example.com",
            "Namespaces: patch greetings/status.example.com",
            CRDS,
        ],
    );
}

#[test]
fn webhooks_configure_themselves_and_follow_definitions_only() {
    check(
        &[greeting(HandlerKind::Validate(WebhookOptions::default()))],
        &[
            "Cluster: create,get,patch mutatingwebhookconfigurations.admissionregistration.k8s.io",
            "Cluster: create,get,patch validatingwebhookconfigurations.admissionregistration.k8s.io",
            CRDS,
        ],
    );
}

#[test]
fn conversions_change_their_own_definition_only() {
    let to = Selector::exact("example.com", "v2", "greetings");
    let convert = greeting(HandlerKind::Convert(ConvertOptions { to, definition: None }));
    let back = greeting(convert.kind.clone());
    let own = "Cluster: get,patch customresourcedefinitions.apiextensions.k8s.io \
               greetings.example.com";
    check(&[convert.clone(), back], &[CRDS, own]);
    let everything =
        Handler { selector: Some(Selector::everything()), ..greeting(HandlerKind::Create) };
    let found = of(&[convert, everything], &Settings::default(), Serves::Cluster);
    let own = found.iter().find(|right| right.name.is_some()).expect("a right");
    assert_eq!(own.verbs, ["get"], "patching anything covers it");
}

#[test]
fn desired_children_are_applied_and_deleted_where_they_are() {
    let children =
        vec![Selector::exact("apps", "v1", "deployments"), Selector::exact("", "v1", "namespaces")];
    check(
        &[Handler { children, ..greeting(HandlerKind::Desired) }],
        &[
            "Namespaces: create,patch events",
            "Namespaces: create,delete,list,patch,watch deployments.apps",
            "Namespaces: list,patch,watch greetings.example.com",
            "Namespaces: patch greetings/status.example.com",
            "Cluster: create,delete,list,patch,watch namespaces",
            CRDS,
        ],
    );
}

#[test]
fn children_are_only_read_for_observers() {
    for kind in [HandlerKind::Event, HandlerKind::Observe] {
        let children = vec![Selector::exact("apps", "v1", "deployments")];
        let access = Touches::nothing().into();
        check(
            &[Handler { children, access, ..greeting(kind) }],
            &[
                "Namespaces: list,watch deployments.apps",
                "Namespaces: list,watch greetings.example.com",
                CRDS,
            ],
        );
    }
}

#[test]
fn owners_in_the_namespace_of_their_children_need_no_finalizer() {
    let children = vec![Selector::exact("", "v1", "services")];
    let desired = Handler { children, ..greeting(HandlerKind::Desired) };
    let found = of(&[desired], &Settings::default(), Serves::Cluster);
    let owner = found.iter().find(|right| right.resource == "greetings").expect("it is watched");
    assert_eq!(owner.verbs, ["list", "watch"]);
}

#[test]
fn declared_needs_are_granted() {
    let mut handler = greeting(HandlerKind::Index);
    handler.access.needs.push(Need {
        group: String::new(),
        resource: "pods".into(),
        verbs: vec!["create".into(), " get".into()],
    });
    check(
        &[handler],
        &["Namespaces: create,get pods", "Namespaces: list,watch greetings.example.com", CRDS],
    );
}

#[test]
fn families_of_resources_need_wildcards_which_cover_the_rest() {
    let all = Selector { name: SelectorName::Category("all".into()), ..Selector::default() };
    let spy = Handler { selector: Some(all), ..greeting(HandlerKind::Event) };
    let ours = Selector { group: Some("example.com".into()), ..Selector::everything() };
    let ours = Handler { selector: Some(ours), ..greeting(HandlerKind::Create) };
    let one = greeting(HandlerKind::Create);
    check(
        &[spy, ours, one],
        &["Namespaces: list,watch *.*", "Namespaces: patch *.example.com", CRDS],
    );
}

#[test]
fn wildcards_cover_definitions_when_everything_is_served() {
    let spy = Handler { selector: Some(Selector::everything()), ..greeting(HandlerKind::Event) };
    let found = of(&[spy], &Settings::default(), Serves::Cluster);
    assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>(), ["list,watch *.*"]);
}

#[test]
fn built_in_resources_without_a_status_are_known() {
    let touches = Touches { status: true, ..Touches::nothing() };
    let maps = Handler {
        access: touches.into(),
        ..handler(HandlerKind::Timer(Default::default()), "", "configmaps")
    };
    check(&[maps], &["Namespaces: list,patch,watch configmaps"]);
    let pods = Handler { access: touches.into(), ..handler(HandlerKind::Event, "", "pods") };
    check(&[pods], &["Namespaces: list,watch pods", "Namespaces: patch pods/status"]);
}

#[test]
fn cluster_wide_resources_are_granted_in_the_cluster() {
    fn definition() -> Value {
        json!({"spec": {"scope": "Cluster", "versions": [{}]}})
    }
    let kind = HandlerKind::Delete { optional: true };
    let typed =
        Handler { definition: Some(TypeDefinition::lazy(definition)), ..greeting(kind.clone()) };
    let given = Handler { definition: Some(definition().into()), ..greeting(kind) };
    for handler_of_greetings in [typed, given] {
        check(
            &[handler_of_greetings, handler(HandlerKind::Index, "", "nodes")],
            &["Cluster: list,watch nodes", CRDS, "Cluster: list,patch,watch greetings.example.com"],
        );
    }
}
