//! Merge patches that only their own object takes, and none that has its name since.
//!
//! Patches go by name. Servers refuse the uid of another object, and take an equal one for nothing;
//! but beside the status of custom resources they look at no metadata except the version.

use kopf_model::Object;
use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::{Map, Value};

const METADATA: &str = "metadata";

/// A condition on the metadata of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Guard<'a> {
    /// It must have this uid.
    Uid(&'a str),
    /// It must have this version, which is enough to know it: they are never given twice.
    Version(&'a str),
    /// It may be any of this name.
    Nothing,
}

impl<'a> Guard<'a> {
    /// The uid of an object, as far as it has one and the patch itself says nothing of it.
    pub(super) fn by_uid(object: &'a Object, part: &Part<'_>) -> Self {
        let is_free = match part.metadata() {
            None => true,
            Some(Value::Object(fields)) => !fields.contains_key("uid"),
            Some(_) => false,
        };
        match object.uid() {
            "" => Self::Nothing,
            _ if !is_free => Self::Nothing,
            uid => Self::Uid(uid),
        }
    }

    /// The version of an object, as far as it has one.
    pub(super) fn by_version(object: &'a Object) -> Self {
        match object.resource_version() {
            "" => Self::Nothing,
            version => Self::Version(version),
        }
    }

    fn entry(self) -> Option<(&'static str, &'a str)> {
        match self {
            Self::Uid(uid) => Some(("uid", uid)),
            Self::Version(version) => Some(("resourceVersion", version)),
            Self::Nothing => None,
        }
    }
}

/// The part of a merge patch that goes into one request.
pub(super) struct Part<'a>(pub(super) Vec<(&'a String, &'a Value)>);

impl<'a> Part<'a> {
    /// The entries that belong to the part; none if there are none.
    pub(super) fn of(
        merge: &'a Map<String, Value>,
        belongs: impl Fn(&str) -> bool,
    ) -> Option<Self> {
        let entries: Vec<_> = merge.iter().filter(|(key, _)| belongs(key)).collect();
        (!entries.is_empty()).then_some(Self(entries))
    }

    fn metadata(&self) -> Option<&'a Value> {
        self.0.iter().find(|(key, _)| *key == METADATA).map(|(_, value)| *value)
    }
}

/// The body of a request: a patch with its condition, written without a copy of either.
pub(super) struct Guarded<'a> {
    pub(super) part: &'a Part<'a>,
    pub(super) guard: Guard<'a>,
}

impl Serialize for Guarded<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let entries = &self.part.0;
        let Some(condition) = self.guard.entry() else {
            return serializer.collect_map(entries.iter().copied());
        };
        let mut map = serializer.serialize_map(None)?;
        for (key, value) in entries {
            match value {
                Value::Object(fields) if *key == METADATA => {
                    map.serialize_entry(key, &Metadata { condition, fields: Some(fields) })?;
                }
                value => map.serialize_entry(key, value)?,
            }
        }
        if self.part.metadata().is_none() {
            map.serialize_entry(METADATA, &Metadata { condition, fields: None })?;
        }
        map.end()
    }
}

struct Metadata<'a> {
    condition: (&'static str, &'a str),
    fields: Option<&'a Map<String, Value>>,
}

impl Serialize for Metadata<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry(self.condition.0, self.condition.1)?;
        for (key, value) in self.fields.into_iter().flatten() {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests;
