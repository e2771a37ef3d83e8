//! `kopf ui --pod`: the debug endpoint of an operator in a Pod, through a port that the API forwards.
//!
//! The embedded server does not forward ports. A small server replaces the API, with the frames
//! that Kubernetes sends: the first byte is the channel, and the first frame of a channel is the
//! port. `conformance/run_portforward.sh` does the same with a real API server.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use futures::{SinkExt as _, StreamExt as _};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{Request, Response};

use crate::screen;
use crate::situations::Scene;

/// The timeout for the command to print its address.
const PATIENCE: Duration = Duration::from_secs(60);
/// The port that the command requests.
const POD_PORT: u16 = 8080;
const DATA: u8 = 0;
const ERRORS: u8 = 1;

/// What a kubelet says about a port on which nothing listens.
const REFUSED: &str = "connection refused";

/// An API that forwards `POD_PORT` of the Pod `ops/hello` to an address, and supports nothing else.
/// Without an address, nothing listens on the port.
async fn forwarding_api(target: Option<SocketAddr>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(forward(stream, target));
        }
    });
    address
}

#[expect(clippy::result_large_err, reason = "the library wants it")]
async fn forward(stream: TcpStream, target: Option<SocketAddr>) {
    let check = |request: &Request, mut response: Response| {
        let path = request.uri().path();
        assert_eq!(path, "/api/v1/namespaces/ops/pods/hello/portforward");
        let protocol = "v4.channel.k8s.io".parse().expect("a value");
        response.headers_mut().insert("sec-websocket-protocol", protocol);
        Ok(response)
    };
    // Other requests, such as those for objects, get no response here.
    let Ok(socket) = tokio_tungstenite::accept_hdr_async(stream, check).await else { return };
    let (mut frames_out, mut frames_in) = socket.split();
    let [low, high] = POD_PORT.to_le_bytes();
    for channel in [DATA, ERRORS] {
        let first = Message::binary(vec![channel, low, high]);
        frames_out.send(first).await.expect("the client listens");
    }
    let Some(target) = target else {
        let mut error = vec![ERRORS];
        error.extend(REFUSED.as_bytes());
        frames_out.send(Message::binary(error)).await.expect("the client listens");
        // Like an API server, leave it to the client to close the connection.
        while let Some(Ok(_)) = frames_in.next().await {}
        return;
    };
    let operator = TcpStream::connect(target).await.expect("the operator listens");
    let (mut from_operator, mut to_operator) = operator.into_split();
    let there = async {
        while let Some(Ok(message)) = frames_in.next().await {
            if let Some((&DATA, bytes)) = message.into_data().split_first() {
                to_operator.write_all(bytes).await.expect("the operator reads");
            }
        }
    };
    let back = async {
        let mut buffer = vec![DATA; 4096];
        while let Ok(count @ 1..) = from_operator.read(&mut buffer[1..]).await {
            let frame = Message::binary(buffer[..=count].to_vec());
            if frames_out.send(frame).await.is_err() {
                return;
            }
        }
        // The client may be gone already.
        let _ = frames_out.close().await;
    };
    tokio::join!(there, back);
}

/// The response of the web UI to a request of its pages.
async fn ask(url: &str, path: &str) -> Value {
    let (origin, token) = url.split_once("/#token=").expect("a token");
    let host = origin.trim_start_matches("http://");
    let mut stream = TcpStream::connect(host).await.expect("the UI listens");
    let request = format!(
        "GET {path} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\n\
         connection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.expect("the UI reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("the UI answers");
    let (_, body) = answer.split_once("\r\n\r\n").expect("a body");
    serde_json::from_str(body).expect("JSON")
}

/// `kopf ui --pod hello` with this API.
fn command(folder: &Path, api: SocketAddr) -> std::process::Command {
    let kubeconfig = folder.join("kubeconfig");
    let text = format!(
        "{{apiVersion: v1, kind: Config, current-context: x, users: [{{name: x, user: {{}}}}], \
         contexts: [{{name: x, context: {{cluster: x, user: x}}}}], \
         clusters: [{{name: x, cluster: {{server: 'http://{api}'}}}}]}}"
    );
    std::fs::write(&kubeconfig, text).expect("a file");
    let mut command = screen::command(folder);
    command.env("KUBECONFIG", &kubeconfig);
    command.args(["ui", "--pod", "hello", "--namespace", "ops", "--no-open"]);
    command
}

#[tokio::test]
async fn a_port_that_is_not_forwarded_is_reported_with_the_reason() {
    let api = forwarding_api(None).await;
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = tokio::process::Command::from(command(folder.path(), api));
    let output = command.kill_on_drop(true).output();
    let output = tokio::time::timeout(PATIENCE, output).await.expect("it ends in time");
    let output = output.expect("the command starts");
    expect_test::expect![[r#"
        error: the operator at pod/hello in ops, port 8080 does not answer
          caused by: the API does not forward the port to the Pod: connection refused
        hint: does it run with `--liveness` on that port, and may you create `pods/portforward`?
        (exit code 1)
    "#]]
    .assert_eq(&screen::screen(&output, folder.path()));
}

#[tokio::test]
async fn the_ui_of_an_operator_in_a_pod_is_served_through_the_api() {
    let scene = Scene::new(Vec::new()).await;
    let api = forwarding_api(Some(scene.operator.address)).await;
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = tokio::process::Command::from(command(folder.path(), api));
    command.stdout(Stdio::piped()).kill_on_drop(true);
    let mut process = command.spawn().expect("the command starts");
    let mut lines = BufReader::new(process.stdout.take().expect("it is piped")).lines();
    let first = tokio::time::timeout(PATIENCE, lines.next_line()).await.expect("a line in time");
    let first = first.expect("text").expect("a line");
    let url = first.strip_prefix("The web UI is at ").expect("the address");
    let ready = async {
        loop {
            let overview = ask(url, "/api/overview").await;
            if overview["status"]["ready"] == true {
                return overview;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let overview = tokio::time::timeout(PATIENCE, ready).await.expect("a ready operator");
    assert_eq!(overview["operator"]["address"], "pod/hello in ops, port 8080");
    process.kill().await.expect("it ends");
    scene.running.abort();
}
