//! Who owns which fields of an object: the decoded form of `metadata.managedFields`.
//!
//! Owns decoding, encoding with its order, and the limit on old updaters. What ownership means
//! for a write is the matter of `ownership`.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::field_set::FieldSet;

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
pub(crate) struct Ownership {
    pub(crate) fields: FieldSet,
    pub(crate) api_version: String,
    pub(crate) time: Option<String>,
}

/// All entries of one object.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Managers {
    pub(crate) entries: BTreeMap<ManagerId, Ownership>,
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

impl Managers {
    /// Decodes `metadata.managedFields`; `None` when an entry is malformed.
    pub(crate) fn decode(entries: Option<&Value>) -> Option<Self> {
        let mut managers = Self::default();
        let entries = match entries {
            None | Some(Value::Null) => return Some(managers),
            Some(Value::Array(entries)) => entries,
            Some(_) => return None,
        };
        for entry in entries {
            let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
            let is_applier = match text("operation") {
                "Apply" => true,
                "Update" => false,
                _ => return None,
            };
            if text("fieldsType") != "FieldsV1" {
                return None;
            }
            let fields = FieldSet::decode(entry.get("fieldsV1").unwrap_or(&Value::Null)).ok()?;
            let id = if is_applier {
                ManagerId::applier(text("manager"), text("subresource"))
            } else {
                ManagerId::updater(text("manager"), text("apiVersion"), text("subresource"))
            };
            let time = entry.get("time").and_then(Value::as_str).map(str::to_owned);
            let api_version = text("apiVersion").to_owned();
            managers.entries.insert(id, Ownership { fields, api_version, time });
        }
        Some(managers)
    }

    /// The entries as `metadata.managedFields`, in the order of the real server.
    pub(crate) fn encode(&self) -> Vec<Value> {
        let mut entries: Vec<(&ManagerId, &Ownership)> = self.entries.iter().collect();
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
                target.fields.extend(&merged.fields);
                target.time = time;
                excess -= 1;
            }
        }
    }
}

fn encode_entry(id: &ManagerId, ownership: &Ownership) -> Value {
    let mut entry = Map::new();
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
    entry.insert("fieldsV1".to_owned(), ownership.fields.encode());
    if !id.subresource.is_empty() {
        entry.insert("subresource".to_owned(), Value::from(id.subresource.as_str()));
    }
    Value::Object(entry)
}

#[cfg(test)]
mod tests;
