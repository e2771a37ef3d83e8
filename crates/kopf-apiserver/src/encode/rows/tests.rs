//! Tests that rows from bytes equal rows from trees.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::Light;
use crate::Stored;
use crate::encode::{Encoder, ListMeta};
use crate::negotiate::negotiate;
use crate::registry::Registry;

fn pods() -> Vec<Arc<Stored>> {
    let pod = |name: &str, phase: &str| {
        json!({
            "kind": "Pod", "apiVersion": "v1",
            "metadata": {"name": name, "labels": {"a": "ä\"\n"}, "managedFields": [{"manager": "m"}]},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
            "status": {"phase": phase},
        })
    };
    let objects = [pod("a", "Running"), pod("b", "Succeeded")];
    objects.into_iter().map(|object| Arc::new(Stored::new(object, 7))).collect()
}

fn encoder(accept: &str, include_object: &str) -> Encoder {
    let registry = Registry::builtin();
    Encoder {
        resource: Arc::clone(registry.find("", "v1", "pods").unwrap()),
        representation: negotiate(accept).unwrap(),
        include_object: include_object.to_owned(),
        now: Timestamp::UNIX_EPOCH,
        columns_sent: Arc::default(),
    }
}

fn check(accept: &str, include_object: &str) {
    let encoder = encoder(accept, include_object);
    let items = pods();
    let meta = ListMeta { resource_version: 7, ..ListMeta::default() };
    let from_bytes: Value = serde_json::from_slice(&encoder.list(&items, &meta)).unwrap();
    assert_eq!(from_bytes.to_string(), encoder.list_of_trees(&items, &meta).to_string());
}

#[test]
fn tables_from_bytes_equal_tables_from_trees() {
    for include_object in ["", "None", "Metadata", "Object"] {
        check("application/json;as=Table;v=v1;g=meta.k8s.io", include_object);
    }
}

#[test]
fn metadata_from_bytes_equals_metadata_from_trees() {
    check("application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", "");
}

#[test]
fn only_type_and_managers_are_left_out() {
    let prefix = "{\"kind\":\"K\",\"apiVersion\":\"v\",";
    let metadata = "{\"a\":1,\"managedFields\":[{\"}\":\"]\"}],\"b\":2}";
    for rest in ["", ",\"spec\":{\"managedFields\":[2]}"] {
        let encoded = format!("{prefix}\"metadata\":{metadata}{rest}}}");
        let light = Light::of(encoded.as_bytes(), prefix.len()).unwrap();
        assert_eq!(light.metadata, metadata.as_bytes());
        let mut expected: Value = serde_json::from_str(&encoded).unwrap();
        for name in ["kind", "apiVersion"] {
            expected.as_object_mut().unwrap().remove(name);
        }
        expected["metadata"].as_object_mut().unwrap().remove("managedFields");
        assert_eq!(light.object, expected);
    }
    assert!(Light::of(b"{\"spec\":1,\"metadata\":{}}", 1).is_none());
}
