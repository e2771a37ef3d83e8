//! Bodies as encoded by Go clients.

use proptest::prelude::*;
use serde_json::json;

use super::*;

/// A builder of messages as gogo/protobuf writes them.
#[derive(Default, Clone)]
struct Message(Vec<u8>);

impl Message {
    fn varint(mut self, number: u8, value: u64) -> Self {
        self.0.push(number << 3);
        self.raw_varint(value);
        self
    }

    fn bytes(mut self, number: u8, bytes: &[u8]) -> Self {
        self.0.push(number << 3 | 2);
        self.raw_varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    fn text(self, number: u8, text: &str) -> Self {
        self.bytes(number, text.as_bytes())
    }

    fn message(self, number: u8, message: &Self) -> Self {
        self.bytes(number, &message.0)
    }

    fn raw_varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

fn body(api_version: &str, kind: &str, object: &Message) -> Vec<u8> {
    let meta = Message::default().text(1, api_version).text(2, kind);
    let unknown = Message::default().message(1, &meta).message(2, object).text(3, "").text(4, "");
    [b"k8s\0".as_slice(), &unknown.0].concat()
}

#[test]
fn maps_and_binary_data_are_decoded() {
    let entry = |key: &str, value: &str| Message::default().text(1, key).text(2, value);
    let object = Message::default()
        .message(1, &Message::default().text(1, "cm").text(3, "").message(8, &Message::default()))
        .message(2, &entry("a", "b"))
        .message(2, &entry("c", ""))
        .message(3, &Message::default().text(1, "bin").bytes(2, &[0, 1, 2]))
        .varint(4, 0);
    let expected = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cm"},
        "data": {"a": "b", "c": ""}, "binaryData": {"bin": "AAEC"}, "immutable": false});
    assert_eq!(decode(&body("v1", "ConfigMap", &object)).unwrap(), expected);
}

#[test]
fn inlined_structs_and_pointers_to_zero_are_decoded() {
    let key_ref =
        Message::default().message(1, &Message::default().text(1, "settings")).text(2, "key");
    let variable = Message::default()
        .text(1, "E")
        .text(2, "")
        .message(3, &Message::default().message(3, &key_ref));
    let port = Message::default().text(1, "").varint(2, 0).varint(3, 80).text(4, "TCP").text(5, "");
    let quantity = Message::default().text(1, "100m");
    let limits =
        Message::default().message(1, &Message::default().text(1, "cpu").message(2, &quantity));
    let volume = Message::default()
        .text(1, "v")
        .message(2, &Message::default().message(2, &Message::default().text(1, "Memory")));
    let get = Message::default()
        .text(1, "/")
        .message(2, &Message::default().varint(1, 0).varint(2, 8080).text(3, ""));
    let probe = Message::default().message(1, &Message::default().message(2, &get)).varint(2, 0);
    let container = Message::default()
        .text(1, "c")
        .text(2, "image")
        .message(6, &port)
        .message(7, &variable)
        .message(8, &limits)
        .message(10, &probe);
    let pod = Message::default().message(1, &volume).message(2, &container);
    let template = Message::default().message(2, &pod);
    let spec = Message::default().varint(1, 0).message(3, &template).varint(5, 0);
    let deployment = Message::default().message(2, &spec);
    let decoded = decode(&body("apps/v1", "Deployment", &deployment)).unwrap();
    let expected = json!({"replicas": 0, "template": {"spec": {
    "volumes": [{"name": "v", "emptyDir": {"medium": "Memory"}}],
    "containers": [{
        "name": "c", "image": "image",
        "ports": [{"containerPort": 80, "protocol": "TCP"}],
        "env": [{"name": "E", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "key"}}}],
        "resources": {"limits": {"cpu": "100m"}},
        "livenessProbe": {"httpGet": {"path": "/", "port": 8080}},
    }]}}});
    assert_eq!(decoded["spec"], expected);
}

#[test]
fn times_and_lists_of_strings_are_decoded() {
    let extra = Message::default()
        .text(1, "scopes")
        .message(2, &Message::default().text(1, "a").text(1, "b"));
    let user = Message::default().text(1, "alice").message(4, &extra);
    let review = Message::default().message(3, &Message::default().message(1, &user));
    let decoded = decode(&body("authentication.k8s.io/v1", "SelfSubjectReview", &review));
    // The status is field 2.
    assert!(decoded.is_ok());
    let time = Message::default().varint(1, 1_763_200_000).varint(2, 0);
    let meta = Message::default().text(1, "l").message(8, &time);
    let micro = Message::default().varint(1, 1_763_200_000).varint(2, 123_456_000);
    let lease = Message::default()
        .message(1, &meta)
        .message(2, &Message::default().text(1, "me").varint(2, 15).message(4, &micro));
    let decoded = decode(&body("coordination.k8s.io/v1", "Lease", &lease)).unwrap();
    assert_eq!(decoded["metadata"]["creationTimestamp"], "2025-11-15T09:46:40Z");
    assert_eq!(
        decoded["spec"],
        json!({"holderIdentity": "me", "leaseDurationSeconds": 15, "renewTime": "2025-11-15T09:46:40.123456Z"})
    );
}

#[test]
fn options_are_found_in_any_group() {
    let options = Message::default().varint(1, 0).text(4, "Background");
    let decoded = decode(&body("apps/v1", "DeleteOptions", &options)).unwrap();
    assert_eq!(decoded["gracePeriodSeconds"], 0);
    assert_eq!(decoded["propagationPolicy"], "Background");
}

#[test]
fn broken_bodies_are_refused() {
    assert!(decode(b"{}").unwrap_err().contains("does not appear to be a protobuf message"));
    assert!(decode(&body("v1", "Nothing", &Message::default())).is_err());
    assert_eq!(decode(b"k8s\0\x0a\x05ab").unwrap_err(), "unexpected EOF");
}

proptest! {
    #[test]
    fn no_bytes_make_the_decoder_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = decode(&bytes);
        let _ = decode(&body("apps/v1", "Deployment", &Message(bytes.clone())));
        let _ = decode(&body("apiextensions.k8s.io/v1", "CustomResourceDefinition", &Message(bytes)));
    }
}
