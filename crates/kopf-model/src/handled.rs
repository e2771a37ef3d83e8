//! The state of an object for which a handler has finished, as stored in its progress record.
//!
//! Kopf's records have no such field, and Kopf ignores it. The state is stored as its differences
//! from another state on the object (the anchor), or completely if there is none. It is a list,
//! which merge patches replace as a whole: `[digest, "changes", [[path, value], [path]]]`,
//! `[digest, "state", {...}]` or `[digest]`; long content is compressed (`"state+zstd"`).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use blake2::Blake2bVar;
use blake2::digest::{Update as _, VariableOutput as _};
use serde_json::{Number, Value, json};

use crate::diff::Diff;
use crate::essence::Essence;
use crate::field::FieldPath;
use crate::json::deep;

/// Longer content is compressed.
const COMPRESSED_FROM: usize = 4 * 1024;
/// If a complete state is longer than this after compression, only its digest is stored. A complete
/// state is never stored together with the last-handled state, which may use most of the space for
/// annotations.
const STATE_MAX: usize = 48 * 1024;
/// The same limit for differences, which are stored together with the last-handled state.
const CHANGES_MAX: usize = 6 * 1024;
const DECOMPRESSED_MAX: usize = 16 * 1024 * 1024;
const COMPRESSION_LEVEL: i32 = 3;

/// The state of an object for which a handler has finished.
#[derive(Clone, Debug)]
pub enum HandledState {
    /// The complete state.
    Known(Essence),
    /// Only its digest, because the state was too large to store or its anchor is gone.
    Digest(String),
}

impl HandledState {
    /// Whether this is the same state, by the rules of [`Diff`].
    #[must_use]
    pub fn is(&self, other: &Essence) -> bool {
        match self {
            Self::Known(essence) => is_same(essence, other),
            Self::Digest(digest) => *digest == digest_of(other),
        }
    }

    /// The state, if it is known.
    #[must_use]
    pub fn essence(&self) -> Option<&Essence> {
        match self {
            Self::Known(essence) => Some(essence),
            Self::Digest(_) => None,
        }
    }

    /// The stored form; without an anchor, the complete state is stored.
    #[must_use]
    pub fn encode(&self, anchor: Option<&Essence>) -> Value {
        let essence = match self {
            Self::Known(essence) => essence,
            Self::Digest(digest) => return json!([digest]),
        };
        let digest = digest_of(essence);
        let (form, content, max) = match anchor {
            Some(anchor) => ("changes", changes(anchor, essence), CHANGES_MAX),
            None => ("state", essence.value().clone(), STATE_MAX),
        };
        let text = content.to_string();
        if text.len() <= COMPRESSED_FROM {
            return json!([digest, form, content]);
        }
        let packed = zstd::bulk::compress(text.as_bytes(), COMPRESSION_LEVEL)
            .map(|packed| STANDARD.encode(packed))
            .unwrap_or_default();
        match (1..=max).contains(&packed.len()) {
            true => json!([digest, format!("{form}+zstd"), packed]),
            false => json!([digest]),
        }
    }

    /// Parses a stored form; `None` if it is not one.
    ///
    /// The digest shows whether the anchor is the one that the state was stored with.
    #[must_use]
    pub fn decode(stored: &Value, anchor: Option<&Essence>) -> Option<Self> {
        let digest = stored.get(0)?.as_str()?;
        let essence = content_of(stored)
            .and_then(|(form, content)| match form {
                "state" => Some(content),
                "changes" => apply(anchor?, &content),
                _ => None,
            })
            .map(Essence::from)
            .filter(|essence| digest_of(essence) == digest);
        Some(essence.map_or_else(|| Self::Digest(digest.to_owned()), Self::Known))
    }

    /// Whether a stored form needs no anchor.
    #[must_use]
    pub fn is_whole(stored: &Value) -> bool {
        stored.get(1).and_then(Value::as_str).is_some_and(|form| form.starts_with("state"))
    }
}

/// The name of the content's form, and the content.
fn content_of(stored: &Value) -> Option<(&str, Value)> {
    let (form, content) = (stored.get(1)?.as_str()?, stored.get(2)?);
    let Some(form) = form.strip_suffix("+zstd") else { return Some((form, content.clone())) };
    let packed = STANDARD.decode(content.as_str()?).ok()?;
    let text = zstd::bulk::decompress(&packed, DECOMPRESSED_MAX).ok()?;
    Some((form, deep::read(&text).ok()?))
}

fn is_same(one: &Essence, other: &Essence) -> bool {
    one.is(other) || one == other || Diff::between(Some(one), Some(other)).is_empty()
}

fn changes(anchor: &Essence, essence: &Essence) -> Value {
    let diff = Diff::between(Some(anchor), Some(essence));
    let items = diff.iter().map(|item| {
        let path: Vec<&str> = item.field.keys().collect();
        match &item.new {
            Some(value) => json!([path, value]),
            None => json!([path]),
        }
    });
    items.collect()
}

fn apply(anchor: &Essence, changes: &Value) -> Option<Value> {
    let mut tree = anchor.value().clone();
    for change in changes.as_array()? {
        let keys: Option<Vec<&str>> =
            change.get(0)?.as_array()?.iter().map(Value::as_str).collect();
        let path = FieldPath::from_keys(keys?);
        match change.get(1) {
            Some(value) => path.set(&mut tree, value.clone()),
            None => remove(&path, &mut tree),
        }
    }
    Some(tree)
}

/// Removes a field and, unlike [`FieldPath::remove`], keeps the maps that become empty.
fn remove(path: &FieldPath, tree: &mut Value) {
    let mut keys = path.keys();
    let Some(last) = keys.next_back() else { return };
    let parent = keys.try_fold(tree, |value, key| value.as_object_mut()?.get_mut(key));
    if let Some(parent) = parent.and_then(Value::as_object_mut) {
        parent.shift_remove(last);
    }
}

/// A digest that is equal for states without differences according to [`Diff`].
fn digest_of(essence: &Essence) -> String {
    let mut digest = [0; 12];
    let mut hasher = Blake2bVar::new(digest.len()).expect("12 bytes is a valid digest size");
    hash(essence.value(), Nulls::Absent, &mut hasher);
    hasher.finalize_variable(&mut digest).expect("the buffer has the digest's size");
    STANDARD.encode(digest)
}

/// How to treat null: in lists, which are compared as a whole, it differs from absence.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Nulls {
    Absent,
    Present,
}

fn hash(value: &Value, nulls: Nulls, hasher: &mut Blake2bVar) {
    match value {
        Value::Object(map) => {
            let counts = |value: &Value| nulls == Nulls::Present || !value.is_null();
            let mut entries: Vec<_> = map.iter().filter(|(_, value)| counts(value)).collect();
            entries.sort_by_key(|(key, _)| *key);
            hasher.update(b"{");
            for (key, value) in entries {
                hasher.update(Value::from(key.as_str()).to_string().as_bytes());
                hash(value, nulls, hasher);
            }
            hasher.update(b"}");
        }
        Value::Array(items) => {
            hasher.update(b"[");
            for item in items {
                hash(item, Nulls::Present, hasher);
                hasher.update(b",");
            }
            hasher.update(b"]");
        }
        Value::Number(number) => hasher.update(number_text(number).as_bytes()),
        other => hasher.update(other.to_string().as_bytes()),
    }
}

/// Floats without a fraction get the text of the equal integer.
fn number_text(number: &Number) -> String {
    match number.as_f64().filter(|_| number.is_f64()) {
        Some(float) if float.fract() == 0.0 => format!("{float:.0}"),
        _ => number.to_string(),
    }
}

#[cfg(test)]
mod tests;
