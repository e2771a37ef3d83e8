//! Who owns which fields of an object: the decoded form of `metadata.managedFields`.
//!
//! Owns decoding, encoding with its order, and the limit on old updaters. What ownership means
//! for a write is the matter of `ownership`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::field_set::FieldSet;
use crate::lockstep::find;

/// How many entries with operation Update may exist before the oldest are merged.
const UPDATERS_MAX: usize = 10;

/// The name under which the oldest updaters are merged.
const OLD_UPDATERS: &str = "ancient-changes";

/// What tells one entry from another.
///
/// Appliers are the same across versions, so their version is not part of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ManagerId {
    pub(crate) name: String,
    pub(crate) is_applier: bool,
    /// Empty for appliers.
    pub(crate) api_version: String,
    pub(crate) subresource: String,
}

/// One entry: which fields, in which version, since when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ownership<'a> {
    pub(crate) fields: Fields<'a>,
    pub(crate) api_version: String,
    pub(crate) time: Option<String>,
}

/// All entries of one object.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Managers<'a> {
    pub(crate) entries: BTreeMap<ManagerId, Ownership<'a>>,
}

/// The fields of one entry; most writes change none of most entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fields<'a> {
    /// As in this entry of the stored object.
    Stored(&'a Value),
    /// Decoded, and maybe changed.
    Set(FieldSet),
}

impl From<FieldSet> for Fields<'_> {
    fn from(set: FieldSet) -> Self {
        Self::Set(set)
    }
}

impl Fields<'_> {
    /// The fields as a set.
    pub(crate) fn set(&self) -> Cow<'_, FieldSet> {
        match self {
            Self::Stored(entry) => {
                Cow::Owned(FieldSet::decode(fields_of(entry)).unwrap_or_default())
            }
            Self::Set(set) => Cow::Borrowed(set),
        }
    }

    /// The fields as a set to be changed.
    pub(crate) fn set_mut(&mut self) -> &mut FieldSet {
        if let Self::Stored(_) = self {
            *self = Self::Set(self.set().into_owned());
        }
        match self {
            Self::Set(set) => set,
            Self::Stored(_) => unreachable!("it was just made a set"),
        }
    }

    /// Removes all these fields.
    pub(crate) fn subtract(&mut self, lost: &FieldSet) {
        match self {
            Self::Stored(entry) if !lost.meets(fields_of(entry)) => {}
            _ => self.set_mut().subtract(lost),
        }
    }

    /// Whether these are stored fields that stay the same when somebody who owns them changes
    /// some fields and removes others.
    pub(crate) fn outlive(&self, changed: &FieldSet, removed: &FieldSet) -> bool {
        let Self::Stored(entry) = self else { return false };
        let fields = fields_of(entry);
        changed.is_within(fields) && !removed.meets(fields)
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::Stored(entry) => fields_of(entry).as_object().is_none_or(Map::is_empty),
            Self::Set(set) => set.is_empty(),
        }
    }
}

fn fields_of(entry: &Value) -> &Value {
    entry.get("fieldsV1").unwrap_or(&Value::Null)
}

impl ManagerId {
    /// An entry that applies.
    pub(crate) fn applier(name: &str, subresource: &str) -> Self {
        Self {
            name: named(name),
            is_applier: true,
            api_version: String::new(),
            subresource: subresource.to_owned(),
        }
    }

    /// An entry that updates.
    pub(crate) fn updater(name: &str, api_version: &str, subresource: &str) -> Self {
        Self {
            name: named(name),
            is_applier: false,
            api_version: api_version.to_owned(),
            subresource: subresource.to_owned(),
        }
    }

    /// The manager as conflict texts name it.
    pub(crate) fn shown(&self) -> String {
        let mut text = format!("{:?}", self.name);
        if !self.subresource.is_empty() {
            text = format!("{text} with subresource {:?}", self.subresource);
        }
        if !self.is_applier {
            text = format!("{text} using {}", self.api_version);
        }
        text
    }

    fn operation(&self) -> &'static str {
        if self.is_applier { "Apply" } else { "Update" }
    }
}

fn named(name: &str) -> String {
    if name.is_empty() { "unknown".to_owned() } else { name.to_owned() }
}

impl<'a> Managers<'a> {
    /// Decodes `metadata.managedFields`; `None` when an entry is malformed.
    pub(crate) fn decode(entries: Option<&Value>) -> Option<Managers<'static>> {
        Managers::decode_with(entries, |entry| {
            FieldSet::decode(fields_of(entry)).ok().map(Fields::from)
        })
    }

    /// Decodes what [`Managers::store`] once wrote, but for the fields that nobody asks for.
    pub(crate) fn decode_stored(entries: Option<&'a Value>) -> Option<Self> {
        Self::decode_with(entries, |entry| Some(Fields::Stored(entry)))
    }

    fn decode_with<'entry, 'fields>(
        entries: Option<&'entry Value>,
        fields_of: impl Fn(&'entry Value) -> Option<Fields<'fields>>,
    ) -> Option<Managers<'fields>> {
        let mut managers = Managers::default();
        let entries = match entries {
            None | Some(Value::Null) => return Some(managers),
            Some(Value::Array(entries)) => entries,
            Some(_) => return None,
        };
        for entry in entries {
            let field = |name: &str| find(entry.as_object()?, name);
            let text = |name: &str| field(name).and_then(Value::as_str).unwrap_or_default();
            let is_applier = match text("operation") {
                "Apply" => true,
                "Update" => false,
                _ => return None,
            };
            if text("fieldsType") != "FieldsV1" {
                return None;
            }
            let fields = fields_of(entry)?;
            let id = if is_applier {
                ManagerId::applier(text("manager"), text("subresource"))
            } else {
                ManagerId::updater(text("manager"), text("apiVersion"), text("subresource"))
            };
            let time = field("time").and_then(Value::as_str).map(str::to_owned);
            let api_version = text("apiVersion").to_owned();
            managers.entries.insert(id, Ownership { fields, api_version, time });
        }
        Some(managers)
    }

    /// The entries as `metadata.managedFields`, in the order of the real server.
    pub(crate) fn encode(&self) -> Vec<Value> {
        let mut entries: Vec<(&ManagerId, &Ownership<'_>)> = self.entries.iter().collect();
        entries.sort_by(|(left_id, left), (right_id, right)| {
            let key = |id: &ManagerId| (id.name.clone(), id.subresource.clone());
            (left_id.operation().cmp(right_id.operation()))
                // Canonical times sort as texts; no time is the oldest.
                .then_with(|| left.time.cmp(&right.time))
                .then_with(|| left_id.name.cmp(&right_id.name))
                .then_with(|| left.api_version.cmp(&right.api_version))
                .then_with(|| key(left_id).cmp(&key(right_id)))
        });
        entries.into_iter().map(|(id, ownership)| encode_entry(id, ownership)).collect()
    }

    /// Writes the entries into an object; no entries means no field.
    pub(crate) fn store(&self, object: &mut Value) {
        let entries = self.encode();
        let Some(Value::Object(metadata)) = object.get_mut("metadata") else { return };
        if entries.is_empty() {
            metadata.shift_remove("managedFields");
        } else {
            metadata.insert("managedFields".to_owned(), Value::Array(entries));
        }
    }

    /// Whether nobody owns anything.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Drops entries that own nothing.
    pub(crate) fn drop_empty(&mut self) {
        self.entries.retain(|_, ownership| !ownership.fields.is_empty());
    }

    /// Merges the oldest updaters until there are few enough.
    pub(crate) fn merge_old_updaters(&mut self) {
        if self.entries.len() <= UPDATERS_MAX {
            return;
        }
        let mut updaters: Vec<(Option<String>, ManagerId)> = self
            .entries
            .iter()
            .filter(|(id, _)| !id.is_applier)
            .map(|(id, ownership)| (ownership.time.clone(), id.clone()))
            .collect();
        let mut excess = updaters.len().saturating_sub(UPDATERS_MAX);
        updaters.sort();
        let mut first_of_version: BTreeMap<String, ManagerId> = BTreeMap::new();
        for (time, id) in updaters {
            if excess == 0 {
                break;
            }
            let version = id.api_version.clone();
            let Some(first) = first_of_version.get(&version) else {
                first_of_version.insert(version, id);
                continue;
            };
            let bucket = ManagerId::updater(OLD_UPDATERS, &version, "");
            if !self.entries.contains_key(&bucket)
                && let Some(ownership) = self.entries.remove(first)
            {
                self.entries.insert(bucket.clone(), ownership);
            }
            let merged = if id == bucket { None } else { self.entries.remove(&id) };
            if let (Some(merged), Some(target)) = (merged, self.entries.get_mut(&bucket)) {
                target.fields.set_mut().extend(&merged.fields.set());
                target.time = time;
                excess -= 1;
            }
        }
    }
}

fn encode_entry(id: &ManagerId, ownership: &Ownership<'_>) -> Value {
    let fields = match &ownership.fields {
        Fields::Stored(entry) => {
            let mut entry = Value::clone(entry);
            if let (Some(time), Some(Value::String(stored))) =
                (&ownership.time, entry.get_mut("time"))
            {
                stored.clone_from(time);
            }
            return entry;
        }
        Fields::Set(set) => set,
    };
    let mut entry = Map::with_capacity(7);
    let mut text = |name: &str, value: &str| {
        entry.insert(name.to_owned(), Value::from(value));
    };
    text("manager", &id.name);
    text("operation", id.operation());
    text("apiVersion", &ownership.api_version);
    if let Some(time) = &ownership.time {
        text("time", time);
    }
    text("fieldsType", "FieldsV1");
    entry.insert("fieldsV1".to_owned(), fields.encode());
    if !id.subresource.is_empty() {
        entry.insert("subresource".to_owned(), Value::from(id.subresource.as_str()));
    }
    Value::Object(entry)
}

#[cfg(test)]
mod tests;
