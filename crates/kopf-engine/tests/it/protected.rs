//! Metrics on a separate port: only for readers that a cluster with RBAC authorizes.

use std::net::SocketAddr;
use std::sync::Arc;

use http::Request;
use kopf_apiserver::{Server, User};
use kopf_core::handler::HandlerKind;
use kopf_core::registry::Registry;
use kopf_engine::{Engine, MetricsEndpoint, Pem, ProbesEndpoint};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::debug::get;
use crate::webhooks::{CertificateFiles, a_minute_passes};
use crate::world::{World, eventually};

/// A port that is free now.
fn free() -> SocketAddr {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    listener.local_addr().expect("an address")
}

async fn post(client: &kube::Client, path: &str, body: Value) -> Value {
    let request = Request::post(path).header("content-type", "application/json");
    let request = request.body(body.to_string().into_bytes()).expect("a request");
    client.request(request).await.unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn role(name: &str, rules: Value) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": name}, "rules": rules,
    })
}

/// An account with these rights, and its token.
async fn account(admin: &kube::Client, name: &str, rules: Value) -> String {
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    post(admin, accounts, json!({"metadata": {"name": name}})).await;
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    post(admin, &format!("{rbac}/clusterroles"), role(name, rules)).await;
    let binding = json!({
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "default"}],
    });
    post(admin, &format!("{rbac}/clusterrolebindings"), binding).await;
    let answer = post(admin, &format!("{accounts}/{name}/token"), json!({"spec": {}})).await;
    answer["status"]["token"].as_str().expect("a token").to_owned()
}

/// Sends one request over TLS with this authority; returns the status and the rest of the response.
async fn ask(
    address: SocketAddr,
    authority: &Pem,
    request: &str,
    token: Option<&str>,
) -> std::io::Result<(u16, String)> {
    let Pem::File(path) = authority else { panic!("a file") };
    let pem = std::fs::read(path)?;
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(&pem).expect("a certificate")).expect("a root");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = tokio::net::TcpStream::connect(address).await?;
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    let name = ServerName::try_from("127.0.0.1").expect("a name");
    let mut stream = connector.connect(name, stream).await?;
    let token = token.map(|token| format!("authorization: Bearer {token}\r\n"));
    let token = token.unwrap_or_default();
    let text = format!("{request} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{token}\r\n");
    stream.write_all(text.as_bytes()).await?;
    let mut answer = Vec::new();
    // An end without a TLS close notification is an end too.
    let _ = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let code = answer.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
    Ok((code, answer))
}

#[tokio::test]
async fn metrics_are_only_for_authorized_readers() {
    let world = World::bare();
    let server = Server::builder().rbac(true).controllers(false).build();
    let admin = kube::Client::new(server.service(), "default");
    let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    post(&admin, crds, crate::world::crd(true)).await;
    let everything = json!([
        {"apiGroups": ["kopf.dev", "apiextensions.k8s.io"], "resources": ["*"],
         "verbs": ["list", "watch", "patch"]},
    ]);
    account(&admin, "operator", everything).await;
    let read = json!([{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]);
    let reader = account(&admin, "prometheus", read).await;
    let other = account(&admin, "other", json!([])).await;

    let files = CertificateFiles::new("metrics");
    let (chain, key) = files.certificate();
    let address = free();
    let mut endpoint = ProbesEndpoint::on_loopback().expect("a free port");
    let certificate = Some((chain.clone(), key));
    endpoint.metrics = Some(MetricsEndpoint { address, certificate });
    let account = User::service_account("default", "operator");
    let client = kube::Client::new(server.service_as(account), "default");
    let handlers = [world.noting("create_fn", HandlerKind::Create)];
    let engine = Engine::builder(Registry::from_iter(handlers)).client(client);
    let engine = engine.probes(endpoint.clone()).build().start();
    let ready = engine.status().clone();
    eventually("the start", || ready.snapshot().ready).await;

    let metrics = "GET /metrics";
    let status = |answer: std::io::Result<(u16, String)>| answer.expect("an answer").0;
    // The operator has no right to create reviews: nobody gets anything.
    assert_eq!(status(ask(address, &chain, metrics, Some(&reader)).await), 500);
    let reviews = json!([
        {"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]},
        {"apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"],
         "verbs": ["create"]},
    ]);
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    post(&admin, &format!("{rbac}/clusterroles"), role("reviews", reviews)).await;
    let binding = json!({
        "metadata": {"name": "reviews"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reviews"},
        "subjects": [{"kind": "ServiceAccount", "name": "operator", "namespace": "default"}],
    });
    post(&admin, &format!("{rbac}/clusterrolebindings"), binding).await;

    let (code, answer) = ask(address, &chain, metrics, Some(&reader)).await.expect("an answer");
    assert_eq!(code, 200, "{answer}");
    assert!(answer.contains("kopf_ready 1"), "{answer}");
    let (code, answer) = ask(address, &chain, metrics, None).await.expect("an answer");
    assert!(code == 401 && answer.to_lowercase().contains("www-authenticate: bearer"), "{answer}");
    assert_eq!(status(ask(address, &chain, metrics, Some("nonsense")).await), 401);
    assert_eq!(status(ask(address, &chain, metrics, Some(&other)).await), 403);
    assert_eq!(status(ask(address, &chain, "POST /metrics", Some(&reader)).await), 405);
    assert_eq!(status(ask(address, &chain, "GET /debug/status", Some(&reader)).await), 404);
    assert_eq!(get(&endpoint, "/metrics").await.0, 404, "not for everybody on the other port");
    assert_eq!(get(&endpoint, "/healthz").await.0, 200);

    // The client trusts only the renewed certificate, and the server has it after a minute.
    files.renew();
    assert!(ask(address, &chain, metrics, Some(&reader)).await.is_err());
    a_minute_passes().await;
    let mut renewed = false;
    for _ in 0..200 {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        renewed = renewed || ask(address, &chain, metrics, Some(&reader)).await.is_ok();
    }
    assert!(renewed, "the renewed certificate was not taken into use");
    engine.stop().await.expect("a clean end");
}
