//! What is sent and received on one connection, however the bytes arrive.

use std::future::poll_fn;

use bytes::Bytes;
use http::{Method, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

use super::{Broken, Connection, Failed, Framing, Head, Message, READ_MIN};

const OK: &str = "HTTP/1.1 200 OK\r\n";

/// A connection, and its other end.
fn connection(capacity: usize) -> (Connection, DuplexStream) {
    let (ours, theirs) = duplex(capacity);
    (Connection::new(Box::new(TokioIo::new(ours))), theirs)
}

fn message(method: &Method, body: impl Into<Bytes>) -> Message {
    let mut message = Message::begin(method, ["/base", "/api?x=1"], body.into());
    message.push("host", b"here");
    message.end(method)
}

async fn body(connection: &mut Connection, mut framing: Framing) -> Result<Vec<u8>, Broken> {
    let mut all = Vec::new();
    while let Some(part) = poll_fn(|context| connection.poll_body(&mut framing, context)).await {
        all.extend_from_slice(&part?);
    }
    Ok(all)
}

/// The response to a request when it arrives in parts of this size, and whether its connection can
/// be used again. The connection is closed afterwards if `closes`.
async fn answer(
    method: &Method,
    response: &str,
    part: usize,
    closes: bool,
) -> Result<(Head, Vec<u8>, bool), Broken> {
    let (mut connection, mut theirs) = connection(1 << 20);
    let response = response.as_bytes().to_vec();
    let serving = tokio::spawn(async move {
        for part in response.chunks(part) {
            theirs.write_all(part).await.unwrap();
            tokio::task::yield_now().await;
        }
        (!closes).then_some(theirs)
    });
    let head = connection.exchange(&message(method, "")).await.map_err(|failed| failed.error)?;
    let body = body(&mut connection, head.framing).await?;
    let is_kept = connection.recycle();
    let _theirs = serving.await.unwrap();
    Ok((head, body, is_kept))
}

#[tokio::test]
async fn responses_are_complete_however_they_arrive() {
    let chunked = "transfer-encoding: chunked\r\n\r\n";
    for (response, expected, is_kept) in [
        (format!("{OK}Content-Length: 2\r\n\r\nok"), "ok", true),
        (format!("{OK}content-length: 2, 2\r\nCONTENT-LENGTH: 2\r\n\r\nok"), "ok", true),
        (format!("{OK}content-length:0\r\n\r\n"), "", true),
        (format!("{OK}{chunked}2\r\nok\r\n0\r\n\r\n"), "ok", true),
        (
            format!("{OK}{chunked}2;a=\"b\"\r\nok\r\nA\r\n0123456789\r\n00\r\n\r\n"),
            "ok0123456789",
            true,
        ),
        (format!("{OK}{chunked}1\r\nx\r\n0\r\na: b\r\nc: d\r\n\r\n"), "x", true),
        (format!("{OK}Transfer-Encoding: gzip, Chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"), "x", true),
        (format!("{OK}content-length: 9\r\n{chunked}1\r\nx\r\n0\r\n\r\n"), "x", false),
        ("HTTP/1.1 204 No Content\r\ncontent-length: 5\r\n\r\n".into(), "", true),
        ("HTTP/1.1 200\r\ncontent-length: 1\r\n\r\nx".into(), "x", true),
        (
            format!(
                "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\na: b\r\n\r\n{OK}content-length: 1\r\n\r\nx"
            ),
            "x",
            true,
        ),
        (format!("{OK}connection: close\r\ncontent-length: 1\r\n\r\nx"), "x", false),
        (
            format!(
                "{OK}connection: x, Close\r\nconnection: keep-alive\r\ncontent-length: 1\r\n\r\nx"
            ),
            "x",
            false,
        ),
        ("HTTP/1.0 200 OK\r\ncontent-length: 1\r\n\r\nx".into(), "x", false),
        (
            "HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\ncontent-length: 1\r\n\r\nx".into(),
            "x",
            true,
        ),
        (format!("{OK}content-length: 1\r\n\r\nxHTTP/1.1 200 OK\r\n"), "x", false),
    ] {
        for part in [1, 2, 3, 7, 1000] {
            let (head, body, kept) = answer(&Method::GET, &response, part, false).await.unwrap();
            assert!(head.status.is_success(), "{response}");
            assert_eq!(String::from_utf8(body).unwrap(), expected, "{response}");
            // Surplus bytes may arrive later.
            assert!(kept == is_kept || part < 100, "{response}");
        }
    }
}

#[tokio::test]
async fn a_body_without_a_length_ends_with_its_connection() {
    for head in ["HTTP/1.0 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\n"] {
        let (_, body, is_kept) =
            answer(&Method::GET, &format!("{head}all of it"), 4, true).await.unwrap();
        assert_eq!((body.as_slice(), is_kept), (&b"all of it"[..], false));
    }
}

#[tokio::test]
async fn responses_to_requests_for_heads_have_no_body() {
    let response = format!("{OK}content-length: 5\r\n\r\n");
    let (_, body, is_kept) = answer(&Method::HEAD, &response, 9, false).await.unwrap();
    assert_eq!((body.as_slice(), is_kept), (&b""[..], true));
}

#[tokio::test]
async fn incomplete_and_invalid_responses_are_errors() {
    let chunked = "transfer-encoding: chunked\r\n\r\n";
    for response in [
        String::new(),
        "HTTP/1.1 200".into(),
        "HTTP/2 200 OK\r\n\r\n".into(),
        "HTTP/1.1 99 Low\r\n\r\n".into(),
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n".into(),
        "HTTP/1.1 100 Continue\r\n\r\n".into(),
        "no http\r\n\r\n".into(),
        format!("{OK}content-length: 2\r\n\r\nx"),
        format!("{OK}content-length: -1\r\n\r\nx"),
        format!("{OK}content-length: +1\r\n\r\nx"),
        format!("{OK}content-length: \r\n\r\nx"),
        format!("{OK}content-length: 99999999999999999999\r\n\r\nx"),
        format!("{OK}content-length: 1\r\ncontent-length: 2\r\n\r\nxx"),
        format!("{OK}content-length: 1, 2\r\n\r\nxx"),
        format!("{OK}{chunked}"),
        format!("{OK}{chunked}2\r\nx"),
        format!("{OK}{chunked}2\r\nxx"),
        format!("{OK}{chunked}2\r\nxxx\r\n0\r\n\r\n"),
        format!("{OK}{chunked}2\r\nxx\r\n0\r\n"),
        format!("{OK}{chunked}\r\n0\r\n\r\n"),
        format!("{OK}{chunked};\r\n\r\n"),
        format!("{OK}{chunked}-1\r\n\r\n"),
        format!("{OK}{chunked}x\r\n\r\n"),
        format!("{OK}{chunked}11111111111111111\r\n\r\n"),
        format!("{OK}{chunked}1;{}", "x".repeat(8 << 10)),
        format!("{OK}{chunked}0\r\n{}\r\n", "x".repeat(80 << 10)),
        format!("{OK}{chunked}0\r\n{}\r\n", "a: b\r\n".repeat(80 << 10)),
        format!("{OK}{}\r\n", "a: b\r\n".repeat(101)),
        format!("{OK}a: {}", "x".repeat(300 << 10)),
    ] {
        let shown = &response[..response.len().min(80)];
        for part in [3, 10_000] {
            if part < 100 && response.len() > 10_000 {
                continue;
            }
            answer(&Method::GET, &response, part, true).await.map(drop).expect_err(shown);
        }
    }
}

#[tokio::test]
async fn headers_are_read_if_they_are_of_interest() {
    let response =
        |code: &str| format!("HTTP/1.1 {code}\r\nRetry-After: 3\r\ncontent-length: 0\r\n\r\n");
    for (code, wants, expected) in
        [("200 OK", false, 0), ("200 OK", true, 2), ("429 Slow", false, 2)]
    {
        let (mut connection, mut theirs) = connection(1 << 10);
        theirs.write_all(response(code).as_bytes()).await.unwrap();
        let plain = message(&Method::GET, "");
        let message = if wants { plain.with_headers() } else { plain };
        let head = connection.exchange(&message).await.unwrap();
        assert_eq!(head.headers.len(), expected);
        assert!(expected == 0 || head.headers["retry-after"] == "3");
    }
}

#[tokio::test]
async fn requests_are_sent_as_a_whole() {
    for (method, content, expected) in [
        (Method::GET, "", "GET /base/api?x=1 HTTP/1.1\r\nhost: here\r\n\r\n"),
        (
            Method::DELETE,
            "{}",
            "DELETE /base/api?x=1 HTTP/1.1\r\nhost: here\r\ncontent-length: 2\r\n\r\n{}",
        ),
        (
            Method::POST,
            "",
            "POST /base/api?x=1 HTTP/1.1\r\nhost: here\r\ncontent-length: 0\r\n\r\n",
        ),
        (
            Method::PATCH,
            "0123456789",
            "PATCH /base/api?x=1 HTTP/1.1\r\nhost: here\r\ncontent-length: 10\r\n\r\n0123456789",
        ),
    ] {
        for capacity in [1, 7, 1000] {
            let (mut connection, mut theirs) = connection(capacity);
            let length = expected.len();
            let serving = tokio::spawn(async move {
                let mut request = vec![0; length];
                theirs.read_exact(&mut request).await.unwrap();
                let response = format!("{OK}content-length: 0\r\n\r\n");
                theirs.write_all(response.as_bytes()).await.unwrap();
                (request, theirs)
            });
            connection.exchange(&message(&method, content)).await.unwrap();
            assert!(connection.recycle());
            assert_eq!(String::from_utf8(serving.await.unwrap().0).unwrap(), expected);
        }
    }
}

#[tokio::test]
async fn a_server_may_refuse_a_request_before_it_has_read_all_of_it() {
    let (mut connection, mut theirs) = connection(512);
    let refusal = "HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\n\r\nno";
    theirs.write_all(refusal.as_bytes()).await.unwrap();
    let large = message(&Method::POST, vec![b'x'; 1 << 20]);
    let head = connection.exchange(&large).await.unwrap();
    assert_eq!(head.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(body(&mut connection, head.framing).await.unwrap(), b"no");
    assert!(!connection.recycle(), "the rest of the request was never sent");
}

#[tokio::test]
async fn a_refusal_is_read_even_if_the_server_closes_the_connection() {
    let (mut connection, mut theirs) = connection(512);
    let serving = tokio::spawn(async move {
        theirs.read_exact(&mut [0; 100]).await.unwrap();
        theirs.write_all(b"HTTP/1.1 413 Too Large\r\n\r\nno").await.unwrap();
    });
    let large = message(&Method::POST, vec![b'x'; 1 << 20]);
    let head = connection.exchange(&large).await.unwrap();
    assert_eq!(head.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(body(&mut connection, head.framing).await.unwrap(), b"no");
    serving.await.unwrap();
}

#[tokio::test]
async fn only_requests_of_which_nothing_was_sent_are_known_as_unsent() {
    let (mut connection, theirs) = connection(512);
    drop(theirs);
    let failed = connection.exchange(&message(&Method::POST, "x")).await.unwrap_err();
    assert!(matches!(failed, Failed { is_unsent: true, .. }), "{failed:?}");

    let (mut connection, mut theirs) = self::connection(512);
    let serving = tokio::spawn(async move {
        theirs.read_exact(&mut [0; 1]).await.unwrap();
    });
    let failed = connection.exchange(&message(&Method::POST, "x")).await.unwrap_err();
    assert!(matches!(failed, Failed { is_unsent: false, error: Broken::Closed }), "{failed:?}");
    serving.await.unwrap();
}

#[tokio::test]
async fn idle_connections_notice_what_the_server_does() {
    let (mut idle, mut theirs) = connection(512);
    assert!(idle.is_open() && idle.is_open());
    theirs.write_all(b"HTTP/1.1 408 Request Timeout\r\n\r\n").await.unwrap();
    assert!(!idle.is_open(), "this would be taken for the response to the next request");
    let (mut idle, theirs) = connection(512);
    drop(theirs);
    assert!(!idle.is_open());
}

#[tokio::test]
async fn the_buffer_of_a_large_response_is_not_kept() {
    let (mut connection, mut theirs) = connection(4 << 20);
    let response = format!("{OK}content-length: {}\r\n\r\n{}", 1 << 20, "x".repeat(1 << 20));
    theirs.write_all(response.as_bytes()).await.unwrap();
    let head = connection.exchange(&message(&Method::GET, "")).await.unwrap();
    assert_eq!(body(&mut connection, head.framing).await.unwrap().len(), 1 << 20);
    assert!(connection.recycle());
    assert!(connection.received.capacity() <= READ_MIN, "{}", connection.received.capacity());
}
