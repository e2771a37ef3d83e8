//! `/openapi/v2` for kubectl before 1.29: one PATCH operation per kind.
//!
//! Those versions look up the operation of a kind, whether it takes `fieldValidation`, and whether
//! it accepts strategic merge patches, so nothing else is written. The messages of gnostic's
//! `OpenAPIv2.proto` are encoded by hand, since there are few.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::resource::ResourceInfo;

/// The PATCH operation of one kind.
pub(super) struct Operation<'a> {
    path: String,
    resource: &'a ResourceInfo,
    consumes: Vec<&'static str>,
}

/// The PATCH operations of all kinds that have one.
pub(super) fn operations(resources: &[Arc<ResourceInfo>]) -> Vec<Operation<'_>> {
    let patchable = resources.iter().filter(|resource| resource.allows("patch"));
    patchable.map(|resource| Operation::of(resource)).collect()
}

impl<'a> Operation<'a> {
    fn of(resource: &'a ResourceInfo) -> Self {
        let root = if resource.group.is_empty() {
            format!("/api/{}", resource.version)
        } else {
            format!("/apis/{}/{}", resource.group, resource.version)
        };
        let scope = if resource.namespaced { "/namespaces/{namespace}" } else { "" };
        let path = format!("{root}{scope}/{}/{{name}}", resource.resource);
        let mut consumes = vec!["application/json-patch+json", "application/merge-patch+json"];
        if !resource.is_custom() {
            consumes.push("application/strategic-merge-patch+json");
        }
        consumes.push("application/apply-patch+yaml");
        Self { path, resource, consumes }
    }

    /// The path and the operation as JSON.
    pub(super) fn to_json(&self) -> (String, Value) {
        let parameter = json!({"in": "query", "name": "fieldValidation", "type": "string",
            "uniqueItems": true});
        let operation = json!({
            "consumes": self.consumes,
            "parameters": [parameter],
            "responses": {"200": {"description": "OK"}},
            "x-kubernetes-action": "patch",
            "x-kubernetes-group-version-kind": {
                "group": self.resource.group,
                "kind": self.resource.kind,
                "version": self.resource.version,
            },
        });
        (self.path.clone(), operation)
    }

    fn to_message(&self) -> Message {
        let ResourceInfo { group, version, kind, .. } = self.resource;
        let mut query = Message::default();
        query.text(2, "query").text(4, "fieldValidation").text(6, "string");
        let parameter = query.inside(3).inside(2).inside(1);
        let mut any = Message::default();
        any.text(2, &format!("group: {group:?}\nkind: {kind}\nversion: {version}\n"));
        let mut extension = Message::default();
        extension.text(1, "x-kubernetes-group-version-kind").message(2, &any);
        let mut operation = Message::default();
        for media_type in &self.consumes {
            operation.text(7, media_type);
        }
        operation.message(8, &parameter).message(13, &extension);
        let mut path = Message::default();
        path.text(1, &self.path).message(2, &operation.inside(8));
        path
    }
}

/// The document as protobuf.
pub(super) fn document(resources: &[Arc<ResourceInfo>]) -> Vec<u8> {
    let mut info = Message::default();
    info.text(1, "Kubernetes").text(2, "v1.33");
    let mut paths = Message::default();
    for operation in operations(resources) {
        paths.message(2, &operation.to_message());
    }
    let mut document = Message::default();
    document.text(1, "2.0").message(2, &info).message(8, &paths);
    document.0
}

/// A builder of protobuf messages.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn bytes(&mut self, field: u32, bytes: &[u8]) -> &mut Self {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    fn text(&mut self, field: u32, text: &str) -> &mut Self {
        self.bytes(field, text.as_bytes())
    }

    fn message(&mut self, field: u32, message: &Self) -> &mut Self {
        self.bytes(field, &message.0)
    }

    /// A message whose only field is this one.
    fn inside(&self, field: u32) -> Self {
        let mut outer = Self::default();
        outer.message(field, self);
        outer
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push((value as u8 & 0x7f) | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}
