//! Who owns the replicas of an object, as its `Scale` shows it.
//!
//! Pure. The real server applies to a `Scale` with its own managed fields, in its own version, and
//! carries the result over to the object. Updates need only the result.

use serde_json::{Value, json};

use super::field_set::FieldSet;
use super::managers::{ManagerId, Managers, Ownership};
use super::{ManagedFields, Manager};

/// The version of every `Scale`.
const SCALE_VERSION: &str = "autoscaling/v1";
const REPLICAS: [&str; 2] = ["spec", "replicas"];

/// The managed fields of the `Scale` of an object: the managers that own its replicas.
pub fn scale_owners(replicas_path: &[&str], managed: &ManagedFields) -> ManagedFields {
    let of_object = Managers::decode_stored(managed).unwrap_or_default();
    let path = FieldSet::of_fields(&[replicas_path]);
    let mut of_scale = Managers::default();
    for (id, ownership) in &of_object.entries {
        if ownership.fields.set().intersection(&path).is_empty() {
            continue;
        }
        let mut id = id.clone();
        if !id.is_applier {
            SCALE_VERSION.clone_into(&mut id.api_version);
        }
        let fields = FieldSet::of_fields(&[&REPLICAS]).into();
        let (api_version, time) = (SCALE_VERSION.to_owned(), ownership.time.clone());
        of_scale.entries.insert(id, Ownership { fields, api_version, time });
    }
    of_scale.write()
}

/// The managed fields of an object after those of its `Scale` have changed.
///
/// An updater of the `Scale` never is the one of the object, since their versions differ. The real
/// server stores no time in new entries.
pub fn object_owners(
    api_version: &str,
    replicas_path: &[&str],
    managed: &ManagedFields,
    of_scale: &ManagedFields,
) -> ManagedFields {
    let mut of_scale = Managers::decode_stored(of_scale).unwrap_or_default();
    let mut of_object = Managers::decode_stored(managed).unwrap_or_default();
    let path = FieldSet::of_fields(&[replicas_path]);
    for (id, ownership) in &mut of_object.entries {
        let has_path = !ownership.fields.set().intersection(&path).is_empty();
        if has_path && of_scale.entries.remove(id).is_none() {
            ownership.fields.subtract(&path);
        }
    }
    of_object.drop_empty();
    let replicas = FieldSet::of_fields(&[&REPLICAS]);
    for (id, ownership) in of_scale.entries {
        if ownership.fields.set().intersection(&replicas).is_empty() {
            continue;
        }
        let (fields, api_version) = (path.clone().into(), api_version.to_owned());
        of_object.entries.insert(id, Ownership { fields, api_version, time: None });
    }
    of_object.write()
}

/// The managed fields after `/scale` has set the replicas of `object`: the writer now owns them.
///
/// The real server stores no time in such entries.
pub fn track_scale(
    manager: &Manager<'_>,
    replicas_path: &[&str],
    object: &Value,
    managed: &ManagedFields,
) -> ManagedFields {
    let mut managers = Managers::decode_stored(managed).unwrap_or_default();
    let fields = FieldSet::of_fields(&[replicas_path]);
    // Upstream does not track an object whose replicas have no owner.
    if managers.entries.values().all(|entry| entry.fields.set().intersection(&fields).is_empty()) {
        return managed.clone();
    }
    for ownership in managers.entries.values_mut() {
        ownership.fields.subtract(&fields);
    }
    managers.drop_empty();
    // A scale of 0 omits the field in JSON, so it cannot have an owner.
    if object.pointer(&format!("/{}", replicas_path.join("/"))) != Some(&json!(0)) {
        let id = ManagerId::updater(manager.name, manager.api_version, "scale");
        let api_version = manager.api_version.to_owned();
        let fields = fields.into();
        managers.entries.insert(id, Ownership { fields, api_version, time: None });
    }
    managers.write()
}
