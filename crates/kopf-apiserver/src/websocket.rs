//! Watches over WebSockets (RFC 6455), which some clients use: one message per event.
//!
//! Responsible for the handshake and the frames. The watch provides the events, and the listener
//! decides when a connection has lasted too long. Clients can only close the connection.

use std::io;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use bytes::BytesMut;
use http::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, UPGRADE,
};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use http_body_util::BodyExt;
use sha1::{Digest, Sha1};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::body::Body;

/// The suffix that servers append to a client's key, defined by the standard.
const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// Browsers cannot send `Authorization`, so the token is sent as the name of a protocol.
const TOKEN_PROTOCOL: &str = "base64url.bearer.authorization.k8s.io.";
/// Longer frames from clients end the connection.
const FRAME_BYTES_MAX: usize = 64 << 10;
/// How much is read at once.
const READ_BYTES: usize = 4096;

const TEXT: u8 = 0x1;
const CLOSE: u8 = 0x8;
const PING: u8 = 0x9;
const PONG: u8 = 0xA;
/// The status of a normal closure.
const NORMAL_CLOSURE: u16 = 1000;

/// Whether a request is a WebSocket handshake.
pub(crate) fn is_requested(headers: &HeaderMap) -> bool {
    let has = |name, token: &str| {
        words(headers, &name).iter().any(|word| word.eq_ignore_ascii_case(token))
    };
    has(UPGRADE, "websocket") && has(CONNECTION, "upgrade")
}

/// The items of a comma-separated header.
fn words(headers: &HeaderMap, name: &http::HeaderName) -> Vec<String> {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values
        .flat_map(|value| value.split(','))
        .map(|word| word.trim().to_owned())
        .filter(|word| !word.is_empty())
        .collect()
}

/// The bearer token in the protocols of a WebSocket request.
pub(crate) fn bearer_token(headers: &HeaderMap) -> Option<String> {
    if !is_requested(headers) {
        return None;
    }
    let protocols = words(headers, &SEC_WEBSOCKET_PROTOCOL);
    let encoded = protocols.iter().find_map(|word| word.strip_prefix(TOKEN_PROTOCOL))?;
    String::from_utf8(URL_SAFE_NO_PAD.decode(encoded).ok()?).ok()
}

/// The response that upgrades the connection to a WebSocket; `None` if the request has no key.
pub(crate) fn switch(headers: &HeaderMap) -> Option<Response<Body>> {
    let key = headers.get(SEC_WEBSOCKET_KEY)?;
    let hash = Sha1::new().chain_update(key.as_bytes()).chain_update(GUID).finalize();
    let mut response = Response::new(Body::full(bytes::Bytes::new()));
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let answer = response.headers_mut();
    answer.insert(UPGRADE, HeaderValue::from_static("websocket"));
    answer.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    answer.insert(SEC_WEBSOCKET_ACCEPT, HeaderValue::from_str(&STANDARD.encode(hash)).ok()?);
    let protocols = words(headers, &SEC_WEBSOCKET_PROTOCOL);
    let chosen = protocols.iter().find(|word| !word.starts_with(TOKEN_PROTOCOL));
    if let Some(chosen) = chosen {
        answer.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_str(chosen).ok()?);
    }
    Some(response)
}

/// Sends the lines of a watch, one message each, until it ends or the client disconnects.
pub(crate) async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    mut body: Body,
) -> io::Result<()> {
    let (mut reader, mut writer) = tokio::io::split(stream);
    let mut incoming = BytesMut::with_capacity(READ_BYTES);
    loop {
        tokio::select! {
            lines = body.frame() => {
                let Some(Ok(lines)) = lines else {
                    let end = frame(CLOSE, &NORMAL_CLOSURE.to_be_bytes());
                    writer.write_all(&end).await?;
                    return writer.shutdown().await;
                };
                let lines = lines.into_data().unwrap_or_default();
                for line in lines.split_inclusive(|byte| *byte == b'\n') {
                    writer.write_all(&frame(TEXT, line)).await?;
                }
                writer.flush().await?;
            }
            count = reader.read_buf(&mut incoming) => {
                if count? == 0 {
                    return Ok(());
                }
                while let Some((kind, payload)) = take_frame(&mut incoming)? {
                    match kind {
                        PING => writer.write_all(&frame(PONG, &payload)).await?,
                        CLOSE => {
                            writer.write_all(&frame(CLOSE, &payload)).await?;
                            return writer.shutdown().await;
                        }
                        _ => {}
                    }
                }
                writer.flush().await?;
            }
        }
    }
}

/// A complete server message.
fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    const FINAL: u8 = 0x80;
    let mut frame = Vec::with_capacity(payload.len() + 10);
    frame.push(FINAL | kind);
    match payload.len() {
        length @ 0..=125 => frame.push(length as u8),
        length @ 126..=0xFFFF => {
            frame.push(126);
            frame.extend_from_slice(&(length as u16).to_be_bytes());
        }
        length => {
            frame.push(127);
            frame.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    frame.extend_from_slice(payload);
    frame
}

/// Takes the first complete client frame from the buffer; `None` if there is none yet.
fn take_frame(bytes: &mut BytesMut) -> io::Result<Option<(u8, Vec<u8>)>> {
    const MASK_BYTES: usize = 4;
    let [first, second, ..] = **bytes else { return Ok(None) };
    if second & 0x80 == 0 {
        return Err(io::Error::other("a client's frame is not masked"));
    }
    let extended = match second & 0x7F {
        126 => 2,
        127 => 8,
        _ => 0,
    };
    let head = 2 + extended + MASK_BYTES;
    if bytes.len() < head {
        return Ok(None);
    }
    let length = match extended {
        0 => u64::from(second & 0x7F),
        _ => bytes[2..2 + extended].iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)),
    };
    let length = usize::try_from(length).ok().filter(|length| *length <= FRAME_BYTES_MAX);
    let length = length.ok_or_else(|| io::Error::other("a client's frame is too long"))?;
    if bytes.len() < head + length {
        return Ok(None);
    }
    let frame = bytes.split_to(head + length);
    let mask = &frame[head - MASK_BYTES..head];
    let payload = frame[head..].iter().zip(mask.iter().cycle()).map(|(byte, key)| byte ^ key);
    Ok(Some((first & 0x0F, payload.collect())))
}

#[cfg(test)]
mod tests;
