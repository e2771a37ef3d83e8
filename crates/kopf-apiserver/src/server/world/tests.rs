//! Computes the encodings of the initial objects, and compares them with the file that servers use.

use serde_json::{Value, json};

use super::*;
use super::{definitions, roles};
use crate::apply::{self, ManagedFields, Manager, Owned};
use crate::registry::Registry;
use crate::stored::{Draft, TEMPLATE_TIME};
use crate::{Server, Stored, fields, shape};

/// One line of the file per object.
fn lines() -> String {
    let namespaces = ["kube-system", "kube-public", "kube-node-lease", "default"]
        .map(|name| ("namespaces", namespace(name)));
    let others = definitions::objects(TEMPLATE_TIME).into_iter();
    let others = others.chain(roles::objects()).map(|(table, mut object)| {
        object["metadata"]["creationTimestamp"] = TEMPLATE_TIME.into();
        if let Some(condition) = object.pointer_mut("/status/conditions/0")
            && condition.get("lastTransitionTime").is_none()
        {
            condition["lastTransitionTime"] = TEMPLATE_TIME.into();
        }
        shape::normalise(&mut object);
        object["metadata"]["uid"] = "".into();
        (table, object)
    });
    let lines = namespaces.into_iter().chain(others).map(|(table, mut object)| {
        let managed = tracked(table, &mut object);
        let (namespace, name) = (fields::namespace(&object), fields::name(&object));
        let place = format!("{table} {namespace} {name}");
        let stored = Draft::new(object, managed).at_version(0);
        let encoded = std::str::from_utf8(stored.encoded()).unwrap();
        format!("{place} {encoded}\n")
    });
    lines.collect()
}

fn namespace(name: &str) -> Value {
    json!({
        "kind": "Namespace",
        "apiVersion": "v1",
        "metadata": {
            "name": name,
            "uid": "",
            "creationTimestamp": TEMPLATE_TIME,
            "labels": { "kubernetes.io/metadata.name": name },
        },
        "spec": { "finalizers": ["kubernetes"] },
        "status": { "phase": "Active" },
    })
}

/// The managed fields of such an object: owned by the server and by those that fill in a part.
fn tracked(table: &str, object: &mut Value) -> ManagedFields {
    let registry = Registry::builtin();
    let Some(resource) = registry.of_table(table) else { return ManagedFields::default() };
    let api_version = resource.api_version();
    let is_flow_control = table.ends_with("flowcontrol.apiserver.k8s.io");
    let name = match is_flow_control {
        true => "api-priority-and-fairness-config-producer-v1",
        false => "kube-apiserver",
    };
    let manager = Manager {
        name,
        api_version: &api_version,
        kind: &resource.kind,
        subresource: "",
        has_status: resource.has_status(),
        has_versions: false,
        time: TEMPLATE_TIME,
    };
    let applied = if object["aggregationRule"].is_object() {
        Some(("rules", Manager { name: "clusterrole-aggregation-controller", ..manager }))
    } else if is_flow_control && object["kind"] == "FlowSchema" {
        let name = "api-priority-and-fairness-config-consumer-v1";
        Some(("status", Manager { name, subresource: "status", ..manager }))
    } else {
        None
    };
    let part = applied.and_then(|(field, applier)| {
        let value = object.as_object_mut()?.shift_remove(field)?;
        Some((field, value, applier))
    });
    let schema = resource.schema.as_deref();
    let managed = apply::track_update(&manager, schema, None, object);
    let Some((field, value, applier)) = part else { return managed };
    let part = json!({
        "apiVersion": api_version,
        "kind": resource.kind,
        "metadata": { "name": object["metadata"]["name"] },
        field: value,
    });
    let live = Owned { object, managed: &managed };
    let (merged, managed) = apply::apply(&applier, true, schema, Some(live), &part)
        .expect("recorded objects fit their schema");
    *object = merged;
    managed
}

#[test]
fn the_file_is_up_to_date() {
    if std::env::var_os("UPDATE_INITIAL_OBJECTS").is_some() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/src/data/initial-objects.txt");
        std::fs::write(file, lines()).unwrap();
        return;
    }
    let advice = "run it with UPDATE_INITIAL_OBJECTS=1 to write data/initial-objects.txt";
    assert!(lines() == INITIAL_OBJECTS, "the definitions and the file differ: {advice}");
}

#[test]
fn filled_templates_are_what_the_store_would_have_encoded() {
    let server = Server::builder().controllers(false).build();
    let snapshot = server.inner().store.snapshot();
    let mut count = 0;
    for (_, table) in snapshot.tables() {
        for (key, packed) in table.iter() {
            let tree: Value = serde_json::from_slice(packed.encoded()).unwrap();
            let metadata = &tree["metadata"];
            assert_eq!(metadata["uid"].as_str().unwrap().len(), 36, "{key:?}");
            assert_eq!(metadata["resourceVersion"], packed.resource_version().to_string());
            assert!(!tree.to_string().contains(TEMPLATE_TIME), "{tree}");
            let again = Stored::new(tree, packed.resource_version());
            assert_eq!(again.encoded(), packed.encoded(), "{key:?}");
            assert_eq!(again.managed(), packed.managed(), "{key:?}");
            assert_eq!(*again.content(), *packed.content(), "{key:?}");
            count += 1;
        }
    }
    assert_eq!(count, INITIAL_OBJECTS.lines().count());
}

#[test]
fn servers_without_nodes_have_no_node() {
    let server = Server::builder().nodes(false).build();
    assert_eq!(server.inner().store.snapshot().count("nodes", ""), 0);
    let server = Server::builder().nodes(true).build();
    assert_eq!(server.inner().store.snapshot().count("nodes", ""), 1);
}
