//! Every query of the generated alerts and dashboard uses only metrics and labels that a running
//! operator exports.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kopf_cli::manifests::{Options, monitoring};
use kopf_core::registry::Registry;
use kopf_core::{Call, Handler, HandlerKind, Invocation, Invoke, Output, definition};
use kopf_engine::{Engine, ProbesEndpoint};
use kopf_model::Selector;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::screen::Terminal;

/// The timeout for the operator to call its handlers.
const PATIENCE: Duration = Duration::from_secs(30);
/// Words in queries other than metrics and labels.
const WORDS: [&str; 9] =
    ["absent", "by", "histogram_quantile", "increase", "job", "max", "min", "rate", "sum"];

struct Nothing;

impl Invoke for Nothing {
    fn invoke(&self, _: Call) -> Invocation {
        Invocation::Future(Box::pin(async { Ok(Output::Nothing) }))
    }
}

fn databases() -> Selector {
    Selector::exact("example.com", "v1", "databases")
}

fn handlers() -> Vec<Handler> {
    let handler = |id: &str, kind| Handler::new(id, kind, Arc::new(Nothing));
    [handler("create_fn", HandlerKind::Create), handler("event_fn", HandlerKind::Event)]
        .map(|handler| handler.for_resources(databases()))
        .into()
}

async fn metrics(endpoint: &ProbesEndpoint) -> String {
    let mut stream = tokio::net::TcpStream::connect(endpoint.address).await.expect("a listener");
    let request = "GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).await.expect("it is sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    answer
}

/// The exported metrics, each with its labels.
fn exported(text: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in text.lines().filter(|line| line.starts_with("kopf_")) {
        let (name, rest) = line.split_at(line.find(['{', ' ']).expect("a value"));
        let labels = found.entry(name.to_owned()).or_default();
        let inside = rest.strip_prefix('{').and_then(|rest| rest.split_once('}'));
        for label in inside.map(|(inside, _)| inside).unwrap_or_default().split(',') {
            labels.extend(label.split_once('=').map(|(name, _)| name.to_owned()));
        }
    }
    found
}

/// The words of a query outside of quotes and of durations in brackets.
fn words(query: &str) -> BTreeSet<String> {
    let unquoted: String = query.split('"').step_by(2).collect::<Vec<_>>().join(" ");
    let mut plain = String::new();
    let mut depth = 0_u32;
    for character in unquoted.chars() {
        match character {
            '[' => depth += 1,
            ']' => depth -= 1,
            other if depth == 0 => plain.push(other),
            _ => {}
        }
    }
    let is_word = |character: char| character.is_ascii_alphanumeric() || character == '_';
    plain
        .split(|character| !is_word(character))
        .filter(|word| word.starts_with(|first: char| first.is_ascii_alphabetic()))
        .map(str::to_owned)
        .collect()
}

#[tokio::test]
async fn queries_are_about_what_a_running_operator_exports() {
    let terminal = Terminal::new().await;
    let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    terminal.create(crds, &definition::implied(&databases()).expect("a definition")).await;
    let endpoint = ProbesEndpoint::on_loopback().expect("a free port");
    let engine = Engine::builder(Registry::from_iter(handlers())).client(terminal.client.clone());
    let running = engine.probes(endpoint.clone()).build().start();
    running.settled().await;
    let object = json!({
        "apiVersion": "example.com/v1", "kind": "Database", "metadata": {"name": "orders"},
    });
    terminal.create("/apis/example.com/v1/namespaces/default/databases", &object).await;
    let handled = "kopf_handler_outcomes_total{handler=\"create_fn\",outcome=\"success\"} 1";
    let seen = async {
        while !metrics(&endpoint).await.contains(handled) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, seen).await.expect("the handler is called");
    let exported = exported(&metrics(&endpoint).await);
    running.abort();

    let options = Options {
        name: "demo".into(),
        namespace: "operators".into(),
        serves: None,
        image: "demo:1".into(),
        program: "demo".into(),
        replicas: 1,
        shards: false,
        secure_metrics: false,
        metrics_from: Vec::new(),
    };
    let queries = monitoring::queries(&handlers(), &options);
    assert!(queries.len() > 20, "{queries:?}");
    for query in queries {
        let words = words(&query);
        let metrics: Vec<&String> = words.iter().filter(|it| it.starts_with("kopf_")).collect();
        assert!(!metrics.is_empty(), "{query}");
        let mut labels: BTreeSet<&str> = BTreeSet::new();
        for metric in metrics {
            let known = exported.get(metric);
            let known = known.unwrap_or_else(|| panic!("{metric} is not exported: {query}"));
            labels.extend(known.iter().map(String::as_str));
        }
        let unknown = |word: &&String| {
            !word.starts_with("kopf_")
                && !labels.contains(word.as_str())
                && !WORDS.contains(&word.as_str())
        };
        let unknown: Vec<&String> = words.iter().filter(unknown).collect();
        assert!(unknown.is_empty(), "{unknown:?} are neither labels nor functions: {query}");
    }
}
