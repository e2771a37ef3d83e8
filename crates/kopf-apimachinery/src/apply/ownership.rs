//! How a write moves ownership of fields between managers.
//!
//! Pure. An update takes the fields that it changes. An apply owns exactly the fields that it sets.
//! It conflicts with other owners of fields that it would change, and removes fields that it set
//! last time, does not set now, and that nobody else owns.

use serde_json::Value;

use super::field_set::FieldSet;
use super::managers::{Fields, ManagerId, Managers, Ownership};
use super::typed::compare::{Comparison, compare, same};
use super::typed::owned::{field_set, with_named_fields};
use super::typed::written::{Ownerless, write_new};
use super::typed::{TypeRef, merge::merge, remove::remove};

/// The parts of a write that ownership depends on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Write<'a> {
    /// The type of the object.
    pub of: TypeRef<'a>,
    /// The apiVersion of the request.
    pub api_version: &'a str,
    /// Fields that this endpoint ignores.
    pub ignored: &'a FieldSet,
    /// The time of the write.
    pub time: &'a str,
    /// Whether there are other versions, which may have other fields.
    pub has_versions: bool,
}

impl Write<'_> {
    /// The manager's entry if it owns these fields through this write.
    fn ownership<'fields>(&self, fields: Fields<'fields>) -> Ownership<'fields> {
        let time = Some(self.time.to_owned());
        Ownership { fields, api_version: self.api_version.to_owned(), time }
    }
}

/// A field that an apply would change although another manager owns it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Conflict {
    pub manager: ManagerId,
    pub path: String,
}

/// What an apply may take from other managers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Force {
    /// Every field that it sets.
    All,
    /// Only these fields.
    Only(FieldSet),
}

/// Paths that never have an owner.
fn ownerless() -> &'static FieldSet {
    static OWNERLESS: std::sync::OnceLock<FieldSet> = std::sync::OnceLock::new();
    OWNERLESS.get_or_init(|| {
        let mut set = FieldSet::of_fields(&[&["metadata"]]);
        for name in OWNERLESS_NAMES.root {
            set.extend(&FieldSet::of_fields(&[&[name]]));
        }
        for name in OWNERLESS_NAMES.metadata {
            set.extend(&FieldSet::of_fields(&[&["metadata", name]]));
        }
        set
    })
}

const OWNERLESS_NAMES: Ownerless = Ownerless {
    root: &["apiVersion", "kind"],
    metadata: &[
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "clusterName",
        "generation",
        "managedFields",
        "resourceVersion",
    ],
};

/// Gives all fields of a newly created object to its creator if no fields have owners yet. Returns
/// whether it did; if not, the object must be compared with an empty one.
pub(crate) fn create(
    write: &Write<'_>,
    managers: &mut Managers<'_>,
    id: &ManagerId,
    object: &Value,
) -> bool {
    let Some(text) = write_new(object, write.of, write.ignored, &OWNERLESS_NAMES) else {
        return false;
    };
    if text != b"{}" {
        managers.entries.insert(id.clone(), write.ownership(Fields::Text(text.into())));
    }
    true
}

/// Gives the changed fields to an updater and takes them from all other managers.
pub(crate) fn update(
    write: &Write<'_>,
    managers: &mut Managers<'_>,
    id: &ManagerId,
    old: &Value,
    new: &Value,
) {
    let Comparison { mut added, modified, mut removed } = compare(old, new, write.of);
    added.absorb(modified);
    let mut changed = added;
    changed.subtract_subtrees(write.ignored);
    removed.subtract_subtrees(write.ignored);
    // A manager that writes the same fields again keeps its entry.
    let is_own = |own: &Ownership<'_>| {
        own.time.is_some()
            && own.fields.is_unaffected_by(&changed, &removed)
            && changed.intersection(ownerless()).is_empty()
    };
    let is_kept = managers.entries.get(id).is_some_and(is_own);
    take_changes(managers, is_kept.then_some(id), [&changed, &removed]);
    changed.subtract(ownerless());
    if changed.is_empty() {
        return;
    }
    if is_kept && let Some(own) = managers.entries.get_mut(id) {
        own.time = Some(write.time.to_owned());
        return;
    }
    let fields = match managers.entries.remove(id) {
        Some(mut previous) => {
            previous.fields.set_mut().absorb(changed);
            previous.fields
        }
        None => changed.into(),
    };
    managers.entries.insert(id.clone(), write.ownership(fields));
}

/// Takes changed and removed fields from every manager except one.
fn take_changes(managers: &mut Managers<'_>, except: Option<&ManagerId>, lost: [&FieldSet; 2]) {
    if lost.iter().all(|lost| lost.is_empty()) {
        return;
    }
    for (id, ownership) in &mut managers.entries {
        if Some(id) != except {
            lost.iter().for_each(|lost| ownership.fields.subtract(lost));
        }
    }
    managers.drop_empty();
}

/// Merges `config` into `live`; the new object is `None` when nothing changes.
pub(crate) fn apply(
    write: &Write<'_>,
    managers: &mut Managers<'_>,
    id: &ManagerId,
    live: &Value,
    config: &Value,
    force: &Force,
) -> Result<Option<Value>, Vec<Conflict>> {
    let merged = merge(live, config, write.of);
    let stated = field_set(config, write.of).without_subtrees(write.ignored);
    let previous = managers.entries.remove(id);
    let time = previous.as_ref().and_then(|previous| previous.time.clone());
    let fields = stated.into();
    let ownership = Ownership { fields, api_version: write.api_version.to_owned(), time };
    managers.entries.insert(id.clone(), ownership);
    let object = match &previous {
        // Fields set in another version can only be removed by a caller that can convert the
        // object.
        Some(last) if write.has_versions && last.api_version != write.api_version => merged,
        Some(previous) => prune(merged, managers, &previous.fields.set(), write.of),
        None => merged,
    };
    let comparison = compare(live, &object, write.of).without(write.ignored);
    if let Force::Only(claimed) = force {
        let contested = comparison.changed().difference(claimed);
        let conflicts = conflicts(managers, id, &contested);
        if !conflicts.is_empty() {
            return Err(conflicts);
        }
    }
    take_changes(managers, Some(id), [&comparison.changed(), &comparison.removed]);
    let is_changed = !same(live, &object);
    if let Some(ownership) = managers.entries.get_mut(id) {
        ownership.fields.subtract(ownerless());
        if is_changed {
            ownership.time = Some(write.time.to_owned());
        }
    }
    managers.drop_empty();
    Ok(is_changed.then_some(object))
}

fn conflicts(managers: &Managers<'_>, id: &ManagerId, changed: &FieldSet) -> Vec<Conflict> {
    let mut conflicts = Vec::new();
    for (other, ownership) in &managers.entries {
        if other == id {
            continue;
        }
        let contested = ownership.fields.set().intersection(changed).paths();
        conflicts
            .extend(contested.into_iter().map(|path| Conflict { manager: other.clone(), path }));
    }
    conflicts
}

/// Removes the fields that the applier set last time, unless somebody owns them now.
fn prune(merged: Value, managers: &Managers<'_>, last: &FieldSet, of: TypeRef<'_>) -> Value {
    if last.is_empty() {
        return merged;
    }
    let last = with_named_fields(last, of);
    let mut owned = FieldSet::default();
    for ownership in managers.entries.values() {
        owned.extend(&ownership.fields.set());
    }
    let owned = with_named_fields(&owned, of);
    let all = with_named_fields(&field_set(&merged, of), of);
    let without_last = remove(&merged, &last, of);
    let kept = with_named_fields(&field_set(&without_last, of), of).union(&owned);
    let with_owned = remove(&merged, &all.difference(&kept), of);
    // Restores fields that were removed although the applier never set them.
    let left = with_named_fields(&field_set(&with_owned, of), of);
    remove(&merged, &all.difference(&left).intersection(&last), of)
}
