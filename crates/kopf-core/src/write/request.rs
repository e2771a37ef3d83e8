//! One request and its body: JSON patches, and merge patches that are accepted only by their own
//! object and not by another one that has taken its name.
//!
//! Patches address objects by name. Servers reject the uid of another object and ignore an equal
//! one; but with the status of custom resources they accept no metadata except the version.

use kopf_model::Object;
use kopf_model::json::bytes::{push_name, push_string, push_value};
use kopf_model::json_patch::Operation;
use serde_json::{Map, Value};

const METADATA: &str = "metadata";

/// One request to be sent.
#[derive(Debug)]
pub struct Request<'a> {
    /// Whether it goes to the status subresource.
    pub to_status: bool,
    /// Its body.
    pub content: Content<'a>,
}

/// The body of a request.
#[derive(Debug)]
pub enum Content<'a> {
    /// `application/merge-patch+json`, for an object that meets a condition.
    Merge(Part<'a>, Guard<'a>),
    /// `application/json-patch+json`, with a test of the version first.
    Json(Vec<Operation>),
}

impl Content<'_> {
    /// The body as JSON.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Merge(part, guard) => part.to_bytes(*guard),
            Self::Json(operations) => {
                serde_json::to_vec(operations).expect("JSON values are always written")
            }
        }
    }
}

/// A precondition on the metadata of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard<'a> {
    /// It must have this uid.
    Uid(&'a str),
    /// It must have this version, which also identifies the object: versions are never reused.
    Version(&'a str),
    /// It may be any object of this name.
    Nothing,
}

impl<'a> Guard<'a> {
    /// The uid of an object, if it has one and the patch itself does not set it.
    #[must_use]
    pub fn by_uid(object: &'a Object, part: &Part<'_>) -> Self {
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

    /// The version of an object, if it has one.
    #[must_use]
    pub fn by_version(object: &'a Object) -> Self {
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
#[derive(Debug, Default)]
pub struct Part<'a>(Vec<(&'a String, &'a Value)>);

impl<'a> Part<'a> {
    /// These entries of a merge patch.
    pub fn of(entries: impl Iterator<Item = (&'a String, &'a Value)>) -> Self {
        Self(entries.collect())
    }

    /// The entries.
    pub fn iter(&self) -> impl Iterator<Item = (&'a String, &'a Value)> {
        self.0.iter().copied()
    }

    fn metadata(&self) -> Option<&'a Value> {
        self.0.iter().find(|(key, _)| *key == METADATA).map(|(_, value)| *value)
    }

    /// The patch with its precondition as JSON, written without copying either.
    #[must_use]
    pub fn to_bytes(&self, guard: Guard<'_>) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(BYTES_GUESS);
        let condition = guard.entry();
        for (key, value) in &self.0 {
            begin_field(&mut bytes, key);
            match (value, condition) {
                (Value::Object(fields), Some(condition)) if *key == METADATA => {
                    push_metadata(&mut bytes, condition, fields);
                }
                _ => push_value(&mut bytes, value),
            }
        }
        if let (Some(condition), None) = (condition, self.metadata()) {
            begin_field(&mut bytes, METADATA);
            push_metadata(&mut bytes, condition, &Map::new());
        }
        if bytes.is_empty() {
            bytes.push(b'{');
        }
        bytes.push(b'}');
        bytes
    }
}

/// The initial capacity for a patch: enough for the last-handled state of a typical object.
const BYTES_GUESS: usize = 2048;

/// Starts a field of the outermost map; the first field opens the map.
fn begin_field(bytes: &mut Vec<u8>, key: &str) {
    bytes.push(if bytes.is_empty() { b'{' } else { b',' });
    push_name(bytes, key);
}

fn push_metadata(bytes: &mut Vec<u8>, condition: (&str, &str), fields: &Map<String, Value>) {
    bytes.push(b'{');
    push_name(bytes, condition.0);
    push_string(bytes, condition.1);
    for (key, value) in fields {
        bytes.push(b',');
        push_name(bytes, key);
        push_value(bytes, value);
    }
    bytes.push(b'}');
}

#[cfg(test)]
mod tests;
