//! Who owns which fields of an object: the decoded form of `metadata.managedFields`.
//!
//! Responsible for decoding, ordered encoding, and the limit on old updaters. `ownership` decides
//! what ownership means for a write.

use std::borrow::Cow;
use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::Value;

use super::field_set::FieldSet;
use super::json_text;
use super::managed_fields::ManagedFields;
use crate::encoding::write_string;

/// How many entries with operation Update may exist before the oldest are merged.
const UPDATERS_MAX: usize = 10;

/// The name under which the oldest updaters are merged.
const OLD_UPDATERS: &str = "ancient-changes";

/// Identifies an entry.
///
/// Appliers are the same across versions, so their version is not included.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ManagerId {
    pub name: String,
    pub(crate) is_applier: bool,
    /// Empty for appliers.
    pub api_version: String,
    pub subresource: String,
}

/// One entry: which fields, in which version, since when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ownership<'a> {
    pub fields: Fields<'a>,
    pub api_version: String,
    pub time: Option<String>,
}

/// All entries of one object.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Managers<'a> {
    pub entries: BTreeMap<ManagerId, Ownership<'a>>,
}

/// Why managed fields sent by a client are rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The value is not a list.
    #[error("managed fields must be a list")]
    NoList,
    /// The operation is neither Apply nor Update.
    #[error("operation must be `Apply` or `Update`")]
    Operation,
    /// The entry has no version.
    #[error("apiVersion must not be empty")]
    NoApiVersion,
    /// The fields have no type.
    #[error("missing fieldsType in managed fields entry {0}")]
    NoFieldsType(usize),
    /// The fields have an unknown type.
    #[error("invalid fieldsType {fields_type:?} in managed fields entry {index}")]
    FieldsType {
        /// The type that was sent.
        fields_type: String,
        /// The position of the entry.
        index: usize,
    },
    /// The fields are not a valid field set.
    #[error("error decoding the fields of managed fields entry {0}")]
    Fields(usize),
}

/// The fields of one entry, decoded only on demand: most writes leave most entries unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fields<'a> {
    /// The text of a `fieldsV1`, stored or new.
    Text(Cow<'a, [u8]>),
    /// A decoded set, possibly modified.
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
            Self::Text(text) => Cow::Owned(FieldSet::parse(text).unwrap_or_default()),
            Self::Set(set) => Cow::Borrowed(set),
        }
    }

    /// The fields as a mutable set.
    pub(crate) fn set_mut(&mut self) -> &mut FieldSet {
        if let Self::Text(_) = self {
            *self = Self::Set(self.set().into_owned());
        }
        match self {
            Self::Set(set) => set,
            Self::Text(_) => unreachable!("it was just made a set"),
        }
    }

    /// Removes all these fields.
    pub(crate) fn subtract(&mut self, lost: &FieldSet) {
        match self {
            Self::Text(text) if !lost.intersects(text) => {}
            _ => self.set_mut().subtract(lost),
        }
    }

    /// Whether these are encoded fields that stay the same when their owner changes some fields and
    /// removes others.
    pub(crate) fn is_unaffected_by(&self, changed: &FieldSet, removed: &FieldSet) -> bool {
        let Self::Text(text) = self else { return false };
        changed.is_within(text) && !removed.intersects(text)
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::Text(text) => !text.starts_with(b"{") || **text == *b"{}",
            Self::Set(set) => set.is_empty(),
        }
    }

    fn write(&self, into: &mut Vec<u8>) {
        match self {
            Self::Text(text) if text.is_empty() => into.extend_from_slice(b"{}"),
            Self::Text(text) => into.extend_from_slice(text),
            Self::Set(set) => set.write(into),
        }
    }
}

impl ManagerId {
    /// The id of an applier.
    pub(crate) fn applier(name: &str, subresource: &str) -> Self {
        Self {
            name: named(name),
            is_applier: true,
            api_version: String::new(),
            subresource: subresource.to_owned(),
        }
    }

    /// The id of an updater.
    pub(crate) fn updater(name: &str, api_version: &str, subresource: &str) -> Self {
        Self {
            name: named(name),
            is_applier: false,
            api_version: api_version.to_owned(),
            subresource: subresource.to_owned(),
        }
    }

    /// The manager's name in conflict messages.
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
    /// Decodes `metadata.managedFields` as sent by a client.
    pub(crate) fn decode(entries: Option<&Value>) -> Result<Managers<'static>, Malformed> {
        let mut managers = Managers::default();
        let entries = match entries {
            None | Some(Value::Null) => return Ok(managers),
            Some(Value::Array(entries)) => entries,
            Some(_) => return Err(Malformed::NoList),
        };
        for (index, entry) in entries.iter().enumerate() {
            let text = |name: &str| entry.get(name).and_then(Value::as_str);
            let field = |name: &str| Cow::from(text(name).unwrap_or_default());
            let spelled = Entry {
                manager: field("manager"),
                operation: field("operation"),
                api_version: field("apiVersion"),
                time: text("time").map(Cow::from),
                fields_type: field("fieldsType"),
                subresource: field("subresource"),
            };
            let id = spelled.id(index)?;
            let fields = match entry.get("fieldsV1") {
                None | Some(Value::Null) => FieldSet::default(),
                Some(fields @ Value::Object(_)) => {
                    FieldSet::decode(fields).map_err(|_| Malformed::Fields(index))?
                }
                Some(_) => return Err(Malformed::Fields(index)),
            };
            managers.entries.insert(id, spelled.ownership(fields.into()));
        }
        Ok(managers)
    }

    /// Decodes the output of [`Managers::write`]; the fields are decoded only on demand.
    pub(crate) fn decode_stored(stored: &'a ManagedFields) -> Option<Self> {
        let mut managers = Self::default();
        if stored.is_empty() {
            return Some(managers);
        }
        let mut rest = stored.text().strip_prefix(b"[")?;
        while rest != b"]" {
            let (spelled, fields) = Entry::read(&mut rest)?;
            let id = spelled.id(managers.entries.len()).ok()?;
            managers.entries.insert(id, spelled.ownership(Fields::Text(Cow::Borrowed(fields))));
        }
        Some(managers)
    }

    /// The entries as `metadata.managedFields`, in the order of the real server.
    pub(crate) fn write(&self) -> ManagedFields {
        if self.is_empty() {
            return ManagedFields::default();
        }
        let mut entries: Vec<(&ManagerId, &Ownership<'_>)> = self.entries.iter().collect();
        entries.sort_by(|(left_id, left), (right_id, right)| {
            (left_id.operation().cmp(right_id.operation()))
                // Canonical times sort as text; a missing time is the oldest.
                .then_with(|| left.time.cmp(&right.time))
                .then_with(|| left_id.name.cmp(&right_id.name))
                .then_with(|| left.api_version.cmp(&right.api_version))
                .then_with(|| left_id.subresource.cmp(&right_id.subresource))
        });
        let mut text = Vec::with_capacity(TEXT_BYTES_GUESS);
        for (index, (id, ownership)) in entries.into_iter().enumerate() {
            text.push(if index == 0 { b'[' } else { b',' });
            write_entry(id, ownership, &mut text);
        }
        text.push(b']');
        ManagedFields::from_text(Bytes::from(text))
    }

    /// Whether the two differ only in times.
    pub(crate) fn is_same_but_times(&self, other: &Managers<'_>) -> bool {
        let is_same = |(left_id, left): (&ManagerId, &Ownership<'_>),
                       (right_id, right): (&ManagerId, &Ownership<'_>)| {
            left_id == right_id
                && left.api_version == right.api_version
                && left.fields == right.fields
        };
        self.entries.len() == other.entries.len()
            && self.entries.iter().zip(&other.entries).all(|(left, right)| is_same(left, right))
    }

    /// Whether no fields are owned.
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

/// The initial capacity for a text of unknown length.
const TEXT_BYTES_GUESS: usize = 1024;

/// A decoded entry without its fields.
#[derive(Default)]
struct Entry<'a> {
    manager: Cow<'a, str>,
    operation: Cow<'a, str>,
    api_version: Cow<'a, str>,
    time: Option<Cow<'a, str>>,
    fields_type: Cow<'a, str>,
    subresource: Cow<'a, str>,
}

impl<'a> Entry<'a> {
    /// Takes the next entry of a list and returns it with the text of its fields.
    fn read(rest: &mut &'a [u8]) -> Option<(Self, &'a [u8])> {
        let mut entry = Self::default();
        let mut fields = &b""[..];
        let text = rest.strip_prefix(b",").unwrap_or(rest);
        *rest = text.strip_prefix(b"{")?;
        while let Some((name, value)) = json_text::next_field(rest) {
            let text = || json_text::string(value).unwrap_or_default();
            match name {
                b"manager" => entry.manager = text(),
                b"operation" => entry.operation = text(),
                b"apiVersion" => entry.api_version = text(),
                b"time" => entry.time = json_text::string(value),
                b"fieldsType" => entry.fields_type = text(),
                b"fieldsV1" => fields = value,
                b"subresource" => entry.subresource = text(),
                _ => {}
            }
        }
        *rest = rest.strip_prefix(b"}")?;
        Some((entry, fields))
    }

    /// The id of the entry; `index` is its position, for error messages.
    fn id(&self, index: usize) -> Result<ManagerId, Malformed> {
        let id = match &*self.operation {
            "Apply" => ManagerId::applier(&self.manager, &self.subresource),
            "Update" => ManagerId::updater(&self.manager, &self.api_version, &self.subresource),
            _ => return Err(Malformed::Operation),
        };
        match &*self.fields_type {
            _ if self.api_version.is_empty() => Err(Malformed::NoApiVersion),
            "FieldsV1" => Ok(id),
            "" => Err(Malformed::NoFieldsType(index)),
            other => Err(Malformed::FieldsType { fields_type: other.to_owned(), index }),
        }
    }

    fn ownership<'fields>(self, fields: Fields<'fields>) -> Ownership<'fields> {
        let time = self.time.map(Cow::into_owned);
        Ownership { fields, api_version: self.api_version.into_owned(), time }
    }
}

fn write_entry(id: &ManagerId, ownership: &Ownership<'_>, into: &mut Vec<u8>) {
    let mut text = |name: &[u8], value: &str| {
        into.extend_from_slice(name);
        write_string(into, value);
    };
    text(b"{\"manager\":", &id.name);
    text(b",\"operation\":", id.operation());
    text(b",\"apiVersion\":", &ownership.api_version);
    if let Some(time) = &ownership.time {
        text(b",\"time\":", time);
    }
    into.extend_from_slice(b",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":");
    ownership.fields.write(into);
    if !id.subresource.is_empty() {
        into.extend_from_slice(b",\"subresource\":");
        write_string(into, &id.subresource);
    }
    into.push(b'}');
}

#[cfg(test)]
mod tests;
