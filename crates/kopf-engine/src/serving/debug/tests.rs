use std::sync::Arc;

use kopf_core::handler::{Need, TimerOptions};
use kopf_core::invoke::{Call, Invocation, Invoke, Output};
use kopf_model::{FieldPath, Selector};

use super::*;
use crate::reporting::status::EngineWatches;

struct Nothing;

impl Invoke for Nothing {
    fn invoke(&self, _: Call) -> Invocation {
        Invocation::Future(Box::pin(async { Ok(Output::Nothing) }))
    }
}

fn handler_of(kind: HandlerKind) -> Handler {
    let selector = Selector::parse(&["x.dev", "v1", "widgets"]).expect("a selector");
    Handler::new("tick", kind, Arc::new(Nothing)).for_resources(selector)
}

#[test]
fn a_handler_report_has_options_conditions_and_rights() {
    let interval = Some(Duration::from_millis(1500));
    let mut timer =
        handler_of(HandlerKind::Timer(TimerOptions { interval, ..TimerOptions::default() }));
    timer.retrying.retries = Some(3);
    timer.filters.labels = vec![("tier".into(), MetaFilter::Equals("live".into()))];
    timer.filters.field = Some(FieldPath::from_keys(["spec", "size"]));
    let verbs = vec!["get".to_owned()];
    timer.access.needs = vec![Need { group: String::new(), resource: "secrets".into(), verbs }];
    timer.docs.signature = Some("async fn tick()".to_owned());
    let report = operator([&timer], &Settings::default(), Some("clock"), false);
    assert_eq!(report.name.as_deref(), Some("clock"));
    let shown = &report.handlers[0];
    assert_eq!((shown.id.as_str(), shown.kind.as_str()), ("tick", "timer"));
    let option = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(shown.signature.as_deref(), Some("async fn tick()"));
    assert_eq!(shown.options, [option("interval", "1.5 s"), option("retries", "3")]);
    assert_eq!(shown.conditions, ["label tier is `live`", "field spec.size is there"]);
    assert!(shown.rights.contains(&"get secrets".to_owned()), "{:?}", shown.rights);
}

#[test]
fn the_report_has_the_places_of_records_on_objects() {
    let report = operator([], &Settings::default(), None, false);
    assert_eq!(report.progress_prefix.as_deref(), Some("kopf.zalando.org"));
    let annotation = "kopf.zalando.org/last-handled-configuration";
    assert_eq!(report.last_handled_annotation.as_deref(), Some(annotation));
    assert!(!report.actions, "nobody has allowed actions");
}

#[test]
fn every_watch_has_its_purpose() {
    let named = |name: &str| WatchStatus { resource: name.into(), ..WatchStatus::default() };
    let report = status(&Status {
        watches: vec![named("widgets.v1.x.dev")],
        engine_watches: EngineWatches {
            discovery: vec![named("namespaces.v1")],
            ..EngineWatches::default()
        },
        requests: [(("GET".to_owned(), 429), 2)].into(),
        ..Status::default()
    });
    let purposes: Vec<&str> = report.watches.iter().map(|it| it.purpose.as_str()).collect();
    assert_eq!(purposes, ["handlers", "discovery"]);
    assert_eq!((report.requests[0].code, report.requests[0].count), (429, 2));
}

#[test]
fn names_of_other_sites_are_rejected() {
    let of = |host: &'static str| {
        HeaderMap::from_iter([(header::HOST, http::HeaderValue::from_static(host))])
    };
    for host in ["127.0.0.1:8080", "[::1]:8080", "localhost:8080", "10.0.0.7"] {
        assert!(is_local(&of(host)), "{host}");
    }
    for host in ["evil.example:8080", "localhost.evil.example", "127.0.0.1.evil.example"] {
        assert!(!is_local(&of(host)), "{host}");
    }
    assert!(!is_local(&HeaderMap::new()));
}
