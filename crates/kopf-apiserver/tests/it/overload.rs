//! Clients that are slow, silent or too many: each costs little, and the others are still served.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt;
use kopf_apiserver::{Fault, Listening, RequestMatcher, Server, ServingLimits, Trouble};
use rustls::pki_types::ServerName;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tower::ServiceExt;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
/// Longer than any limit, in virtual time.
const PATIENCE: Duration = Duration::from_secs(3600);

async fn listen(server: &Server) -> Listening {
    server.listen_plain("127.0.0.1:0".parse().unwrap()).await.unwrap()
}

fn limited(limits: ServingLimits) -> Server {
    Server::builder().controllers(false).serving_limits(limits).build()
}

/// Reads until the end, in virtual time.
async fn rest(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut answer = Vec::new();
    let closing = stream.read_to_end(&mut answer);
    // A reset is also an end.
    let _ = tokio::time::timeout(PATIENCE, closing).await.expect("the connection is closed");
    String::from_utf8_lossy(&answer).into_owned()
}

async fn send(address: SocketAddr, text: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    stream
}

/// The headers of a creation whose body has this many bytes.
fn post(length: usize) -> String {
    format!(
        "POST {MAPS} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n"
    )
}

/// Connects by TLS and offers these protocols.
async fn connect_securely(listening: &Listening, protocols: &[&str]) -> TlsStream<TcpStream> {
    let mut roots = rustls::RootCertStore::empty();
    let pem = listening.ca_pem().unwrap().as_bytes().to_vec();
    for certificate in rustls_pemfile::certs(&mut pem.as_slice()) {
        roots.add(certificate.unwrap()).unwrap();
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().into()).collect();
    let stream = TcpStream::connect(listening.address()).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn silence_after_the_handshake_ends_a_connection() {
    let server = Server::builder().controllers(false).build();
    let listening = server.listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let mut stream = connect_securely(&listening, &[]).await;
    assert_eq!(rest(&mut stream).await, "");
}

#[tokio::test]
async fn a_client_that_negotiated_http2_must_speak_it() {
    let server = Server::builder().controllers(false).build();
    let listening = server.listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let text = format!("GET {MAPS} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    let mut stream = connect_securely(&listening, &["h2", "http/1.1"]).await;
    stream.write_all(text.as_bytes()).await.unwrap();
    let answer = rest(&mut stream).await;
    assert!(!answer.contains("HTTP/1.1"), "{answer}");
    let mut stream = connect_securely(&listening, &["http/1.1"]).await;
    stream.write_all(text.as_bytes()).await.unwrap();
    let answer = rest(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 "), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn idle_http2_connections_are_closed() {
    let server = Server::builder().controllers(false).build();
    let listening = listen(&server).await;
    let preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let settings = "\0\0\0\u{4}\0\0\0\0\0";
    let mut stream = send(listening.address(), &format!("{preface}{settings}")).await;
    assert!(!rest(&mut stream).await.is_empty(), "the server has sent its settings");
}

#[tokio::test(start_paused = true)]
async fn watches_are_not_idle() {
    let server = Server::builder().controllers(false).build();
    let listening = listen(&server).await;
    let watch = format!("GET {MAPS}?watch=1&timeoutSeconds=1000 HTTP/1.1\r\nhost: x\r\n\r\n");
    let mut stream = send(listening.address(), &watch).await;
    tokio::time::sleep(Duration::from_secs(900)).await;
    let object = json!({"metadata": {"name": "late"}});
    server.local().create("configmaps", "default", object).await.unwrap();
    assert!(rest(&mut stream).await.contains("late"));
}

#[tokio::test(start_paused = true)]
async fn bodies_that_do_not_arrive_are_given_up() {
    let server = Server::builder().controllers(false).build();
    let listening = listen(&server).await;
    let mut stream = send(listening.address(), &(post(100) + "{")).await;
    let answer = rest(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 408") && answer.contains("did not arrive"), "{answer}");
}

#[tokio::test]
async fn bodies_of_requests_that_are_not_allowed_are_not_read() {
    let server = Server::builder().controllers(false).rbac(true).build();
    let listening = listen(&server).await;
    for (credentials, status) in [("", "403"), ("authorization: Bearer wrong\r\n", "401")] {
        let head = post(3_000_000).replace("host: x\r\n", &format!("host: x\r\n{credentials}"));
        let mut stream = send(listening.address(), &head).await;
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(std::str::from_utf8(&answer).unwrap(), format!("HTTP/1.1 {status}"));
    }
}

#[tokio::test]
async fn all_bodies_together_have_a_limit() {
    let limits = ServingLimits { bodies_bytes_max: 100 << 10, ..ServingLimits::default() };
    let server = limited(limits);
    let listening = listen(&server).await;
    let head = post(100_000);
    let part = "x".repeat(60 << 10);
    let _first = send(listening.address(), &(head.clone() + &part)).await;
    let mut second = send(listening.address(), &(head + &part)).await;
    let mut answer = [0; 12];
    second.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 429");
}

#[tokio::test]
async fn requests_at_the_same_time_have_a_limit_but_watches_do_not_count() {
    let limits = ServingLimits { requests_max: 1, ..ServingLimits::default() };
    let server = limited(limits);
    let listening = listen(&server).await;
    let watch = format!("GET {MAPS}?watch=1 HTTP/1.1\r\nhost: x\r\n\r\n");
    let mut status = [0; 12];
    let mut watching = send(listening.address(), &watch).await;
    watching.read_exact(&mut status).await.unwrap();
    assert_eq!(&status, b"HTTP/1.1 200");
    let version = "GET /version HTTP/1.1\r\nhost: x\r\n\r\n";
    let mut free = send(listening.address(), version).await;
    free.read_exact(&mut status).await.unwrap();
    assert_eq!(&status, b"HTTP/1.1 200");
    let slow = send(listening.address(), &(post(100) + "{")).await;
    loop {
        let mut refused = send(listening.address(), version).await;
        refused.read_exact(&mut status).await.unwrap();
        // The slow request may not have been noticed yet.
        if &status != b"HTTP/1.1 200" {
            break;
        }
        tokio::task::yield_now().await;
    }
    assert_eq!(&status, b"HTTP/1.1 429");
    drop(slow);
}

#[tokio::test]
async fn connections_have_a_limit_and_later_ones_wait() {
    let limits = ServingLimits { connections_max: 1, ..ServingLimits::default() };
    let server = limited(limits);
    let listening = listen(&server).await;
    let version = "GET /version HTTP/1.1\r\nhost: x\r\n\r\n";
    let mut first = send(listening.address(), version).await;
    let mut status = [0; 12];
    first.read_exact(&mut status).await.unwrap();
    let mut second = send(listening.address(), version).await;
    let waiting = tokio::time::timeout(Duration::from_millis(50), second.read_exact(&mut status));
    assert!(waiting.await.is_err(), "the second connection waits");
    drop(first);
    second.read_exact(&mut status).await.unwrap();
    assert_eq!(&status, b"HTTP/1.1 200");
}

/// A server with a list of about 20 MB.
async fn with_large_list() -> Server {
    let server = Server::builder().controllers(false).build();
    for number in 0..40 {
        let object = json!({
            "metadata": {"name": format!("m{number}")}, "data": {"k": "x".repeat(500_000)},
        });
        server.local().create("configmaps", "default", object).await.unwrap();
    }
    server
}

#[tokio::test]
async fn large_lists_are_made_while_they_are_read() {
    let server = with_large_list().await;
    let request = http::Request::builder().uri(MAPS);
    let request = request.body(http_body_util::Empty::<bytes::Bytes>::new()).unwrap();
    let mut body = server.service().oneshot(request).await.unwrap().into_body();
    assert_eq!(http_body::Body::size_hint(&body).exact(), None, "nothing is made in advance");
    let mut text = Vec::new();
    while let Some(frame) = body.frame().await {
        let data = frame.unwrap().into_data().unwrap();
        assert!(data.len() < 2_000_000, "parts are small");
        text.extend_from_slice(&data);
    }
    let list: serde_json::Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(list["kind"], "ConfigMapList");
    let items = list["items"].as_array().unwrap();
    assert_eq!(items.len(), 40);
    assert_eq!(items[39]["data"]["k"].as_str().unwrap().len(), 500_000);
}

#[tokio::test(start_paused = true)]
async fn connections_whose_answers_are_not_read_are_closed() {
    let server = with_large_list().await;
    let listening = listen(&server).await;
    let mut stream =
        send(listening.address(), &format!("GET {MAPS} HTTP/1.1\r\nhost: x\r\n\r\n")).await;
    tokio::time::sleep(PATIENCE).await;
    let answer = rest(&mut stream).await;
    assert!(answer.len() < 19_000_000, "{} bytes were kept for an hour", answer.len());
}

#[tokio::test(start_paused = true)]
async fn http2_windows_of_zero_do_not_keep_answers() {
    let server = with_large_list().await;
    let listening = listen(&server).await;
    // Streams may send nothing at first: SETTINGS_INITIAL_WINDOW_SIZE is 0.
    let settings = "\0\0\u{6}\u{4}\0\0\0\0\0\0\u{4}\0\0\0\0";
    let mut stream =
        send(listening.address(), &format!("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n{settings}")).await;
    // `:method: GET` and `:scheme: http` are in the table of HPACK, the others are literals.
    let length = |text: &str| u8::try_from(text.len()).unwrap();
    let block = [&[0x82, 0x86, 0x04, length(MAPS)], MAPS.as_bytes(), &[0x01, 1, b'x']].concat();
    let head = [0, 0, u8::try_from(block.len()).unwrap(), 1, 0x5, 0, 0, 0, 1];
    stream.write_all(&[&head[..], &block].concat()).await.unwrap();
    let began = tokio::time::Instant::now();
    let answer = rest(&mut stream).await;
    // HEADERS with END_HEADERS on stream 1.
    assert!(answer.contains("\u{1}\u{4}\0\0\0\u{1}"), "the headers may be sent: {answer:?}");
    let limit = ServingLimits::default().unread_time_max;
    let took = began.elapsed();
    assert!(took >= limit && took < limit + Duration::from_secs(5), "closed after {took:?}");
}

#[tokio::test(start_paused = true)]
async fn requests_that_take_too_long_get_504() {
    let server = Server::builder().controllers(false).build();
    let trouble = Trouble::Latency(Duration::from_secs(1000));
    server.add_fault(Fault::new(RequestMatcher::any(), trouble));
    let listening = listen(&server).await;
    let text = format!("GET {MAPS} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    let mut stream = send(listening.address(), &text).await;
    let answer = rest(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 504"), "{answer}");
    assert!(answer.contains("request did not complete within requested timeout"), "{answer}");
}
