//! The OpenAPI documents that clients download.
//!
//! Built-in group versions are published exactly as in upstream, from the committed pack; custom
//! ones are generated from their schemas. `/openapi/v2` exists for kubectl before 1.29: as protobuf
//! it lists only the PATCH operations, which is all that those versions read.

mod custom;
mod gnostic;
mod published;

use bytes::Bytes;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha512};

use crate::resource::ResourceInfo;

const JSON: &str = "application/json";
const GNOSTIC: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// A document with its media type and entity tag.
pub(crate) struct Document {
    /// The media type.
    pub(crate) content_type: &'static str,
    /// The document.
    pub(crate) body: Bytes,
    /// The entity tag, with quotes.
    pub(crate) etag: String,
}

impl Document {
    fn new(content_type: &'static str, body: Bytes) -> Self {
        let etag = format!("\"{}\"", hash(&[&body]));
        Self { content_type, body, etag }
    }
}

/// Answers `/openapi/...`; `None` means 404.
pub(crate) fn document(
    path: &str,
    accept: &str,
    resources: &[std::sync::Arc<ResourceInfo>],
) -> Option<Document> {
    let path = path.split('?').next().unwrap_or(path);
    if path == "/openapi/v3/" {
        return None;
    }
    let path = path.trim_end_matches('/');
    match path.strip_prefix("/openapi/").unwrap_or(path.trim_start_matches('/')) {
        "v2" | "swagger-2.0.0.pb-v1" if accept.contains("protobuf") => {
            Some(Document::new(GNOSTIC, gnostic::document(resources).into()))
        }
        "v2" => Some(Document::new(JSON, serialize(&published::swagger(resources)))),
        "v3" => Some(Document::new("text/plain; charset=utf-8", serialize(&index(resources)))),
        path => {
            let group_version = path.strip_prefix("v3/")?;
            let (body, hash) = match published::document(group_version) {
                Some(body) => (body, published::hash_of(group_version)?),
                None => {
                    let kinds = custom::kinds(group_version, resources);
                    let document = custom::document(&kinds)?;
                    (serialize(&document), custom::hash_of(&kinds))
                }
            };
            Some(Document { content_type: JSON, body, etag: format!("\"{hash}\"") })
        }
    }
}

/// `/openapi/v3`: the addresses of the documents of the group versions.
fn index(resources: &[std::sync::Arc<ResourceInfo>]) -> Value {
    let mut entries: Vec<(String, String)> = published::group_versions()
        .filter_map(|name| Some((name.to_owned(), published::hash_of(name)?)))
        .collect();
    for group_version in custom::group_versions(resources) {
        let hash = custom::hash_of(&custom::kinds(&group_version, resources));
        entries.push((group_version, hash));
    }
    entries.sort();
    let mut paths = Map::new();
    for (name, hash) in entries {
        let url = format!("/openapi/v3/{name}?hash={hash}");
        paths.insert(name, json!({"serverRelativeURL": url}));
    }
    json!({"paths": paths})
}

fn serialize(document: &Value) -> Bytes {
    serde_json::to_vec(document).expect("a JSON value can be written").into()
}

/// The hash in entity tags and document addresses.
fn hash(parts: &[&[u8]]) -> String {
    let mut digest = Sha512::new();
    parts.iter().for_each(|part| digest.update(part));
    digest.finalize().iter().map(|byte| format!("{byte:02X}")).collect()
}

#[cfg(test)]
mod tests;
