//! The operator's own ports against clients that are slow, many, or send too much.
//!
//! Sockets and a paused clock are incompatible, so these tests run in real time.

use std::sync::Arc;
use std::time::Duration;

use kopf_core::handler::{HandlerKind, WebhookOptions};
use kopf_core::settings::{Serving, Settings};
use kopf_engine::{ProbesEndpoint, Running};
use kube::api::Api;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::debug::get;
use crate::webhooks::endpoint;
use crate::world::{World, handler};

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(30);
/// For deadlines that must not cause a close.
const NEVER: Duration = Duration::from_secs(3600);
/// For the deadline that should be missed.
const SOON: Duration = Duration::from_millis(100);

type Validating = k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;

/// No deadline is missed, unless the test wants it.
fn patient() -> Serving {
    Serving {
        handshake_timeout: NEVER,
        head_timeout: NEVER,
        body_timeout: NEVER,
        write_timeout: NEVER,
        idle_timeout: NEVER,
        ..Serving::default()
    }
}

fn settings(serving: Serving) -> Settings {
    let mut settings = Settings::default();
    settings.posting.enabled = false;
    settings.serving = serving;
    settings
}

async fn with_probes(world: &World, serving: Serving) -> (Running, ProbesEndpoint) {
    let endpoint = ProbesEndpoint::on_loopback().expect("a free port");
    let builder = world.engine(vec![world.noting("create_fn", HandlerKind::Create)]);
    let builder = builder.settings(settings(serving)).probes(endpoint.clone());
    (world.start_built(builder).await, endpoint)
}

/// Sends something, and leaves the connection open.
async fn begin(endpoint: &ProbesEndpoint, text: &str) -> TcpStream {
    let mut stream = TcpStream::connect(endpoint.address).await.expect("a listener");
    stream.write_all(text.as_bytes()).await.expect("it is sent");
    stream
}

/// What is received until the other side closes the connection, if it does.
async fn until_closed(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut answer = Vec::new();
    // A client sees either a reset or an end.
    let reading = stream.read_to_end(&mut answer);
    let _ = tokio::time::timeout(PATIENCE, reading).await.expect("the connection is closed");
    String::from_utf8_lossy(&answer).into_owned()
}

/// The head and the body of one response on a connection that stays open.
async fn response(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut answer = String::new();
    let reading = async {
        while !answer.contains("\r\n\r\n") {
            let byte = stream.read_u8().await.expect("an answer");
            answer.push(char::from(byte));
        }
        let length = answer.lines().find_map(|line| line.strip_prefix("content-length: "));
        let mut body = vec![0; length.expect("a length").parse().expect("a number")];
        stream.read_exact(&mut body).await.expect("a body");
        answer.push_str(&String::from_utf8_lossy(&body));
        answer
    };
    tokio::time::timeout(PATIENCE, reading).await.expect("an answer in time")
}

#[tokio::test]
async fn a_kubelet_gets_a_response_while_others_stall() {
    let world = World::new().await;
    let serving = Serving { connections_max: 8, ..patient() };
    let (engine, endpoint) = with_probes(&world, serving).await;
    let mut others = Vec::new();
    for _ in 0..100 {
        others.push(begin(&endpoint, "GET /healthz HTTP/1.1\r\nX: ").await);
    }
    assert_eq!(get(&endpoint, "/healthz").await.0, 200);
    // All above the limit are closed, the oldest first.
    for other in &mut others[..92] {
        assert_eq!(until_closed(other).await, "");
    }
    let last = others.last_mut().expect("the last one");
    last.write_all(b"y\r\n\r\n").await.expect("it is still open");
    assert!(response(last).await.starts_with("HTTP/1.1 200"));
    engine.stop().await.expect("a clean end");
}

#[tokio::test]
async fn every_part_of_a_request_has_a_deadline() {
    let world = World::new().await;
    let serving = Serving { head_timeout: SOON, ..patient() };
    let (engine, endpoint) = with_probes(&world, serving).await;
    for head in ["", "GET /healthz HTTP/1.1\r\nX: "] {
        until_closed(&mut begin(&endpoint, head).await).await;
    }
    engine.stop().await.expect("a clean end");

    let serving = Serving { idle_timeout: SOON, ..patient() };
    let (engine, endpoint) = with_probes(&world, serving).await;
    let mut idle = begin(&endpoint, "GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").await;
    assert!(until_closed(&mut idle).await.starts_with("HTTP/1.1 200"));
    engine.stop().await.expect("a clean end");

    let serving = Serving { body_timeout: SOON, ..patient() };
    let hooks = Hooks::start(&world, serving).await;
    let mut slow = hooks.connect().await;
    post(&mut slow, "/check", 1000, b"{").await;
    assert_eq!(until_closed(&mut slow).await, "");
    hooks.engine.stop().await.expect("a clean end");

    let serving = Serving { handshake_timeout: SOON, ..patient() };
    let hooks = Hooks::start(&world, serving).await;
    let mut silent = TcpStream::connect(&hooks.address).await.expect("a listener");
    until_closed(&mut silent).await;
    hooks.engine.stop().await.expect("a clean end");
}

#[tokio::test]
async fn probes_accept_only_get() {
    let world = World::new().await;
    let (engine, endpoint) = with_probes(&world, patient()).await;
    let head = "POST /healthz HTTP/1.1\r\nhost: x\r\ncontent-length: 9000000\r\n\r\n";
    let answer = until_closed(&mut begin(&endpoint, head).await).await;
    assert!(answer.starts_with("HTTP/1.1 405"), "{answer}");
    engine.stop().await.expect("a clean end");
}

/// A running engine with one webhook, and its client.
struct Hooks {
    engine: Running,
    address: String,
    connector: TlsConnector,
}

impl Hooks {
    async fn start(world: &World, serving: Serving) -> Self {
        Self::warning(world, serving, 0).await
    }

    /// The responses have a warning of this size.
    async fn warning(world: &World, serving: Serving, size: usize) -> Self {
        let options = WebhookOptions::default();
        let check = handler("check", HandlerKind::Validate(options), move |call| {
            call.warnings.as_ref().expect("a review").lock().push("x".repeat(size));
            Ok(kopf_core::invoke::Output::Nothing)
        });
        let builder = world.engine(vec![check]).settings(settings(serving)).admission(endpoint());
        let engine = world.start_built(builder).await;
        let api: Api<Validating> = Api::all(world.client.clone());
        let found = api.get("my-operator.dev").await.expect("a configuration");
        let config = found.webhooks.expect("webhooks").remove(0).client_config;
        let url: http::Uri = config.url.expect("a URL").parse().expect("a URL");
        let bundle = config.ca_bundle.expect("an authority").0;
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(&bundle).expect("a certificate")).expect("valid");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let client = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let address = url.authority().expect("a host").to_string();
        Self { engine, address, connector: TlsConnector::from(Arc::new(client)) }
    }

    async fn connect(&self) -> TlsStream<TcpStream> {
        let stream = TcpStream::connect(&self.address).await.expect("a listener");
        let name = ServerName::try_from("127.0.0.1").expect("a name");
        self.connector.connect(name, stream).await.expect("a handshake")
    }
}

async fn post(stream: &mut (impl AsyncWrite + Unpin), path: &str, length: usize, part: &[u8]) {
    let head = format!("POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.expect("the head is sent");
    stream.write_all(part).await.expect("a part is sent");
    stream.flush().await.expect("all is sent");
}

/// A review with the old and the new object, of about this size each.
fn review(size: usize) -> Vec<u8> {
    let object = json!({
        "apiVersion": "kopf.dev/v1", "kind": "KopfExample",
        "metadata": {"name": "a", "namespace": "default"}, "spec": {"text": "x".repeat(size)},
    });
    let request = json!({
        "uid": "1", "operation": "UPDATE", "userInfo": {"username": "me"},
        "object": object, "oldObject": object,
        "resource": {"group": "kopf.dev", "version": "v1", "resource": "kopfexamples"},
    });
    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request,
    });
    review.to_string().into_bytes()
}

#[tokio::test]
async fn unneeded_bodies_are_rejected_before_they_are_read() {
    let world = World::new().await;
    let hooks = Hooks::start(&world, patient()).await;
    for (path, length, expected) in [
        ("/convert/x.y", 260_000_000, "404"),
        ("/nobody", 100, "404"),
        ("/check", 9_000_000, "413"),
        ("/", 9_000_000, "413"),
    ] {
        let mut stream = hooks.connect().await;
        post(&mut stream, path, length, b"{").await;
        let answer = until_closed(&mut stream).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {expected}")), "{path}: {answer}");
    }
    // The largest request of an API server is accepted: objects have 3 MB.
    let largest = review(3_500_000);
    let mut stream = hooks.connect().await;
    for _ in 0..2 {
        post(&mut stream, "/check", largest.len(), &largest).await;
        let answer = response(&mut stream).await;
        assert!(answer.contains("\"allowed\":true"), "{answer}");
    }
    hooks.engine.stop().await.expect("a clean end");
}

#[tokio::test]
async fn slow_bodies_are_closed_when_memory_is_short() {
    let world = World::new().await;
    let serving = Serving { review_bytes_max: 90_000, buffered_bytes_max: 100_000, ..patient() };
    let hooks = Hooks::start(&world, serving).await;
    let mut slow = hooks.connect().await;
    post(&mut slow, "/check", 85_000, &[b' '; 80_000]).await;
    let body = review(20_000);
    for _ in 0..10 {
        let mut stream = hooks.connect().await;
        post(&mut stream, "/check", body.len(), &body).await;
        let answer = response(&mut stream).await;
        assert!(answer.contains("\"allowed\":true"), "{answer}");
    }
    assert_eq!(until_closed(&mut slow).await, "");
    hooks.engine.stop().await.expect("a clean end");
}

#[tokio::test]
async fn clients_that_do_not_read_their_response_are_closed() {
    let world = World::new().await;
    let serving = Serving { write_timeout: SOON, ..patient() };
    // Much more than what the sockets themselves buffer.
    let hooks = Hooks::warning(&world, serving, 40 << 20).await;
    let (mut stream, body) = (hooks.connect().await, review(10));
    post(&mut stream, "/check", body.len(), &body).await;
    let noticing = async {
        while stream.write_all(b"x").await.is_ok() && stream.flush().await.is_ok() {
            tokio::time::sleep(SOON).await;
        }
    };
    tokio::time::timeout(PATIENCE, noticing).await.expect("the connection is closed");
    hooks.engine.stop().await.expect("a clean end");
}

#[tokio::test]
async fn webhooks_are_reached_while_others_do_not_finish_their_handshakes() {
    let world = World::new().await;
    let serving = Serving { connections_max: 8, ..patient() };
    let hooks = Hooks::start(&world, serving).await;
    let mut others = Vec::new();
    for _ in 0..100 {
        others.push(TcpStream::connect(&hooks.address).await.expect("a listener"));
    }
    let (mut stream, body) = (hooks.connect().await, review(10));
    post(&mut stream, "/check", body.len(), &body).await;
    assert!(response(&mut stream).await.contains("\"allowed\":true"));
    for other in &mut others[..92] {
        until_closed(other).await;
    }
    hooks.engine.stop().await.expect("a clean end");
}
