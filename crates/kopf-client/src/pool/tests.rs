//! Where requests are sent, and what happens to their connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::{Request, Uri, header};
use http_body_util::BodyExt as _;
use hyper_util::client::legacy::connect::HttpConnector;
use kube::client::Body;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::Pool;

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

fn get(path: &str) -> Request<Body> {
    Request::builder().uri(path).body(Body::empty()).unwrap()
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
        let mut request = get(path);
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
    let response = pool.send(get("/api")).await.unwrap();
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
    let unread = pool.send(get("/api")).await.unwrap();
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
    let unread: Vec<_> = futures::future::join_all((0..40).map(|_| pool.send(get("/api")))).await;
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
    let error = pool(&address).send(get("/api")).await.map(drop).unwrap_err();
    assert!(crate::transport_error::is_unreached(error.as_ref()));
}
