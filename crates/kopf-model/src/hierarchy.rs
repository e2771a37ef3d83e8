//! Makes objects the children of another object: owner references, labels, names, namespaces.
//!
//! All functions modify trees in place and accept one object or nested lists of objects.

use serde_json::{Map, Value, json};

use crate::field::FieldPath;

/// How a child is adopted.
#[derive(Clone, Debug)]
pub struct Adoption {
    /// Whether to overwrite the child's existing names, namespaces and labels.
    pub is_forced: bool,
    /// Whether the child gets exactly the owner's name instead of one that begins with it.
    pub is_strict: bool,
    /// Paths to objects inside the child that also get the labels, such as `spec.template`.
    pub nested: Vec<FieldPath>,
    /// Whether the owner is the controller of the child.
    pub is_controller: bool,
    /// Whether the owner is deleted only after the child.
    pub blocks_owner_deletion: bool,
}

/// The value cannot become a child.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("only objects and lists of them can be adopted or labelled, not {0}")]
pub struct NotAnObject(pub String);

impl Default for Adoption {
    fn default() -> Self {
        Self {
            is_forced: false,
            is_strict: false,
            nested: Vec::new(),
            is_controller: true,
            blocks_owner_deletion: true,
        }
    }
}

/// Builds a reference to an object: apiVersion, kind, name, uid and namespace, without empty ones.
#[must_use]
pub fn build_object_reference(body: &Value) -> Value {
    let mut reference = identity(body);
    if let Some(namespace) = metadata_text(body, "namespace") {
        reference.insert("namespace".into(), namespace.into());
    }
    Value::Object(reference)
}

/// Builds a reference to an owner.
#[must_use]
pub fn build_owner_reference(
    body: &Value,
    is_controller: bool,
    blocks_owner_deletion: bool,
) -> Value {
    let mut reference = Map::new();
    reference.insert("controller".into(), is_controller.into());
    reference.insert("blockOwnerDeletion".into(), blocks_owner_deletion.into());
    reference.extend(identity(body));
    Value::Object(reference)
}

/// Adds an owner, unless there is a reference with the same uid.
///
/// # Errors
/// Fails if the children are not objects.
pub fn append_owner_reference(
    children: &mut Value,
    owner: &Value,
    is_controller: bool,
    blocks_owner_deletion: bool,
) -> Result<(), NotAnObject> {
    let reference = build_owner_reference(owner, is_controller, blocks_owner_deletion);
    for_each(children, &mut |child| {
        let references = owner_references(child);
        if !references.iter().any(|known| known.get("uid") == reference.get("uid")) {
            references.push(reference.clone());
        }
    })
}

/// Removes an owner by its uid.
///
/// # Errors
/// Fails if the children are not objects.
pub fn remove_owner_reference(children: &mut Value, owner: &Value) -> Result<(), NotAnObject> {
    let uid = owner.get("metadata").and_then(|metadata| metadata.get("uid"));
    for_each(children, &mut |child| {
        owner_references(child).retain(|known| known.get("uid") != uid);
    })
}

/// Sets missing labels (all of them if forced), also on nested objects that exist.
///
/// # Errors
/// Fails if the children are not objects.
pub fn label(
    children: &mut Value,
    labels: &Map<String, Value>,
    is_forced: bool,
    nested: &[FieldPath],
) -> Result<(), NotAnObject> {
    for_each(children, &mut |child| {
        label_one(child, labels, is_forced);
        for path in nested {
            if let Some(inner) = resolve_mut(child, path)
                && inner.is_object()
            {
                label_one(inner, labels, is_forced);
            }
        }
    })
}

/// Names children after their owner, unless they have a name or `generateName` (or if forced):
/// exactly like the owner if strict, otherwise with `name-` as `generateName`.
///
/// # Errors
/// Fails if the children are not objects.
pub fn harmonize_naming(
    children: &mut Value,
    name: &str,
    is_forced: bool,
    is_strict: bool,
) -> Result<(), NotAnObject> {
    for_each(children, &mut |child| {
        let metadata = map_at(child, "metadata");
        let has = |key: &str| metadata.get(key).is_some_and(|value| !value.is_null());
        if !is_forced && (has("name") || has("generateName")) {
            return;
        }
        if is_strict {
            metadata.insert("name".into(), name.into());
            metadata.shift_remove("generateName");
        } else {
            metadata.insert("generateName".into(), format!("{name}-").into());
            metadata.shift_remove("name");
        }
    })
}

/// Puts children into a namespace, unless they are in one (or if forced); `None` removes the
/// namespace of a forced child.
///
/// # Errors
/// Fails if the children are not objects.
pub fn adjust_namespace(
    children: &mut Value,
    namespace: Option<&str>,
    is_forced: bool,
) -> Result<(), NotAnObject> {
    for_each(children, &mut |child| {
        let metadata = map_at(child, "metadata");
        let is_set = metadata.get("namespace").is_some_and(|value| !value.is_null());
        match namespace {
            Some(namespace) if is_forced || !is_set => {
                metadata.insert("namespace".into(), namespace.into());
            }
            None if is_forced => {
                metadata.shift_remove("namespace");
            }
            _ => {}
        }
    })
}

/// Makes the children belong to the owner: sets owner reference, name, namespace and labels.
///
/// ```
/// use kopf_model::hierarchy::{Adoption, adopt};
/// let owner = serde_json::json!({"metadata": {"name": "db", "namespace": "ns", "uid": "1"}});
/// let mut child = serde_json::json!({"kind": "Pod"});
/// adopt(&mut child, &owner, &Adoption::default())?;
/// assert_eq!(child["metadata"]["generateName"], "db-");
/// # Ok::<(), kopf_model::hierarchy::NotAnObject>(())
/// ```
///
/// # Errors
/// Fails if the children are not objects.
pub fn adopt(children: &mut Value, owner: &Value, adoption: &Adoption) -> Result<(), NotAnObject> {
    let Adoption { is_forced, is_strict, nested, is_controller, blocks_owner_deletion } = adoption;
    append_owner_reference(children, owner, *is_controller, *blocks_owner_deletion)?;
    if let Some(name) = metadata_text(owner, "name") {
        harmonize_naming(children, name, *is_forced, *is_strict)?;
    }
    adjust_namespace(children, metadata_text(owner, "namespace"), *is_forced)?;
    let labels = owner.get("metadata").and_then(|metadata| metadata.get("labels"));
    match labels.and_then(Value::as_object) {
        Some(labels) => label(children, labels, *is_forced, nested),
        None => Ok(()),
    }
}

fn identity(body: &Value) -> Map<String, Value> {
    let top = |key: &str| body.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let parts = [
        ("apiVersion", top("apiVersion")),
        ("kind", top("kind")),
        ("name", metadata_text(body, "name")),
        ("uid", metadata_text(body, "uid")),
    ];
    let given = parts.into_iter().filter_map(|(key, text)| Some((key.to_owned(), text?.into())));
    given.collect()
}

fn metadata_text<'a>(body: &'a Value, key: &str) -> Option<&'a str> {
    body.get("metadata")?.get(key)?.as_str().filter(|text| !text.is_empty())
}

fn for_each(children: &mut Value, change: &mut dyn FnMut(&mut Value)) -> Result<(), NotAnObject> {
    match children {
        Value::Object(_) => {
            change(children);
            Ok(())
        }
        Value::Array(items) => items.iter_mut().try_for_each(|item| for_each(item, change)),
        Value::Null => Ok(()),
        other => Err(NotAnObject(other.to_string())),
    }
}

/// The map under a key, created if absent.
fn map_at<'a>(parent: &'a mut Value, key: &str) -> &'a mut Map<String, Value> {
    if !parent.get(key).is_some_and(Value::is_object) {
        parent[key] = json!({});
    }
    parent[key].as_object_mut().expect("it was made a map just now")
}

fn owner_references(child: &mut Value) -> &mut Vec<Value> {
    let references =
        map_at(child, "metadata").entry("ownerReferences").or_insert_with(|| json!([]));
    if !references.is_array() {
        *references = json!([]);
    }
    references.as_array_mut().expect("it was made a list just now")
}

fn label_one(object: &mut Value, labels: &Map<String, Value>, is_forced: bool) {
    let metadata = map_at(object, "metadata");
    let mut metadata = Value::Object(std::mem::take(metadata));
    let present = map_at(&mut metadata, "labels");
    for (key, value) in labels {
        if is_forced || !present.contains_key(key) {
            present.insert(key.clone(), value.clone());
        }
    }
    object["metadata"] = metadata;
}

fn resolve_mut<'a>(root: &'a mut Value, path: &FieldPath) -> Option<&'a mut Value> {
    path.keys().try_fold(root, |value, key| value.as_object_mut()?.get_mut(key))
}

#[cfg(test)]
mod tests;
