//! Real logins: files, plugins and handlers at the TLS endpoint, with credentials that expire.
//!
//! Sockets and a paused clock are incompatible, so these tests run in real time.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base64::Engine as _;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::service::TowerToHyperService;
use kopf_apiserver::{Listening, Server, User};
use kopf_client::{ConnectionInfo, DefaultLogin, Login, LoginError, ServiceAccount};
use kopf_core::handler::{Handler, HandlerKind};
use kopf_core::invoke::Output;
use kopf_core::registry::Registry;
use kopf_engine::{Engine, EngineBuilder, EngineError};
use kube::api::{Api, DynamicObject};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::world::{World, async_handler, examples, handler, temporary};

/// All watches are live again within this time after new credentials are available.
const RECOVERY: Duration = Duration::from_secs(30);

/// A folder for one test, removed with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("kopf-login-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        Self(folder)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).expect("a file");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Leftovers are in a temporary folder anyway.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn anywhere() -> SocketAddr {
    ([127, 0, 0, 1], 0).into()
}

fn base64_of(text: &str) -> String {
    base64::engine::general_purpose::STANDARD.encode(text)
}

/// A kubeconfig with one context per user.
fn kubeconfig(endpoint: &Listening, users: &[(&str, Value)]) -> String {
    let contexts: Vec<Value> = users
        .iter()
        .map(|(name, _)| json!({"name": name, "context": {"cluster": "it", "user": name}}))
        .collect();
    let all: Vec<Value> =
        users.iter().map(|(name, user)| json!({"name": name, "user": user})).collect();
    let authority = base64_of(endpoint.ca_pem().expect("a TLS endpoint"));
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": users[0].0,
        "clusters": [{"name": "it", "cluster": {
            "server": endpoint.url(), "certificate-authority-data": authority,
        }}],
        "users": all, "contexts": contexts,
    })
    .to_string()
}

/// A handler that reads its own object with the client that operators get.
fn asking(world: &World) -> Handler {
    let calls = world.calls.clone();
    async_handler("create_fn", HandlerKind::Create, move |call| {
        let calls = calls.clone();
        async move {
            let client = call.operator.state.get::<kube::Client>().expect("a client");
            let name = call.subject.expect("an object").object.name().to_owned();
            let api: Api<DynamicObject> =
                Api::namespaced_with((*client).clone(), "default", &examples());
            match api.get(&name).await {
                Ok(_) => calls.note(format!("seen {name}")),
                Err(error) => {
                    calls.note(format!("refused {name}: {error}"));
                    return Err(temporary("refused", 0.1));
                }
            }
            Ok(Output::Nothing)
        }
    })
}

fn engine(handlers: Vec<Handler>, login: impl Login) -> EngineBuilder {
    Engine::builder(Registry::from_iter(handlers)).login(Arc::new(login))
}

/// Handles an object before and after the token is replaced; uses the operator's own client too.
async fn survives_rotation(world: &World, builder: EngineBuilder, rotate: impl FnOnce()) {
    let engine = world.start_built(builder).await;
    world.create("before", json!({"x": 1})).await;
    world.until_handled("before").await;
    world.server.add_token("two", User::admin());
    world.server.remove_token("one");
    rotate();
    let recovered = tokio::time::Instant::now();
    world.create("after", json!({"x": 1})).await;
    world.until_handled("after").await;
    assert!(recovered.elapsed() <= RECOVERY, "{:?}", recovered.elapsed());
    assert_eq!(world.calls.all(), ["seen before", "seen after"]);
    engine.stop().await.expect("a clean end");
}

async fn guarded() -> (World, Listening) {
    let world = World::new().await;
    world.server.add_token("one", User::admin());
    let endpoint = world.server.listen(anywhere()).await.expect("an endpoint");
    (world, endpoint)
}

#[tokio::test]
async fn a_token_file_of_a_kubeconfig_is_read_again() {
    let (world, endpoint) = guarded().await;
    let folder = Folder::new("token-file");
    let token = folder.write("token", "one");
    let user = json!({"tokenFile": token});
    let config = folder.write("config", &kubeconfig(&endpoint, &[("it", user)]));
    let login = DefaultLogin { kubeconfig: Some(config), ..DefaultLogin::default() };
    let builder = engine(vec![asking(&world)], login);
    survives_rotation(&world, builder, || {
        folder.write("token", "two");
    })
    .await;
}

#[tokio::test]
async fn an_exec_plugin_is_run_again() {
    let (world, endpoint) = guarded().await;
    let folder = Folder::new("exec");
    let token = folder.write("token", "one");
    let script = format!(
        "#!/bin/sh\necho run >> {log}\nprintf '{{\"apiVersion\": \
         \"client.authentication.k8s.io/v1\", \"kind\": \"ExecCredential\", \"status\": \
         {{\"token\": \"%s\"}}}}' \"$(cat {token})$1\"\n",
        log = folder.0.join("log").display(),
        token = token.display(),
    );
    let plugin = folder.write("plugin", &script);
    std::fs::set_permissions(&plugin, std::fs::Permissions::from_mode(0o755)).expect("executable");
    let exec = json!({
        "apiVersion": "client.authentication.k8s.io/v1", "command": plugin, "args": [""],
        "interactiveMode": "Never",
    });
    let config = folder.write("config", &kubeconfig(&endpoint, &[("it", json!({"exec": exec}))]));
    let login = DefaultLogin { kubeconfig: Some(config), ..DefaultLogin::default() };
    let builder = engine(vec![asking(&world)], login);
    survives_rotation(&world, builder, || {
        folder.write("token", "two");
    })
    .await;
    let runs = std::fs::read_to_string(folder.0.join("log")).expect("a log").lines().count();
    assert!(runs >= 2, "the plugin ran {runs} times");
}

#[tokio::test]
async fn the_requested_context_is_used() {
    let (world, endpoint) = guarded().await;
    let folder = Folder::new("contexts");
    let users = [("wrong", json!({"token": "nobody"})), ("right", json!({"token": "one"}))];
    let config = folder.write("config", &kubeconfig(&endpoint, &users));
    let context = Some("right".to_owned());
    let login = DefaultLogin { kubeconfig: Some(config), context, ..DefaultLogin::default() };
    let engine = world.start_built(engine(vec![asking(&world)], login)).await;
    world.create("a", json!({"x": 1})).await;
    world.until_handled("a").await;
    engine.stop().await.expect("a clean end");
}

#[tokio::test]
async fn a_service_account_is_read_again() {
    let (world, endpoint) = guarded().await;
    let folder = Folder::new("service-account");
    folder.write("token", "one\n");
    folder.write("namespace", "default");
    folder.write("ca.crt", endpoint.ca_pem().expect("a TLS endpoint"));
    let account = ServiceAccount { folder: folder.0.clone(), server: Some(endpoint.url()) };
    let login = Account(account);
    let builder = engine(vec![asking(&world)], login);
    survives_rotation(&world, builder, || {
        folder.write("token", "two\n");
    })
    .await;
}

/// Only the service account, whatever the environment of the test is.
struct Account(ServiceAccount);

impl Login for Account {
    fn login(
        &self,
    ) -> futures::future::BoxFuture<'_, Result<Vec<kopf_client::Credentials>, LoginError>> {
        Box::pin(async { Ok(vec![self.0.config()?.into()]) })
    }
}

#[tokio::test]
async fn a_login_handler_is_called_again() {
    let (world, endpoint) = guarded().await;
    let (server, authority) = (endpoint.url(), endpoint.ca_pem().map(str::to_owned));
    let folder = Folder::new("handler");
    let token = folder.write("token", "one");
    let logging_in = handler("log_in", HandlerKind::Login, move |_| {
        let token = std::fs::read_to_string(&token).expect("a token");
        let info = ConnectionInfo {
            server: server.clone(),
            ca_data: authority.clone(),
            token: Some(token),
            ..ConnectionInfo::default()
        };
        Ok(Output::Opaque(Arc::new(info)))
    });
    let builder = Engine::builder(Registry::from_iter([logging_in, asking(&world)]));
    survives_rotation(&world, builder, || {
        folder.write("token", "two");
    })
    .await;
}

/// Several tokens at once, the first one with the highest priority.
struct Tokens {
    server: String,
    authority: Option<String>,
    tokens: Vec<&'static str>,
    logins: Arc<AtomicUsize>,
}

impl Login for Tokens {
    fn login(
        &self,
    ) -> futures::future::BoxFuture<'_, Result<Vec<kopf_client::Credentials>, LoginError>> {
        Box::pin(async {
            self.logins.fetch_add(1, Ordering::Relaxed);
            let credentials = self.tokens.iter().zip((0..).map(|number: i64| -number));
            let credentials = credentials.map(|(token, priority)| {
                let info = ConnectionInfo {
                    server: self.server.clone(),
                    ca_data: self.authority.clone(),
                    token: Some((*token).to_owned()),
                    ..ConnectionInfo::default()
                };
                kopf_client::Credentials { priority, ..info.into() }
            });
            Ok(credentials.collect())
        })
    }
}

#[tokio::test]
async fn all_credentials_of_a_login_are_tried_before_the_next_one() {
    let (world, endpoint) = guarded().await;
    let logins = Arc::new(AtomicUsize::new(0));
    let login = Tokens {
        server: endpoint.url(),
        authority: endpoint.ca_pem().map(str::to_owned),
        // The first one is valid until it is rotated, the second one never is.
        tokens: vec!["one", "unknown", "two"],
        logins: Arc::clone(&logins),
    };
    let builder = engine(vec![asking(&world)], login);
    survives_rotation(&world, builder, || {}).await;
    assert_eq!(logins.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn rejected_credentials_are_retried_last() {
    let (world, endpoint) = guarded().await;
    world.server.remove_token("one");
    let logins = Arc::new(AtomicUsize::new(0));
    let login = Tokens {
        server: endpoint.url(),
        authority: endpoint.ca_pem().map(str::to_owned),
        tokens: vec!["one", "unknown"],
        logins: Arc::clone(&logins),
    };
    let cluster = kopf_client::Cluster::new(Arc::new(login), kopf_client::Policy::default());
    let client = cluster.client().await.expect("a client");
    let api: Api<DynamicObject> = Api::namespaced_with(client, "default", &examples());
    api.list(&Default::default()).await.expect_err("nobody knows the tokens");
    assert_eq!(logins.load(Ordering::Relaxed), 2, "one login per request at most");
    world.server.add_token("unknown", User::admin());
    api.list(&Default::default()).await.expect("a 401 that passes is forgiven");
}

#[tokio::test]
async fn a_login_that_fails_for_good_ends_the_operator() {
    let world = World::new().await;
    let failing = handler("log_in", HandlerKind::Login, |_| {
        Err(kopf_core::invoke::HandlerError::Permanent { message: "no such user".into() })
    });
    let engine = Engine::builder(Registry::from_iter([failing, asking(&world)])).build();
    let error = engine.run(std::future::pending()).await.expect_err("it cannot work");
    assert!(matches!(error, EngineError::Login(_)), "{error}");
}

/// An endpoint that requires certificates, in front of the server; all of them can be replaced.
struct TlsEndpoint {
    address: SocketAddr,
    acceptor: Arc<Mutex<tokio_rustls::TlsAcceptor>>,
    connections: Arc<Mutex<tokio::task::JoinSet<()>>>,
}

/// A certificate authority.
struct Authority {
    pem: String,
    issuer: rcgen::Issuer<'static, rcgen::KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let mut params = rcgen::CertificateParams::new(Vec::new()).expect("parameters");
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = rcgen::KeyPair::generate().expect("a key");
        let pem = params.self_signed(&key).expect("a certificate").pem();
        Self { pem, issuer: rcgen::Issuer::new(params, key) }
    }

    fn issue(&self, name: &str) -> (rcgen::Certificate, rcgen::KeyPair) {
        let key = rcgen::KeyPair::generate().expect("a key");
        let params = rcgen::CertificateParams::new(vec![name.to_owned()]).expect("parameters");
        (params.signed_by(&key, &self.issuer).expect("a certificate"), key)
    }

    /// Presents a certificate of this authority, and requires one of the other from clients.
    fn acceptor(&self, clients: &Authority) -> tokio_rustls::TlsAcceptor {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(authority_der(&clients.pem)).expect("a root");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier =
            rustls::server::WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                .build()
                .expect("a verifier");
        self.acceptor_with(verifier)
    }

    /// Presents a certificate of this authority to everybody.
    fn open_acceptor(&self) -> tokio_rustls::TlsAcceptor {
        self.acceptor_with(Arc::new(rustls::server::NoClientAuth))
    }

    fn acceptor_with(
        &self,
        verifier: Arc<dyn rustls::server::danger::ClientCertVerifier>,
    ) -> tokio_rustls::TlsAcceptor {
        let (certificate, key) = self.issue("127.0.0.1");
        let key = rustls::pki_types::PrivatePkcs8KeyDer::from(key.serialize_der());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_client_cert_verifier(verifier)
            .with_single_cert(vec![certificate.der().clone()], key.into())
            .expect("a configuration");
        tokio_rustls::TlsAcceptor::from(Arc::new(config))
    }
}

impl TlsEndpoint {
    async fn open(server: &Server, acceptor: tokio_rustls::TlsAcceptor) -> Self {
        let listener = TcpListener::bind(anywhere()).await.expect("a port");
        let endpoint = Self {
            address: listener.local_addr().expect("an address"),
            acceptor: Arc::new(Mutex::new(acceptor)),
            connections: Arc::default(),
        };
        let service = server.service();
        let (acceptor, connections) =
            (Arc::clone(&endpoint.acceptor), Arc::clone(&endpoint.connections));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, service) = (acceptor.lock().clone(), service.clone());
                connections.lock().spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let service = TowerToHyperService::new(service);
                    let builder =
                        hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
                    // Clients may disconnect at any moment.
                    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        endpoint
    }

    /// Replaces the certificates, also for existing connections.
    fn replace(&self, acceptor: tokio_rustls::TlsAcceptor) {
        *self.acceptor.lock() = acceptor;
        self.connections.lock().abort_all();
    }

    fn kubeconfig(&self, user: &Value) -> String {
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "it",
            "clusters": [{"name": "it", "cluster": {
                "server": format!("https://{}", self.address), "certificate-authority": "ca.crt",
            }}],
            "users": [{"name": "it", "user": user}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        })
        .to_string()
    }
}

fn authority_der(pem: &str) -> rustls::pki_types::CertificateDer<'static> {
    use rustls::pki_types::pem::PemObject as _;
    rustls::pki_types::CertificateDer::from_pem_slice(pem.as_bytes()).expect("a certificate")
}

impl Folder {
    /// Writes the files that the operator reads at a login.
    fn write_certificates(&self, server: &Authority, clients: &Authority) {
        let (certificate, key) = clients.issue("operator");
        self.write("ca.crt", &server.pem);
        self.write("client.crt", &certificate.pem());
        self.write("client.key", &key.serialize_pem());
    }
}

/// Relative paths are relative to the kubeconfig.
fn certified_user() -> Value {
    json!({"client-certificate": "client.crt", "client-key": "client.key"})
}

#[tokio::test]
async fn a_client_certificate_is_shown() {
    let world = World::new().await;
    let folder = Folder::new("certificate");
    let authority = Authority::new();
    let endpoint = TlsEndpoint::open(&world.server, authority.acceptor(&authority)).await;
    folder.write_certificates(&authority, &authority);
    let path = folder.write("config", &endpoint.kubeconfig(&certified_user()));
    let login = DefaultLogin { kubeconfig: Some(path), ..DefaultLogin::default() };
    let running = world.start_built(engine(vec![asking(&world)], login)).await;
    world.create("a", json!({"x": 1})).await;
    world.until_handled("a").await;
    running.stop().await.expect("a clean end");

    let path = folder.write("config", &endpoint.kubeconfig(&json!({"token": "one"})));
    let login = DefaultLogin { kubeconfig: Some(path), ..DefaultLogin::default() };
    let running = engine(vec![asking(&world)], login).build().start();
    world.create("b", json!({"x": 1})).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(world.calls.all(), ["seen a"], "nobody comes in without a certificate");
    running.abort();
}

/// The cluster gets other authorities (for servers, for clients), and a while later the operator
/// does.
async fn survives_other_authorities(name: &str, old: [&Authority; 2], new: [&Authority; 2]) {
    let world = World::new().await;
    let folder = Folder::new(name);
    let endpoint = TlsEndpoint::open(&world.server, old[0].acceptor(old[1])).await;
    folder.write_certificates(old[0], old[1]);
    let path = folder.write("config", &endpoint.kubeconfig(&certified_user()));
    let login = DefaultLogin { kubeconfig: Some(path), ..DefaultLogin::default() };
    let running = world.start_built(engine(vec![asking(&world)], login)).await;
    world.create("before", json!({"x": 1})).await;
    world.until_handled("before").await;
    endpoint.replace(new[0].acceptor(new[1]));
    world.create("meanwhile", json!({"x": 1})).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(world.calls.all(), ["seen before"], "the old certificates are refused");
    folder.write_certificates(new[0], new[1]);
    let recovered = tokio::time::Instant::now();
    world.until_handled("meanwhile").await;
    world.create("after", json!({"x": 1})).await;
    world.until_handled("after").await;
    assert!(recovered.elapsed() <= RECOVERY, "{:?}", recovered.elapsed());
    assert_eq!(world.calls.all(), ["seen before", "seen meanwhile", "seen after"]);
    running.stop().await.expect("a clean end");
}

#[tokio::test]
async fn a_new_authority_of_the_server_is_read_again() {
    let (old, new, clients) = (Authority::new(), Authority::new(), Authority::new());
    survives_other_authorities("authority", [&old, &clients], [&new, &clients]).await;
}

#[tokio::test]
async fn a_new_client_certificate_is_read_again() {
    let (server, old, new) = (Authority::new(), Authority::new(), Authority::new());
    survives_other_authorities("rotated", [&server, &old], [&server, &new]).await;
}

/// The protocols for a tunnel.
#[derive(Clone)]
enum Tunnelling {
    Http,
    Https(tokio_rustls::TlsAcceptor),
    Socks,
}

/// A proxy that tunnels for clients with the password, and counts them.
async fn tunnelling_proxy(how: Tunnelling, tunnels: Arc<AtomicUsize>) -> SocketAddr {
    let listener = TcpListener::bind(anywhere()).await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            let (how, tunnels) = (how.clone(), Arc::clone(&tunnels));
            tokio::spawn(async move {
                match how {
                    Tunnelling::Http => {
                        let target = http_target(&mut near).await;
                        tunnel(near, target, GRANTED, &tunnels).await;
                    }
                    Tunnelling::Https(acceptor) => {
                        let mut near = acceptor.accept(near).await.expect("a handshake");
                        let target = http_target(&mut near).await;
                        tunnel(near, target, GRANTED, &tunnels).await;
                    }
                    Tunnelling::Socks => {
                        let target = socks_target(&mut near).await;
                        tunnel(near, target, &[5, 0, 0, 1, 0, 0, 0, 0, 0, 0], &tunnels).await;
                    }
                }
            });
        }
    });
    address
}

const GRANTED: &[u8] = b"HTTP/1.1 200 OK\r\n\r\n";

async fn tunnel(
    mut near: impl AsyncRead + AsyncWrite + Unpin,
    target: SocketAddr,
    granted: &[u8],
    tunnels: &AtomicUsize,
) {
    tunnels.fetch_add(1, Ordering::Relaxed);
    let mut far = TcpStream::connect(target).await.expect("a server");
    near.write_all(granted).await.expect("an answer");
    // Either side may disconnect at any moment.
    let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
}

async fn http_target(near: &mut (impl AsyncRead + Unpin)) -> SocketAddr {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        request.push(near.read_u8().await.expect("a request"));
    }
    let request = String::from_utf8(request).expect("text").to_lowercase();
    assert!(request.starts_with("connect "), "{request}");
    // `me:secret`
    assert!(request.contains("proxy-authorization: basic bwu6c2vjcmv0"), "{request}");
    request.split(' ').nth(1).expect("a target").parse().expect("an address")
}

async fn socks_target(near: &mut TcpStream) -> SocketAddr {
    let mut greeting = [0; 3];
    near.read_exact(&mut greeting).await.expect("a greeting");
    assert_eq!(greeting, [5, 1, 2], "only by password");
    near.write_all(&[5, 2]).await.expect("an answer");
    let mut password = [0; 11];
    near.read_exact(&mut password).await.expect("a password");
    assert_eq!(&password, b"\x01\x02me\x06secret");
    near.write_all(&[1, 0]).await.expect("an answer");
    let mut request = [0; 10];
    near.read_exact(&mut request).await.expect("a request");
    assert_eq!(request[..4], [5, 1, 0, 1], "connect to an IPv4 address");
    let port = u16::from_be_bytes([request[8], request[9]]);
    SocketAddr::from(([request[4], request[5], request[6], request[7]], port))
}

/// Handles an object through the proxy of a kubeconfig, which trusts these authorities too.
async fn goes_through(proxy: String, authorities: &str, tunnels: &AtomicUsize) {
    let (world, endpoint) = guarded().await;
    let folder = Folder::new(proxy.split(':').next().expect("a scheme"));
    let text = kubeconfig(&endpoint, &[("it", json!({"token": "one"}))]);
    let mut config: Value = serde_json::from_str(&text).expect("JSON");
    let cluster = &mut config["clusters"][0]["cluster"];
    cluster["proxy-url"] = json!(proxy);
    let authorities = format!("{}\n{authorities}", endpoint.ca_pem().expect("a TLS endpoint"));
    cluster["certificate-authority-data"] = json!(base64_of(&authorities));
    let path = folder.write("config", &config.to_string());
    let login = DefaultLogin { kubeconfig: Some(path), ..DefaultLogin::default() };
    let running = world.start_built(engine(vec![asking(&world)], login)).await;
    world.create("a", json!({"x": 1})).await;
    world.until_handled("a").await;
    assert!(tunnels.load(Ordering::Relaxed) >= 2, "watches and writes go through it");
    running.stop().await.expect("a clean end");
}

#[tokio::test]
async fn the_proxy_of_a_kubeconfig_leads_to_the_cluster() {
    let tunnels = Arc::new(AtomicUsize::new(0));
    let proxy = tunnelling_proxy(Tunnelling::Http, Arc::clone(&tunnels)).await;
    goes_through(format!("http://me:secret@{proxy}"), "", &tunnels).await;
}

#[tokio::test]
async fn the_proxy_of_a_kubeconfig_may_have_a_certificate() {
    let tunnels = Arc::new(AtomicUsize::new(0));
    let authority = Authority::new();
    let how = Tunnelling::Https(authority.open_acceptor());
    let proxy = tunnelling_proxy(how, Arc::clone(&tunnels)).await;
    goes_through(format!("https://me:secret@{proxy}"), &authority.pem, &tunnels).await;
}

#[tokio::test]
async fn the_socks_proxy_of_a_kubeconfig_leads_to_the_cluster() {
    let tunnels = Arc::new(AtomicUsize::new(0));
    let proxy = tunnelling_proxy(Tunnelling::Socks, Arc::clone(&tunnels)).await;
    goes_through(format!("socks5://me:secret@{proxy}"), "", &tunnels).await;
}
