//! Loads YAML manifests and dumps the state as YAML.

use serde_json::Value;

use super::Server;
use crate::query::FieldValidation;
use crate::request::{RequestInfo, Verb};
use crate::resource::split_api_version;
use crate::rest::{self, Call};
use crate::schema::decode::{Decoded, yaml};
use crate::{StatusError, meta};

/// Why manifests were not loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// A document is not YAML.
    #[error("document {number} is not valid YAML: {problem}")]
    Syntax {
        /// The number of the document, from 1.
        number: usize,
        /// What is wrong.
        problem: String,
    },
    /// The kind of a document is not served.
    #[error("document {number}: no kind {kind:?} in version {api_version:?}")]
    Kind {
        /// The number of the document, from 1.
        number: usize,
        /// Its kind.
        kind: String,
        /// Its apiVersion.
        api_version: String,
    },
    /// The server rejected an object.
    #[error("document {number}: could not load {kind} {name:?}")]
    Refused {
        /// The number of the document, from 1.
        number: usize,
        /// Its kind.
        kind: String,
        /// Its name.
        name: String,
        /// The server's error.
        source: StatusError,
    },
}

impl Server {
    /// Creates (or replaces) every object of a YAML stream; lists are expanded.
    ///
    /// CRDs and namespaces are created first. A `status` is loaded as well. Objects without a
    /// namespace go to `default`. Returns the number of objects.
    pub async fn load_yaml(&self, text: &str) -> Result<usize, LoadError> {
        let mut documents = Vec::new();
        for (index, document) in split_documents(text).into_iter().enumerate() {
            let number = index + 1;
            let decoded = yaml(document.as_bytes())
                .map_err(|error| LoadError::Syntax { number, problem: error.to_string() })?;
            match decoded.value {
                Value::Null => {}
                Value::Object(mut list) if list.get("items").is_some_and(Value::is_array) => {
                    if let Some(Value::Array(items)) = list.shift_remove("items") {
                        documents.extend(items.into_iter().map(|item| (number, item)));
                    }
                }
                object => documents.push((number, object)),
            }
        }
        documents.sort_by_key(|(_, object)| match object["kind"].as_str() {
            Some("CustomResourceDefinition") => 0,
            Some("Namespace") => 1,
            _ => 2,
        });
        let count = documents.len();
        for (number, object) in documents {
            self.load_object(number, object).await?;
        }
        Ok(count)
    }

    async fn load_object(&self, number: usize, object: Value) -> Result<(), LoadError> {
        let kind = object["kind"].as_str().unwrap_or_default().to_owned();
        let api_version = object["apiVersion"].as_str().unwrap_or_default().to_owned();
        let name = meta::text(&object, "name").to_owned();
        let (group, version) = split_api_version(&api_version);
        let registry = self.inner.registry();
        let Some(resource) = registry.of_kind(group, version, &kind) else {
            return Err(LoadError::Kind { number, kind, api_version });
        };
        let namespace = match meta::text(&object, "namespace") {
            _ if !resource.namespaced => "",
            "" => "default",
            namespace => namespace,
        };
        let info = RequestInfo {
            verb: Verb::Create,
            group: resource.group.clone(),
            version: resource.version.clone(),
            resource: resource.resource.clone(),
            subresource: String::new(),
            namespace: namespace.to_owned(),
            name: String::new(),
        };
        let mut call = Call::internal(&self.inner, resource, info, "kopf-load");
        call.keeps_identity = true;
        call.options.field_validation = FieldValidation::Strict;
        load(&mut call, object, &name).await.map_err(|source| LoadError::Refused {
            number,
            kind,
            name,
            source,
        })
    }

    /// Returns every object as a YAML stream, in a stable order, without managed fields.
    pub fn dump_yaml(&self) -> String {
        let snapshot = self.inner.store.snapshot();
        let mut tables: Vec<_> = snapshot.tables().collect();
        tables.sort_by_key(|(name, _)| match &***name {
            crate::crd::TABLE => (0, *name),
            "namespaces" => (1, *name),
            _ => (2, *name),
        });
        let mut text = String::new();
        for (_, table) in tables {
            for (_, stored) in table.iter() {
                let mut object = Value::clone(&stored.content());
                meta::metadata_mut(&mut object).shift_remove("resourceVersion");
                text.push_str("---\n");
                text.push_str(&crate::encode::yaml_text(&object));
            }
        }
        text
    }
}

async fn load(call: &mut Call, mut object: Value, name: &str) -> Result<(), StatusError> {
    let metadata = meta::metadata_mut(&mut object);
    metadata.shift_remove("resourceVersion");
    metadata.shift_remove("managedFields");
    let status = object.get("status").cloned();
    let body = |value: Value| Decoded { value, duplicates: Vec::new() };
    let typed = rest::typed(call, body(object.clone()))?;
    let stored = match rest::create(call, typed.clone()).await {
        Err(error) if error.is_already_exists() => {
            let info = call.info_mut();
            info.verb = Verb::Update;
            name.clone_into(&mut info.name);
            rest::update_with(call, rest::Change::Patch, |_, old| {
                let mut object = typed.clone();
                let metadata = meta::metadata_mut(&mut object);
                for key in ["resourceVersion", "uid", "deletionTimestamp"] {
                    metadata.insert(key.into(), old.object["metadata"][key].clone());
                }
                Ok(object.into())
            })
            .await?
        }
        outcome => outcome?,
    };
    let Some(status) = status.filter(|_| call.resource.has_status()) else { return Ok(()) };
    if stored.content().get("status") == Some(&status) || &*call.resource.table == crate::crd::TABLE
    {
        return Ok(());
    }
    let info = call.info_mut();
    info.verb = Verb::Update;
    stored.name().clone_into(&mut info.name);
    "status".clone_into(&mut info.subresource);
    rest::update_with(call, rest::Change::Patch, |_, old| {
        let mut object = old.object.clone();
        object["status"] = status.clone();
        Ok(object.into())
    })
    .await?;
    Ok(())
}

/// Splits a stream at lines that start with `---`.
fn split_documents(text: &str) -> Vec<String> {
    let mut documents = vec![String::new()];
    for line in text.lines() {
        if line == "---" || line.starts_with("--- ") {
            documents.push(String::new());
            continue;
        }
        if let Some(document) = documents.last_mut() {
            document.push_str(line);
            document.push('\n');
        }
    }
    documents.retain(|document| {
        document.lines().any(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#'))
    });
    documents
}
