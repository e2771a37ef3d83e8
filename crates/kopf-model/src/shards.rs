//! Assigns objects to ranges, and stores the table of which member owns which range.
//!
//! The hash is that of KEP-5866 (`shardRange`): 64-bit FNV-1a of the `metadata.uid` or the
//! `metadata.namespace`. The 64-bit space is divided into equal ranges, numbered from 0.

use std::borrow::Cow;

use serde_json::{Value, json};

use crate::json::raw::{Cursor, Malformed};

/// The annotation of a Lease that holds the table.
pub const TABLE_ANNOTATION: &str = "kopf.dev/shards";
/// The label of all Leases of a group of replicas; its value is the name of the group.
pub const GROUP_LABEL: &str = "kopf.dev/shards-of";

/// The maximum number of ranges.
pub const RANGES_MAX: u32 = 1024;

/// 64-bit FNV-1a.
#[must_use]
pub fn hash(text: &[u8]) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    text.iter().fold(OFFSET, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME))
}

/// The field that is hashed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ShardField {
    /// `metadata.uid`: distributes objects evenly.
    #[default]
    Uid,
    /// `metadata.namespace`: keeps the objects of a namespace together.
    Namespace,
}

/// The fields that determine the range of an object, read from its bytes; nothing else is read.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Sighting<'a> {
    /// The uid.
    pub uid: Cow<'a, str>,
    /// The namespace; empty for cluster-scoped objects.
    pub namespace: Cow<'a, str>,
    /// The version.
    pub version: Cow<'a, str>,
}

/// The equal ranges of the hash space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ranges {
    /// The field that is hashed.
    pub field: ShardField,
    count: u32,
}

/// A member of the group in one of its lives. A member that was given up starts a new life.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Member {
    /// The identity, unique to a process.
    pub identity: String,
    /// The number of the life.
    pub life: u64,
}

/// The owners of the ranges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Incremented with every change.
    pub revision: u64,
    /// The ranges.
    pub ranges: Ranges,
    /// The owner of each range, if it has one.
    pub owners: Vec<Option<Member>>,
}

impl ShardField {
    /// The path as written in KEP-5866.
    #[must_use]
    pub fn path(self) -> &'static str {
        match self {
            Self::Uid => "object.metadata.uid",
            Self::Namespace => "object.metadata.namespace",
        }
    }

    /// Parses a path or its last part.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text.strip_prefix("object.metadata.").unwrap_or(text) {
            "uid" => Some(Self::Uid),
            "namespace" => Some(Self::Namespace),
            _ => None,
        }
    }
}

impl<'a> Sighting<'a> {
    /// Reads the bytes of an object; `None` if they are malformed.
    #[must_use]
    pub fn read(raw: &'a [u8]) -> Option<Self> {
        let mut found = Self::default();
        Cursor::new(raw)
            .members(|cursor, key| match key.is("metadata") {
                true => cursor.members(|cursor, key| found.take(cursor, &key.bytes()?)),
                false => cursor.value().map(drop),
            })
            .ok()?;
        Some(found)
    }

    fn take(&mut self, cursor: &mut Cursor<'a>, key: &[u8]) -> Result<(), Malformed> {
        let place = match key {
            b"uid" => &mut self.uid,
            b"namespace" => &mut self.namespace,
            b"resourceVersion" => &mut self.version,
            _ => return cursor.value().map(drop),
        };
        *place = cursor.text()?.read()?;
        Ok(())
    }
}

impl Ranges {
    /// Creates this many ranges; at least one, at most [`RANGES_MAX`].
    #[must_use]
    pub fn new(field: ShardField, count: u32) -> Self {
        Self { field, count: count.clamp(1, RANGES_MAX) }
    }

    /// The number of ranges.
    #[must_use]
    pub fn count(self) -> u32 {
        self.count
    }

    /// The range of an object.
    #[must_use]
    pub fn of(self, uid: &str, namespace: Option<&str>) -> u32 {
        let text = match self.field {
            ShardField::Uid => uid,
            ShardField::Namespace => namespace.unwrap_or_default(),
        };
        self.of_hash(hash(text.as_bytes()))
    }

    /// The range of a hash.
    #[must_use]
    pub fn of_hash(self, hash: u64) -> u32 {
        let range = (u128::from(hash) * u128::from(self.count)) >> 64;
        u32::try_from(range).unwrap_or(self.count - 1)
    }

    /// The first hash of a range; 2^64 for the one after the last.
    #[must_use]
    pub fn start(self, range: u32) -> u128 {
        (u128::from(range) << 64).div_ceil(u128::from(self.count))
    }

    /// The `shardSelector` for some ranges; adjacent ones form one term. `None` if there are no
    /// ranges.
    #[must_use]
    pub fn selector(self, ranges: impl IntoIterator<Item = u32>) -> Option<String> {
        let mut spans: Vec<(u32, u32)> = Vec::new();
        for range in ranges {
            match spans.last_mut() {
                Some((_, end)) if *end == range => *end = range + 1,
                _ => spans.push((range, range + 1)),
            }
        }
        let term = |(start, end): &(u32, u32)| {
            let (path, start, end) = (self.field.path(), self.start(*start), self.start(*end));
            // Servers require exactly 16 digits, except for 2^64.
            format!("shardRange({path}, '{start:#018x}', '{end:#018x}')")
        };
        let terms: Vec<String> = spans.iter().map(term).collect();
        (!terms.is_empty()).then(|| terms.join(" || "))
    }
}

impl Table {
    /// Creates a table without owners.
    #[must_use]
    pub fn empty(ranges: Ranges) -> Self {
        Self { revision: 0, ranges, owners: vec![None; ranges.count() as usize] }
    }

    /// The value of the annotation.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut members: Vec<&Member> = self.owners.iter().flatten().collect();
        members.sort();
        members.dedup();
        let place = |owner: &Option<Member>| {
            let place = owner.as_ref().and_then(|it| members.iter().position(|one| *one == it));
            place.map_or(json!(null), |place| json!(place))
        };
        let owners: Vec<Value> = self.owners.iter().map(place).collect();
        let members: Vec<Value> = members.iter().map(|it| json!([it.identity, it.life])).collect();
        json!({
            "revision": self.revision,
            "field": self.ranges.field.path(),
            "members": members,
            "owners": owners,
        })
        .to_string()
    }

    /// Parses the value of the annotation; `None` if it is malformed.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(text).ok()?;
        let members: Vec<Member> =
            value["members"].as_array()?.iter().map(read_member).collect::<Option<_>>()?;
        let owner = |place: &Value| match place {
            Value::Null => Some(None),
            place => members.get(usize::try_from(place.as_u64()?).ok()?).cloned().map(Some),
        };
        let owners: Vec<Option<Member>> =
            value["owners"].as_array()?.iter().map(owner).collect::<Option<_>>()?;
        let count = u32::try_from(owners.len()).ok().filter(|it| (1..=RANGES_MAX).contains(it))?;
        let ranges = Ranges::new(ShardField::parse(value["field"].as_str()?)?, count);
        Some(Self { revision: value["revision"].as_u64()?, ranges, owners })
    }
}

fn read_member(value: &Value) -> Option<Member> {
    Some(Member { identity: value.get(0)?.as_str()?.to_owned(), life: value.get(1)?.as_u64()? })
}

#[cfg(test)]
mod tests;
