//! Converts objects of custom resources between the versions of their definition.
//!
//! An object keeps the version in which it was written until it is written again, even if the
//! storage version changes; the version is at the start of its encoding. With strategy `None`, only
//! the apiVersion changes. In both cases, fields that the other version does not declare are pruned
//! when the object is stored and read. Clients see the defaults of the version in which an object
//! is stored, including defaults that were added to the schema later. Called without holding the
//! store's lock, since a webhook may be called.

use std::sync::Arc;

use serde_json::Value;

use super::{set_type, webhook};
use crate::apply::{ManagedFields, Owned};
use crate::fields::text;
use crate::resource::{ResourceInfo, join_api_version, split_api_version};
use crate::schema::{self, Schema};
use crate::state::Inner;
use crate::stored::Packed;
use crate::{StatusError, Stored};

/// Why objects could not be converted to another version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct ConversionError(String);

impl ConversionError {
    pub(super) fn new(problem: impl Into<String>) -> Self {
        Self(problem.into())
    }

    /// The error as reported by admission.
    pub(crate) fn into_internal(self) -> StatusError {
        StatusError::internal(self.0)
    }
}

/// The real server has no specific status for this error.
impl From<ConversionError> for StatusError {
    fn from(error: ConversionError) -> Self {
        Self::new(500, "", error.0)
    }
}

/// Whether objects of the resource may be stored in other versions than this one.
pub(crate) fn has_versions(resource: &ResourceInfo) -> bool {
    resource.custom.as_ref().is_some_and(|custom| custom.versions.len() > 1)
}

/// Whether a conversion may change fields that selectors use.
pub(crate) fn is_rewritten(resource: &ResourceInfo) -> bool {
    has_versions(resource)
        && resource.custom.as_ref().is_some_and(|custom| custom.conversion_webhook.is_some())
}

/// Whether writing the object again would not change it: its version and defaults are current.
pub(crate) fn is_current(inner: &Inner, resource: &ResourceInfo, stored: &Arc<Stored>) -> bool {
    let start = || type_of(resource, &resource.storage_version);
    (!has_versions(resource) || is_in(&start(), stored.packed()))
        && with_defaults(inner, resource, stored).is_none()
}

/// Whether any of these objects must be converted or lacks defaults.
pub(crate) fn has_others<'a>(
    resource: &ResourceInfo,
    mut states: impl Iterator<Item = &'a Arc<Packed>>,
) -> bool {
    let start = has_versions(resource).then(|| type_of(resource, &resource.version));
    states.any(|state| {
        may_lack_defaults(resource, state.resource_version())
            || start.as_ref().is_some_and(|start| !is_in(start, state))
    })
}

/// Whether an object stored at this version may lack defaults.
fn may_lack_defaults(resource: &ResourceInfo, resource_version: u64) -> bool {
    let custom = resource.custom.as_ref();
    custom.is_some_and(|custom| custom.undefaulted.includes(resource_version))
}

/// A stored object with the defaults of its stored version; `None` if it already has them.
fn with_defaults(inner: &Inner, resource: &ResourceInfo, stored: &Stored) -> Option<Arc<Stored>> {
    if !may_lack_defaults(resource, stored.resource_version()) {
        return None;
    }
    let (_, version) = split_api_version(text(stored.content(), &["apiVersion"]));
    let schema = schema_of(inner, resource, version)?;
    let mut object = stored.content().clone();
    schema::fill_defaults(&schema, &mut object);
    let is_new = object != *stored.content();
    let version = stored.resource_version();
    is_new.then(|| Arc::new(Stored::of_parts(object, &stored.managed(), version)))
}

/// The start of the encoding of objects in a version.
fn type_of(resource: &ResourceInfo, version: &str) -> String {
    let api_version = join_api_version(&resource.group, version);
    format!("{{\"kind\":\"{}\",\"apiVersion\":\"{api_version}\"", resource.kind)
}

fn is_in(start: &str, state: &Packed) -> bool {
    state.encoded().starts_with(start.as_bytes())
}

/// Returns a stored object in the version of the resource.
pub(crate) async fn served(
    inner: &Inner,
    resource: &ResourceInfo,
    stored: &Arc<Stored>,
) -> Result<Arc<Stored>, ConversionError> {
    if !has_versions(resource) && !may_lack_defaults(resource, stored.resource_version()) {
        return Ok(Arc::clone(stored));
    }
    let mut items = served_all(inner, resource, vec![Arc::clone(stored)]).await?;
    Ok(items.pop().unwrap_or_else(|| Arc::clone(stored)))
}

/// Returns stored objects in the version of the resource; calls the webhook once per object.
pub(crate) async fn served_all(
    inner: &Inner,
    resource: &ResourceInfo,
    mut items: Vec<Arc<Stored>>,
) -> Result<Vec<Arc<Stored>>, ConversionError> {
    // If objects of the lowest version have their defaults, all have.
    if may_lack_defaults(resource, 0) {
        for item in &mut items {
            if let Some(defaulted) = with_defaults(inner, resource, item) {
                *item = defaulted;
            }
        }
    }
    if !has_versions(resource) {
        return Ok(items);
    }
    let start = type_of(resource, &resource.version);
    let others: Vec<usize> =
        (0..items.len()).filter(|&index| !is_in(&start, items[index].packed())).collect();
    if others.is_empty() {
        return Ok(items);
    }
    let managed: Vec<ManagedFields> = others.iter().map(|&index| items[index].managed()).collect();
    let owned: Vec<Owned<'_>> = others
        .iter()
        .zip(&managed)
        .map(|(&index, managed)| Owned { object: items[index].content(), managed })
        .collect();
    let mut converted = into_version(inner, resource, &resource.version, &owned).await?;
    prune(inner, resource, &resource.version, &mut converted);
    for ((index, managed), object) in others.into_iter().zip(&managed).zip(converted) {
        let version = items[index].resource_version();
        items[index] = Arc::new(Stored::of_parts(object, managed, version));
    }
    Ok(items)
}

/// Converts an object to the storage version of the resource.
pub(crate) async fn stored(
    inner: &Inner,
    resource: &ResourceInfo,
    mut object: Value,
    managed: &ManagedFields,
) -> Result<Value, ConversionError> {
    let version = &resource.storage_version;
    let api_version = join_api_version(&resource.group, version);
    if text(&object, &["apiVersion"]) == api_version {
        set_type(&mut object, &resource.kind, &api_version);
        return Ok(object);
    }
    let owned = Owned { object: &object, managed };
    let mut converted = into_version(inner, resource, version, &[owned]).await?;
    prune(inner, resource, version, &mut converted);
    Ok(converted.pop().unwrap_or_default())
}

/// Converts an object of a custom resource to the version of the resource.
pub(crate) async fn seen_as(
    inner: &Inner,
    resource: &ResourceInfo,
    object: Value,
) -> Result<Value, ConversionError> {
    let is_other = text(&object, &["kind"]) == resource.kind
        && text(&object, &["apiVersion"]) != resource.api_version();
    if !is_other || !resource.is_custom() {
        return Ok(object);
    }
    let mut object = object;
    let managed = ManagedFields::take_from(&mut object);
    let owned = Owned { object: &object, managed: &managed };
    let mut converted = into_version(inner, resource, &resource.version, &[owned]).await?;
    let mut converted = converted.pop().unwrap_or_default();
    managed.put_into(&mut converted);
    Ok(converted)
}

/// Converts objects to a version of the definition; none of them may already have that version.
async fn into_version(
    inner: &Inner,
    resource: &ResourceInfo,
    version: &str,
    objects: &[Owned<'_>],
) -> Result<Vec<Value>, ConversionError> {
    let Some(custom) = resource.custom.as_ref() else { return Ok(Vec::new()) };
    for object in objects {
        let api_version = text(object.object, &["apiVersion"]);
        let (_, from) = split_api_version(api_version);
        if !custom.versions.iter().any(|known| known == from) {
            return Err(ConversionError::new(format!(
                "request to convert CR from an invalid group/version: {api_version}"
            )));
        }
    }
    let desired = join_api_version(&resource.group, version);
    match &custom.conversion_webhook {
        Some(webhook) => {
            // One by one, as the real server does when it reads them from its storage.
            let mut converted = Vec::with_capacity(objects.len());
            for object in objects.chunks(1) {
                // Boxed, because otherwise the future of every request would be as large as this
                // one.
                let asking = Box::pin(webhook::convert(inner, webhook, &desired, object));
                converted.extend(asking.await?);
            }
            Ok(converted)
        }
        None => {
            Ok(objects.iter().map(|object| renamed(object.object, resource, &desired)).collect())
        }
    }
}

fn renamed(object: &Value, resource: &ResourceInfo, api_version: &str) -> Value {
    let mut object = object.clone();
    set_type(&mut object, &resource.kind, api_version);
    object
}

/// Removes fields that a version does not declare.
fn prune(inner: &Inner, resource: &ResourceInfo, version: &str, objects: &mut [Value]) {
    if let Some(schema) = schema_of(inner, resource, version) {
        objects.iter_mut().for_each(|object| schema::prune(&schema, object));
    }
}

/// The schema of a version; `None` if the version is not served.
fn schema_of(inner: &Inner, resource: &ResourceInfo, version: &str) -> Option<Arc<Schema>> {
    if resource.version == version {
        return resource.schema.clone();
    }
    let registry = inner.registry();
    registry.find(&resource.group, version, &resource.resource)?.schema.clone()
}
