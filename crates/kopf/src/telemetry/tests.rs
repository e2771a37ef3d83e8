//! Spans form the expected tree and reach a collector.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use k8s_openapi::api::core::v1::ConfigMap;
use kopf_testing::World;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};
use serde_json::json;
use tracing_subscriber::layer::SubscriberExt as _;

use super::{PATIENCE, Telemetry};
use crate::prelude::*;

#[kopf::on::create(ConfigMap, labels = {"app": "web"})]
async fn created(patch: &mut Patch) {
    patch.set(["metadata", "annotations", "seen"], "yes");
}

#[derive(Clone, Debug, Default)]
struct Collected(Arc<Mutex<Vec<SpanData>>>);

impl SpanExporter for Collected {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        self.0.lock().expect("nobody panics with it").extend(batch);
        Ok(())
    }
}

#[test]
fn requests_hang_below_the_cause_that_made_them() {
    let collected = Collected::default();
    let telemetry = Telemetry::to_exporter(collected.clone());
    let subscriber = tracing_subscriber::registry().with(telemetry.layer());
    let _listening = tracing::subscriber::set_default(subscriber);
    kopf_testing::run(|world: World| async move {
        let operator = world.start(crate::operator!("demo", [created])).await;
        let map = json!({"metadata": {"name": "a", "labels": {"app": "web"}}});
        let map: ConfigMap = serde_json::from_value(map).expect("a config map");
        world.create(&map).await.expect("it is created");
        world.settled().await;
        drop(operator);
    });
    let spans = collected.0.lock().expect("nobody panics with it").clone();
    let parent = |span: &SpanData| {
        spans.iter().find(|other| other.span_context.span_id() == span.parent_span_id)
    };
    let path = |span: &SpanData| {
        let mut names = vec![span.name.to_string()];
        let mut above = parent(span);
        while let Some(span) = above {
            names.insert(0, span.name.to_string());
            above = parent(span);
        }
        names.join("/")
    };
    let paths: Vec<String> = spans.iter().map(path).collect();
    for expected in ["object/cause", "object/cause/handler", "object/cause/request"] {
        assert!(paths.iter().any(|path| path == expected), "no {expected} among {paths:?}");
    }
    let has = |name: &str, key: &str, value: &str| {
        let is_it = |span: &&SpanData| span.name == name;
        spans.iter().filter(is_it).any(|span| {
            let mut attributes = span.attributes.iter();
            attributes.any(|it| it.key.as_str() == key && it.value.to_string() == value)
        })
    };
    assert!(has("cause", "reason", "create") && has("handler", "id", "created"), "{spans:#?}");
    assert!(has("request", "method", "PATCH") && has("request", "code", "200"), "{spans:#?}");
}

#[test]
fn spans_reach_a_collector_before_the_end() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}/v1/traces", listener.local_addr().expect("an address"));
    let (sender, collected) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        let mut received = Vec::new();
        let mut buffer = [0; 4096];
        while !received.windows(5).any(|part| part == b"cause") {
            let count = stream.read(&mut buffer).expect("bytes");
            assert!(count > 0, "it ended early: {}", String::from_utf8_lossy(&received));
            received.extend_from_slice(&buffer[..count]);
        }
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
        stream.write_all(answer).expect("the answer is sent");
        let _ = sender.send(String::from_utf8_lossy(&received).into_owned());
    });
    // As in real programs, the only thread of the runtime is the one that waits for the last spans.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let telemetry = Telemetry::to(&url, "demo").expect("a good URL");
        let subscriber = tracing_subscriber::registry().with(telemetry.layer());
        tracing::subscriber::with_default(subscriber, || {
            tracing::info_span!(target: "kopf.causes", "cause", reason = "create").in_scope(|| {});
            tracing::info_span!(target: "other", "noise").in_scope(|| {});
        });
        drop(telemetry);
    });
    let received = collected.recv_timeout(PATIENCE).expect("the collector is content");
    assert!(received.starts_with("POST /v1/traces HTTP/1.1\r\n"), "{received}");
    assert!(received.contains("application/x-protobuf") && received.contains("demo"), "{received}");
    assert!(!received.contains("noise"), "only our own spans are sent");
}
