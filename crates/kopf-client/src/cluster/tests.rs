//! What is sent to a cluster.

use http::{Request, header};
use kube::client::Body;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;

/// A cluster whose server responds to every request with this text, and what it receives.
async fn cluster_of(
    response: &'static str,
) -> (Cluster, tokio::sync::mpsc::UnboundedReceiver<String>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = format!("http://{}/base/", listener.local_addr().unwrap());
    let (sender, receiver) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let sender = sender.clone();
            tokio::spawn(async move {
                let mut received = [0; 4096];
                while let Ok(length @ 1..) = stream.read(&mut received).await {
                    let text = String::from_utf8_lossy(&received[..length]).into_owned();
                    let _ = sender.send(text);
                    stream.write_all(response.as_bytes()).await.unwrap();
                }
            });
        }
    });
    let info = crate::login::ConnectionInfo {
        server,
        token: Some("secret".into()),
        ..crate::login::ConnectionInfo::default()
    };
    (Cluster::new(Arc::new(FixedLogin(info.into())), Policy::default()), receiver)
}

fn sorted(request: &str) -> Vec<String> {
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    let mut lines: Vec<String> = head.split("\r\n").map(str::to_owned).collect();
    lines[1..].sort_unstable();
    lines.push(body.to_owned());
    lines
}

#[tokio::test]
async fn requests_have_their_headers_and_those_of_the_login() {
    let (cluster, mut received) =
        cluster_of("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await;
    let host = cluster.address().await.unwrap().unwrap();
    let host = host.trim_start_matches("http://").trim_end_matches("/base/").to_owned();
    let outgoing = Outgoing {
        method: Method::PATCH,
        content_type: Some("application/json"),
        body: Bytes::from_static(b"[1]"),
        ..Outgoing::get("/api/v1/x".to_owned())
    };
    for _ in 0..2 {
        assert_eq!(cluster.fetch(&outgoing).await.unwrap(), "{}");
        let expected = [
            "PATCH /base/api/v1/x HTTP/1.1".to_owned(),
            "accept: application/json".to_owned(),
            "authorization: Bearer secret".to_owned(),
            "content-length: 3".to_owned(),
            "content-type: application/json".to_owned(),
            format!("host: {host}"),
            concat!("user-agent: kopf/", env!("CARGO_PKG_VERSION")).to_owned(),
            "[1]".to_owned(),
        ];
        assert_eq!(sorted(&received.recv().await.unwrap()), expected);
    }
}

#[tokio::test]
async fn user_code_gets_all_headers_of_responses_and_sends_its_own() {
    let (cluster, mut received) =
        cluster_of("HTTP/1.1 200 OK\r\nx-answer: yes\r\ncontent-length: 2\r\n\r\nok").await;
    let client = cluster.client().await.unwrap();
    let request = Request::builder().method(Method::POST).uri("/api?a=b").header("x-mine", "1");
    let request = request.header(header::CONTENT_LENGTH, "7").header(header::AUTHORIZATION, "no");
    let response =
        client.send(request.body(Body::from(b"content".to_vec())).unwrap()).await.unwrap();
    assert_eq!(response.headers()["x-answer"], "yes");
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "ok");
    let lines = sorted(&received.recv().await.unwrap());
    assert_eq!(lines[0], "POST /base/api?a=b HTTP/1.1");
    assert_eq!(
        lines[1..4],
        ["authorization: Bearer secret", "content-length: 7", lines[3].as_str()]
    );
    assert!(lines[3].starts_with("host: 127.0.0.1:"), "{lines:?}");
    assert_eq!(lines[4..], ["x-mine: 1", "content"]);
}

#[tokio::test]
async fn a_refusal_is_classified_by_its_status_and_its_headers() {
    let (cluster, _received) =
        cluster_of("HTTP/1.1 429 Slow\r\nretry-after: 7\r\ncontent-length: 4\r\n\r\nbusy").await;
    let error = cluster.fetch_at_once(&Outgoing::get("/api".to_owned())).await.unwrap_err();
    assert_eq!(error.failure, Failure::TooManyRequests);
    assert_eq!(error.retry_after, Some(Duration::from_secs(7)));
    assert!(error.message.contains("busy"), "{error}");
}
