use std::sync::Arc;

use kopf_core::{Call, Handler, HandlerKind, Invocation, Invoke, Output};
use kopf_model::Selector;
use serde_json::Value;

use super::{dashboard, queries, rules};
use crate::manifests::Options;

struct Nothing;

impl Invoke for Nothing {
    fn invoke(&self, _: Call) -> Invocation {
        Invocation::Future(Box::pin(async { Ok(Output::Nothing) }))
    }
}

fn handler(id: &str, kind: HandlerKind) -> Handler {
    let handler = Handler::new(id, kind, Arc::new(Nothing));
    handler.for_resources(Selector::exact("kopf.dev", "v1", "greetings"))
}

fn options() -> Options {
    Options {
        name: "demo".into(),
        namespace: "operators".into(),
        serves: None,
        image: "demo:1".into(),
        program: "demo".into(),
        replicas: 1,
        shards: false,
        secure_metrics: false,
        metrics_from: Vec::new(),
    }
}

#[test]
fn each_handler_has_its_alerts_and_panels() {
    let handlers = [handler("greet", HandlerKind::Create), handler("part", HandlerKind::Update)];
    let text = rules(&handlers, &options()).to_string();
    for id in ["greet", "part"] {
        assert!(text.contains(&format!("The handler {id} has given up on an object")), "{text}");
    }
    let titles: Vec<String> = dashboard(&handlers, &options())["panels"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|panel| panel["title"].as_str().map(str::to_owned))
        .collect();
    assert!(titles.contains(&"Handler greet".to_owned()), "{titles:?}");
}

#[test]
fn rules_for_events_exist_only_with_event_handlers() {
    let lost =
        |kind| rules(&[handler("fn", kind)], &options()).to_string().contains("KopfEventsLost");
    assert!(lost(HandlerKind::Event));
    assert!(!lost(HandlerKind::Create));
}

#[test]
fn panels_do_not_overlap() {
    let board = dashboard(&[handler("greet", HandlerKind::Create)], &options());
    let panels = board["panels"].as_array().unwrap();
    let cells = |panel: &Value| {
        let number = |field: &str| panel["gridPos"][field].as_u64().unwrap();
        let (x, y) = (number("x"), number("y"));
        let (across, down) = (x..x + number("w"), y..y + number("h"));
        down.flat_map(move |y| across.clone().map(move |x| (x, y))).collect::<Vec<_>>()
    };
    let all: Vec<_> = panels.iter().flat_map(cells).collect();
    let different: std::collections::BTreeSet<_> = all.iter().collect();
    assert_eq!(all.len(), different.len());
    assert!(all.iter().all(|(x, _)| *x < 24));
}

#[test]
fn queries_have_balanced_brackets() {
    for query in queries(&[handler("a/spec.\"b\"", HandlerKind::Create)], &options()) {
        for (open, close) in [('(', ')'), ('{', '}'), ('[', ']')] {
            let count = |bracket| query.chars().filter(|it| *it == bracket).count();
            assert_eq!(count(open), count(close), "{query}");
        }
    }
}
