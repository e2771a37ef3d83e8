//! Watches over WebSockets, as used by fabric8's Java client.

use kopf_apiserver::{Listening, Server};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const WATCH: &str = "/api/v1/namespaces/default/configmaps?watch=true&allowWatchBookmarks=true";

struct Socket {
    stream: TcpStream,
    head: String,
}

impl Socket {
    async fn open(listening: &Listening, path: &str, headers: &str) -> Self {
        let mut stream = TcpStream::connect(listening.address()).await.unwrap();
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\n{headers}\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        Self { stream, head: String::from_utf8(head).unwrap() }
    }

    async fn read(&mut self) -> (u8, Vec<u8>) {
        let kind = self.stream.read_u8().await.unwrap();
        let length = match self.stream.read_u8().await.unwrap() {
            126 => u64::from(self.stream.read_u16().await.unwrap()),
            127 => self.stream.read_u64().await.unwrap(),
            length => u64::from(length),
        };
        let mut payload = vec![0; usize::try_from(length).unwrap()];
        self.stream.read_exact(&mut payload).await.unwrap();
        (kind & 0x0F, payload)
    }

    async fn event(&mut self) -> Value {
        let (kind, payload) = self.read().await;
        assert_eq!(kind, 1, "events are texts");
        serde_json::from_slice(&payload).unwrap()
    }

    /// Sends a short frame; a mask of zeros leaves it unmasked.
    async fn send(&mut self, kind: u8, payload: &[u8]) {
        let length = 0x80 | u8::try_from(payload.len()).unwrap();
        let mut frame = vec![0x80 | kind, length, 0, 0, 0, 0];
        frame.extend_from_slice(payload);
        self.stream.write_all(&frame).await.unwrap();
    }
}

const KEY: &str = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

async fn world() -> (Server, Listening) {
    let server = Server::builder().controllers(false).build();
    let listening = server.listen_plain("127.0.0.1:0".parse().unwrap()).await.unwrap();
    (server, listening)
}

async fn create(server: &Server, name: &str, size: usize) {
    let object = json!({"metadata": {"name": name}, "data": {"k": "v".repeat(size)}});
    server.local().create("configmaps", "default", object).await.unwrap();
}

#[tokio::test]
async fn every_event_is_one_message() {
    let (server, listening) = world().await;
    create(&server, "first", 10).await;
    let mut socket = Socket::open(&listening, WATCH, KEY).await;
    assert!(socket.head.starts_with("HTTP/1.1 101 "), "{}", socket.head);
    let head = socket.head.to_lowercase();
    assert!(head.contains("sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo="), "{head}");
    for (name, size) in [("second", 300), ("third", 100_000)] {
        create(&server, name, size).await;
    }
    for name in ["first", "second", "third"] {
        let event = socket.event().await;
        assert_eq!(
            (&event["type"], &event["object"]["metadata"]["name"]),
            (&json!("ADDED"), &json!(name))
        );
    }
    socket.send(9, b"still there?").await;
    assert_eq!(socket.read().await, (10, b"still there?".to_vec()));
    socket.send(8, &1000u16.to_be_bytes()).await;
    assert_eq!(socket.read().await.0, 8);
    assert_eq!(socket.stream.read(&mut [0]).await.unwrap(), 0, "the connection is closed");
}

#[tokio::test]
async fn a_watch_that_ends_closes_its_socket() {
    let (_server, listening) = world().await;
    let path = "/api/v1/configmaps?watch=true&timeoutSeconds=1";
    let mut socket = Socket::open(&listening, path, KEY).await;
    assert_eq!(socket.read().await, (8, 1000u16.to_be_bytes().to_vec()));
    assert_eq!(socket.stream.read(&mut [0]).await.unwrap(), 0);
}

#[tokio::test]
async fn what_is_no_watch_is_answered_as_usual() {
    let (_server, listening) = world().await;
    let socket = Socket::open(&listening, "/api/v1/configmaps", KEY).await;
    assert!(socket.head.starts_with("HTTP/1.1 200 "), "{}", socket.head);
    let socket = Socket::open(&listening, "/apis/none/v1/things?watch=true", KEY).await;
    assert!(socket.head.starts_with("HTTP/1.1 404 "), "{}", socket.head);
    let socket = Socket::open(&listening, WATCH, "").await;
    assert!(socket.head.starts_with("HTTP/1.1 400 "), "{}", socket.head);
}

#[tokio::test]
async fn browsers_send_their_token_as_a_protocol() {
    use base64::Engine;
    let server = Server::builder().controllers(false).rbac(true).admin_token("secret").build();
    let listening = server.listen_plain("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let socket = Socket::open(&listening, WATCH, KEY).await;
    assert!(socket.head.starts_with("HTTP/1.1 403 "), "{}", socket.head);
    let token = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode("secret");
    let headers = format!(
        "{KEY}Sec-WebSocket-Protocol: base64url.bearer.authorization.k8s.io.{token}, v1.json\r\n"
    );
    let socket = Socket::open(&listening, WATCH, &headers).await;
    assert!(socket.head.starts_with("HTTP/1.1 101 "), "{}", socket.head);
    assert!(socket.head.to_lowercase().contains("sec-websocket-protocol: v1.json"));
}

#[tokio::test]
async fn sockets_end_with_the_server() {
    let (_server, listening) = world().await;
    let mut socket = Socket::open(&listening, WATCH, KEY).await;
    listening.shutdown().await;
    let mut rest = Vec::new();
    // An end or an error, but not silence.
    let _ = socket.stream.read_to_end(&mut rest).await;
}
