//! Tests for frames and handshakes.

use bytes::BytesMut;
use http::HeaderMap;

use super::{bearer_token, frame, switch, take_frame};

fn masked(kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = frame(kind, payload);
    let head = bytes.len() - payload.len();
    bytes[1] |= 0x80;
    let mask = [7, 11, 13, 17];
    for (byte, key) in bytes[head..].iter_mut().zip(mask.iter().cycle()) {
        *byte ^= key;
    }
    bytes.splice(head..head, mask);
    bytes
}

#[test]
fn the_key_is_answered_as_the_standard_says() {
    let mut headers = HeaderMap::new();
    headers.insert("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==".parse().unwrap());
    let response = switch(&headers).unwrap();
    assert_eq!(response.headers()["sec-websocket-accept"], "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

#[test]
fn frames_of_any_length_come_back_whole_however_they_are_cut() {
    for length in [0, 1, 125, 126, 300, 65_535] {
        let payload: Vec<u8> = (0..length).map(|index| index as u8).collect();
        let sent = masked(9, &payload);
        let mut read = BytesMut::new();
        for byte in &sent[..sent.len() - 1] {
            read.extend_from_slice(&[*byte]);
            assert!(take_frame(&mut read).unwrap().is_none());
        }
        read.extend_from_slice(&sent[sent.len() - 1..]);
        assert_eq!(take_frame(&mut read).unwrap().unwrap(), (9, payload));
        assert!(read.is_empty());
    }
}

#[test]
fn frames_that_are_too_long_or_not_masked_are_refused() {
    let mut long = BytesMut::from(&masked(1, &vec![0; 70_000])[..]);
    assert!(take_frame(&mut long).is_err());
    let mut plain = BytesMut::from(&frame(1, b"x")[..]);
    assert!(take_frame(&mut plain).is_err());
}

#[test]
fn tokens_of_browsers_are_found_among_the_protocols() {
    let mut headers = HeaderMap::new();
    headers.insert("upgrade", "websocket".parse().unwrap());
    headers.insert("connection", "keep-alive, Upgrade".parse().unwrap());
    let protocols = "base64url.bearer.authorization.k8s.io.c2VjcmV0, v1.json";
    headers.insert("sec-websocket-protocol", protocols.parse().unwrap());
    assert_eq!(bearer_token(&headers).as_deref(), Some("secret"));
    headers.insert("sec-websocket-key", "a".parse().unwrap());
    let chosen = switch(&headers).unwrap().headers()["sec-websocket-protocol"].clone();
    assert_eq!(chosen, "v1.json");
}
