//! Where requests are sent, and what happens to their connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::{Method, Request, StatusCode, Uri, header};
use http_body_util::BodyExt as _;
use hyper_util::client::legacy::connect::HttpConnector;
use kube::client::Body;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::Pool;
use crate::http1::Message;

fn pool(base: &str) -> Pool {
    let connector = hyper_rustls::HttpsConnectorBuilder::new()
        .with_tls_config(
            rustls::ClientConfig::builder_with_provider(Arc::new(
                rustls::crypto::ring::default_provider(),
            ))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(rustls::RootCertStore::empty())
            .with_no_client_auth(),
        )
        .https_or_http()
        .enable_http1();
    Pool::new(&base.parse::<Uri>().unwrap(), connector.wrap_connector(HttpConnector::new()))
}

fn get(pool: &Pool) -> Message {
    let mut message = pool.message(&Method::GET, "/api", Bytes::new());
    message.push("host", pool.host().as_bytes());
    message.end(&Method::GET)
}

#[test]
fn requests_are_sent_below_the_path_of_the_cluster() {
    for (base, path, host, expected) in [
        ("https://10.0.0.1:6443", "/api/v1/pods?limit=5", "10.0.0.1:6443", "/api/v1/pods?limit=5"),
        ("https://10.0.0.1:443/", "/api", "10.0.0.1", "/api"),
        ("http://[::1]:80", "/version", "[::1]", "/version"),
        ("http://[::1]:443", "/version", "[::1]:443", "/version"),
        (
            "https://host/k8s/clusters/c-1",
            "/api/v1?x=%2F",
            "host",
            "/k8s/clusters/c-1/api/v1?x=%2F",
        ),
        ("https://host/k8s/", "http://other:1/api", "host", "/k8s/api"),
    ] {
        let mut request = Request::builder().uri(path).body(Body::empty()).unwrap();
        pool(base).0.address(&mut request);
        assert_eq!(request.uri().to_string(), expected);
        assert_eq!(request.headers()[header::HOST], host);
    }
}

/// A server that responds to this many requests per connection, and counts connections.
async fn serve(requests_per_connection: usize) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(answer(stream, requests_per_connection));
        }
    });
    (address, count)
}

async fn answer(mut stream: TcpStream, requests: usize) {
    let mut buffer = Vec::new();
    for _ in 0..requests {
        while !buffer.windows(4).any(|end| end == b"\r\n\r\n") {
            if stream.read_buf(&mut buffer).await.unwrap_or(0) == 0 {
                return;
            }
        }
        buffer.clear();
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
    }
}

async fn ask(pool: &Pool) -> Vec<u8> {
    let response = pool.send(&get(pool)).await.unwrap();
    response.into_body().collect().await.unwrap().to_bytes().to_vec()
}

#[tokio::test]
async fn connections_are_reused_after_the_response_was_read() {
    let (address, connections) = serve(usize::MAX).await;
    let pool = pool(&address);
    for _ in 0..5 {
        assert_eq!(ask(&pool).await, b"ok");
    }
    assert_eq!(connections.load(Ordering::SeqCst), 1);
    // An unread response keeps its connection.
    let unread = pool.send(&get(&pool)).await.unwrap();
    assert_eq!(ask(&pool).await, b"ok");
    assert_eq!(connections.load(Ordering::SeqCst), 2);
    drop(unread);
}

#[tokio::test]
async fn connections_that_the_server_closes_are_replaced() {
    let (address, connections) = serve(1).await;
    let pool = pool(&address);
    for _ in 0..20 {
        assert_eq!(ask(&pool).await, b"ok");
    }
    assert_eq!(connections.load(Ordering::SeqCst), 20);
}

#[tokio::test]
async fn idle_connections_are_closed_after_a_while() {
    let (address, connections) = serve(usize::MAX).await;
    let pool = pool(&address);
    ask(&pool).await;
    assert_eq!(pool.0.idle.lock().connections.len(), 1);
    tokio::time::pause();
    tokio::time::sleep(2 * super::IDLE_KEPT).await;
    assert!(pool.0.idle.lock().connections.is_empty());
    tokio::time::resume();
    ask(&pool).await;
    assert_eq!(connections.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn only_a_few_connections_outlive_a_burst() {
    let (address, connections) = serve(usize::MAX).await;
    let pool = pool(&address);
    let request = get(&pool);
    let unread: Vec<_> = futures::future::join_all((0..40).map(|_| pool.send(&request))).await;
    for response in unread {
        response.unwrap().into_body().collect().await.unwrap();
    }
    assert_eq!(pool.0.idle.lock().connections.len(), 40);
    tokio::time::pause();
    tokio::time::sleep(2 * super::SURPLUS_KEPT).await;
    assert_eq!(pool.0.idle.lock().connections.len(), super::IDLE_FEW);
    tokio::time::resume();
    ask(&pool).await;
    assert_eq!(connections.load(Ordering::SeqCst), 40);
}

#[tokio::test]
async fn a_missing_server_is_unreached() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let pool = pool(&address);
    let error = pool.send(&get(&pool)).await.map(drop).unwrap_err();
    assert!(crate::transport_error::is_unreached(error.as_ref()));
}

/// A server that takes one request, and says what it has received.
async fn listen(response: &'static str) -> (String, tokio::task::JoinHandle<(String, TcpStream)>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/base", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        while !request.windows(4).any(|end| end == b"\r\n\r\n") {
            assert!(stream.read_buf(&mut request).await.unwrap() > 0);
        }
        stream.write_all(response.as_bytes()).await.unwrap();
        (String::from_utf8(request).unwrap(), stream)
    });
    (address, serving)
}

#[tokio::test]
async fn a_request_of_user_code_may_change_the_protocol() {
    let switching =
        "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n";
    let (address, serving) = listen(switching).await;
    let pool = pool(&address);
    let request = Request::builder().uri("/exec").header(header::CONNECTION, "upgrade");
    let request = request.header(header::UPGRADE, "echo").body(Body::empty()).unwrap();
    let mut response = pool.upgrade(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::SWITCHING_PROTOCOLS);
    let upgraded = hyper::upgrade::on(&mut response).await.unwrap();
    let mut upgraded = hyper_util::rt::TokioIo::new(upgraded);
    let (request, mut stream) = serving.await.unwrap();
    assert!(request.starts_with("GET /base/exec HTTP/1.1\r\n"), "{request}");
    upgraded.write_all(b"hello").await.unwrap();
    let mut heard = [0; 5];
    stream.read_exact(&mut heard).await.unwrap();
    assert_eq!(&heard, b"hello");
    assert!(pool.0.idle.lock().connections.is_empty());
}

#[tokio::test]
async fn a_response_that_breaks_off_is_an_error() {
    let (address, serving) = listen("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf").await;
    let pool = pool(&address);
    let response = pool.send(&get(&pool)).await.unwrap();
    drop(serving.await.unwrap());
    response.into_body().collect().await.map(drop).unwrap_err();
    assert!(pool.0.idle.lock().connections.is_empty());
}
