//! Managed fields and server-side apply.
//!
//! Pure functions on trees and schemas. The REST code calls [`apply`] for apply patches and
//! [`track_update`] for every other write; both return up-to-date [`ManagedFields`], which are kept
//! apart from the trees. Storage, validation and admission are handled elsewhere.

mod configuration;
mod field_set;
pub mod json_text;
mod last_applied;
mod managed_fields;
mod managers;
mod ownership;
mod path;
mod reset;
mod restated;
mod scale;
mod typed;
mod versions;

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use crate::lockstep::{equal_fields, find};
use crate::schema::Schema;
use crate::shape::Shape;
use crate::status_error::Details;
use crate::{Cause, StatusError};
pub use configuration::overlay;
pub use managed_fields::ManagedFields;
pub use managers::Malformed;
use managers::{ManagerId, Managers};
use ownership::{Conflict, Force, Write};
pub use restated::Restated;
pub use scale::{object_owners, scale_owners, track_scale};
use typed::TypeRef;
pub use versions::{
    Claim, Elsewhere, of_group, other_versions, resets_managers, settle, undeclared,
};

/// The updater that owns the fields that existed before the first apply.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// The author of a write, with the endpoint and the time of the write.
#[derive(Debug, Clone)]
pub struct Manager<'a> {
    /// The field manager's name.
    pub name: &'a str,
    /// The apiVersion of the request.
    pub api_version: &'a str,
    /// The kind that the endpoint serves.
    pub kind: &'a str,
    /// The subresource, empty for the main resource.
    pub subresource: &'a str,
    /// Whether the resource has a status subresource.
    pub has_status: bool,
    /// Whether objects have other versions, which may have other fields.
    pub has_versions: bool,
    /// The time of the write, in canonical form.
    pub time: &'a str,
}

/// An object and its managed fields.
#[derive(Debug, Clone, Copy)]
pub struct Owned<'a> {
    /// The object without managed fields.
    pub object: &'a Value,
    /// Its managed fields.
    pub managed: &'a ManagedFields,
}

impl Owned<'_> {
    /// A copy of the object with its managed fields.
    pub fn whole(self) -> Value {
        let mut object = self.object.clone();
        self.managed.put_into(&mut object);
        object
    }
}

impl Manager<'_> {
    /// The object with nothing set, which a new object is compared with.
    fn empty_object(&self) -> Value {
        let mut object = Shape::of(self.api_version, self.kind)
            .map_or_else(|| Value::Object(Map::new()), Shape::empty);
        object["apiVersion"] = json!(self.api_version);
        object["kind"] = json!(self.kind);
        object
    }
}

/// Returns the managed fields of `object` after a create, update or patch, and removes those that
/// the client sent.
///
/// `old` is the stored object (`None` on creation). Both are in the requested version.
pub fn track_update(
    manager: &Manager<'_>,
    schema: Option<&Schema>,
    old: Option<Owned<'_>>,
    object: &mut Value,
) -> ManagedFields {
    let given = managed_fields::take_tree(object);
    let mut managers = present_managers(manager, old, given.as_ref());
    // Untracked objects stay untracked until a client applies to them.
    if managers.is_empty() && old.is_some() {
        return ManagedFields::default();
    }
    let ignored = reset::ignored_fields(manager);
    let write = Write {
        of: TypeRef::root(schema),
        api_version: manager.api_version,
        ignored: &ignored,
        time: manager.time,
        has_versions: manager.has_versions,
    };
    let id = ManagerId::updater(manager.name, manager.api_version, manager.subresource);
    // Objects of built-in kinds are never completely empty.
    let is_from_nothing = old.is_none()
        && managers.is_empty()
        && Shape::of(manager.api_version, manager.kind).is_none();
    if !is_from_nothing || !ownership::create(&write, &mut managers, &id, object) {
        let old_tree =
            old.map_or_else(|| Cow::Owned(manager.empty_object()), |old| Cow::Borrowed(old.object));
        ownership::update(&write, &mut managers, &id, &old_tree, object);
    }
    managers.merge_old_updaters();
    let tracked = managers.write();
    match old {
        // A new timestamp alone is not a change.
        Some(old)
            if is_same_content(old.object, object) && tracked.is_same_but_times(old.managed) =>
        {
            old.managed.clone()
        }
        _ => tracked,
    }
}

/// The result of an apply: the new object and its managed fields.
///
/// `live` is `None` when the object does not exist yet. If the result equals it, nothing changes.
pub fn apply(
    manager: &Manager<'_>,
    force: bool,
    schema: Option<&Schema>,
    live: Option<Owned<'_>>,
    applied: &Value,
) -> Result<(Value, ManagedFields), StatusError> {
    check_applied(manager, applied)?;
    let of = TypeRef::root(schema);
    let problems = typed::check(applied, of, false);
    if !problems.is_empty() {
        return Err(mistyped(applied, &problems));
    }
    let ignored = reset::ignored_fields(manager);
    let write = Write {
        of,
        api_version: manager.api_version,
        ignored: &ignored,
        time: manager.time,
        has_versions: manager.has_versions,
    };
    let mut managers =
        live.and_then(|live| Managers::decode_stored(live.managed)).unwrap_or_default();
    let live_tree =
        live.map_or_else(|| Cow::Owned(manager.empty_object()), |live| Cow::Borrowed(live.object));
    if managers.is_empty() && live.is_some() {
        let id = ManagerId::updater(BEFORE_FIRST_APPLY, manager.api_version, manager.subresource);
        let empty = manager.empty_object();
        ownership::update(&write, &mut managers, &id, &empty, &live_tree);
    }
    let id = ManagerId::applier(manager.name, manager.subresource);
    let force = match force {
        true => Force::All,
        false => Force::Only(last_applied::claimed(manager, of, &live_tree)),
    };
    let result = ownership::apply(&write, &mut managers, &id, &live_tree, applied, &force)
        .map_err(|conflicts| conflict_error(&conflicts))?;
    let mut object = result.unwrap_or_else(|| live_tree.into_owned());
    if !object["metadata"].is_object() {
        object["metadata"] = json!({});
    }
    last_applied::renew(manager, applied, &mut object);
    if let Some(schema) = schema
        && Shape::of(manager.api_version, manager.kind).is_some()
    {
        crate::schema::check_conversion(schema, &object)
            .map_err(|problem| unconvertible(applied, &problem))?;
    }
    Ok((object, managers.write()))
}

/// The managers before the write: those in the request, or else the stored ones.
fn present_managers<'old>(
    manager: &Manager<'_>,
    old: Option<Owned<'old>>,
    given: Option<&Value>,
) -> Managers<'old> {
    let stored = || Managers::decode_stored(old?.managed).filter(|m| !m.is_empty());
    // Subresources cannot set managed fields.
    if !manager.subresource.is_empty() {
        return stored().unwrap_or_default();
    }
    if given.is_some_and(versions::is_reset) {
        return Managers::default();
    }
    let given = Managers::decode(given).ok().filter(|managers| !managers.is_empty());
    given.or_else(stored).unwrap_or_default()
}

/// Whether two objects are equal apart from their version.
fn is_same_content(left: &Value, right: &Value) -> bool {
    let (Value::Object(left), Value::Object(right)) = (left, right) else { return false };
    let is_same_metadata = match (find(left, "metadata"), find(right, "metadata")) {
        (Some(Value::Object(left)), Some(Value::Object(right))) => {
            equal_fields(left, right, &["resourceVersion"])
        }
        (left, right) => left == right,
    };
    is_same_metadata && equal_fields(left, right, &["metadata"])
}

fn check_applied(manager: &Manager<'_>, applied: &Value) -> Result<(), StatusError> {
    let text = |name: &str| applied.get(name).and_then(Value::as_str).unwrap_or_default();
    if text("apiVersion") != manager.api_version || text("kind") != manager.kind {
        let shown = shown_kind(text("apiVersion"), text("kind"));
        return Err(StatusError::bad_request(format!("invalid object type: {shown}")));
    }
    match applied.pointer("/metadata/managedFields") {
        None | Some(Value::Null) => Ok(()),
        Some(_) => Err(StatusError::bad_request("metadata.managedFields must be nil")),
    }
}

/// Group, version and kind as Go prints them: `/v1, Kind=ConfigMap`.
pub fn shown_kind(api_version: &str, kind: &str) -> String {
    let slash = if api_version.contains('/') { "" } else { "/" };
    format!("{slash}{api_version}, Kind={kind}")
}

/// Type errors, listed as upstream lists them.
fn listed(problems: &[String]) -> String {
    match problems {
        [single] => single.clone(),
        many => format!("errors:\n  {}", many.join("\n  ")),
    }
}

fn mistyped(applied: &Value, problems: &[String]) -> StatusError {
    let problems = listed(problems);
    let shown = shown_object(applied);
    let message = format!("failed to create typed patch object ({shown}): {problems}");
    StatusError::new(500, "", message)
}

/// The merged object cannot be decoded into its kind, for example because of a malformed quantity.
fn unconvertible(applied: &Value, problem: &str) -> StatusError {
    let shown = shown_object(applied);
    let kind = shown.rsplit("; ").next().unwrap_or_default();
    StatusError::new(
        500,
        "",
        format!(
            "failed to convert new object ({shown}) to proper version: unable to convert \
             unstructured object to {kind}: {problem}"
        ),
    )
}

/// `namespace/name; /v1, Kind=ConfigMap`.
fn shown_object(object: &Value) -> String {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let kind = shown_kind(text("/apiVersion"), text("/kind"));
    format!("{}/{}; {kind}", text("/metadata/namespace"), text("/metadata/name"))
}

fn conflict_error(conflicts: &[Conflict]) -> StatusError {
    let message = match conflicts {
        [single] => {
            let manager = single.manager.shown();
            format!("Apply failed with 1 conflict: conflict with {manager}: {}", single.path)
        }
        many => {
            let mut lines = Vec::new();
            let mut last = None;
            for conflict in many {
                if last != Some(&conflict.manager) {
                    lines.push(format!("conflicts with {}:", conflict.manager.shown()));
                    last = Some(&conflict.manager);
                }
                lines.push(format!("- {}", conflict.path));
            }
            format!("Apply failed with {} conflicts: {}", many.len(), lines.join("\n"))
        }
    };
    let causes = conflicts.iter().map(|conflict| Cause {
        reason: "FieldManagerConflict".to_owned(),
        message: format!("conflict with {}", conflict.manager.shown()),
        field: conflict.path.clone(),
    });
    let mut error = StatusError::new(409, "Conflict", message);
    error.details = Some(Box::new(Details { causes: causes.collect(), ..Details::default() }));
    error
}

#[cfg(test)]
mod tests;
