//! The fingerprint of an essence, taken in one pass over the bytes of an object.
//!
//! Equal fingerprints mean an unchanged essence; different ones mean that it has to be compared
//! properly, since formatting, ignored fields and our own notes may make the difference.

use std::borrow::Cow;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};

use serde::Deserializer;
use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{is_essential_annotation, owned_prefixes};
use crate::field::FieldPath;

/// The fingerprint of an essence; comparable only within one scanner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EssenceHash(u64);

/// Takes fingerprints with one secret seed and one set of fields.
///
/// The seed is random per scanner, so that nobody can construct a change with the same fingerprint.
#[derive(Clone, Debug)]
pub struct EssenceScanner {
    seed: RandomState,
    extra: Vec<FieldPath>,
    own_prefixes: Vec<String>,
    own_keys: Vec<String>,
    notes: Notes,
}

/// Where the last handled state is; not a part of the essence.
#[derive(Clone, Debug, Default)]
struct Notes {
    annotations: Vec<String>,
    fields: Vec<FieldPath>,
}

impl EssenceScanner {
    /// A scanner for essences with these extra fields.
    ///
    /// `own_annotations` are those that the storages remove from essences: exact keys, or prefixes
    /// when they end with a slash.
    #[must_use]
    pub fn new(extra: Vec<FieldPath>, own_annotations: Vec<String>) -> Self {
        let (own_prefixes, own_keys) =
            own_annotations.into_iter().partition(|pattern| pattern.ends_with('/'));
        let notes = Notes::default();
        Self { seed: RandomState::new(), extra, own_prefixes, own_keys, notes }
    }

    /// The same with the places where the last handled state is stored, for [`scan_noted`].
    ///
    /// Annotations whose names begin so count, too: the names of some kinds are longer.
    ///
    /// [`scan_noted`]: Self::scan_noted
    #[must_use]
    pub fn with_notes(mut self, annotations: Vec<String>, fields: Vec<FieldPath>) -> Self {
        self.notes = Notes { annotations, fields };
        self
    }

    /// The fingerprint of the object in these bytes.
    ///
    /// # Errors
    /// Fails when the bytes are not a JSON object.
    pub fn scan(&self, raw: &[u8]) -> Result<EssenceHash, serde_json::Error> {
        self.walk(raw, false)
    }

    /// The fingerprint of the essence together with the stored last handled state.
    ///
    /// Whoever removes or edits that state wants the object to be handled anew.
    ///
    /// # Errors
    /// Fails when the bytes are not a JSON object.
    pub fn scan_noted(&self, raw: &[u8]) -> Result<EssenceHash, serde_json::Error> {
        self.walk(raw, true)
    }

    fn walk(&self, raw: &[u8], is_noted: bool) -> Result<EssenceHash, serde_json::Error> {
        let mut deserializer = serde_json::Deserializer::from_slice(raw);
        let mut hasher = self.seed.build_hasher();
        let walk = Walk { scanner: self, is_noted, hasher: &mut hasher };
        (&mut deserializer).deserialize_map(walk)?;
        Ok(EssenceHash(hasher.finish()))
    }

    fn is_own(&self, annotation: &str) -> bool {
        self.own_keys.iter().any(|key| key == annotation)
            || self.own_prefixes.iter().any(|prefix| annotation.starts_with(prefix.as_str()))
    }

    fn is_note(&self, annotation: &str) -> bool {
        self.notes.annotations.iter().any(|key| annotation.starts_with(key.as_str()))
    }

    fn fields(&self, is_noted: bool) -> impl Iterator<Item = &FieldPath> {
        let notes = if is_noted { self.notes.fields.as_slice() } else { &[] };
        self.extra.iter().chain(notes)
    }

    fn wants(&self, stanza: &str, is_noted: bool) -> bool {
        self.fields(is_noted).any(|field| field.keys().next() == Some(stanza))
    }

    /// Takes the extra fields at or below a stanza into the fingerprint.
    fn hash_extra(
        &self,
        path: &[&str],
        value: &RawValue,
        is_noted: bool,
        hasher: &mut impl Hasher,
    ) -> Result<(), serde_json::Error> {
        for field in self.fields(is_noted) {
            if !path.iter().copied().eq(field.keys().take(path.len())) {
                continue;
            }
            let mut found = Some(value);
            for key in field.keys().skip(path.len()) {
                found = found.map(|value| member(value, key)).transpose()?.flatten();
            }
            if let Some(value) = found {
                (3_u8, field, value.get()).hash(hasher);
            }
        }
        Ok(())
    }
}

/// The member of a map in raw JSON, or none when it is absent or this is not a map.
fn member<'a>(value: &'a RawValue, key: &str) -> Result<Option<&'a RawValue>, serde_json::Error> {
    if !value.get().starts_with('{') {
        return Ok(None);
    }
    let mut deserializer = serde_json::Deserializer::from_str(value.get());
    (&mut deserializer).deserialize_map(Member(key))
}

struct Member<'k>(&'k str);

impl<'de> Visitor<'de> for Member<'_> {
    type Value = Option<&'de RawValue>;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(key) = map.next_key_seed(Text)? {
            if key == self.0 {
                found = Some(map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

/// Walks over the top level of an object.
struct Walk<'s, H> {
    scanner: &'s EssenceScanner,
    is_noted: bool,
    hasher: &'s mut H,
}

impl<'de, H: Hasher> Visitor<'de> for Walk<'_, H> {
    type Value = ();

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a Kubernetes object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key_seed(Text)? {
            match &*key {
                "metadata" => map.next_value_seed(Metadata {
                    scanner: self.scanner,
                    is_noted: self.is_noted,
                    hasher: &mut *self.hasher,
                })?,
                stanza @ ("apiVersion" | "kind" | "status") => {
                    if self.scanner.wants(stanza, self.is_noted) {
                        let value: &RawValue = map.next_value()?;
                        self.scanner
                            .hash_extra(&[stanza], value, self.is_noted, self.hasher)
                            .map_err(A::Error::custom)?;
                    } else {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
                other => {
                    let value: &RawValue = map.next_value()?;
                    (0_u8, other, value.get()).hash(self.hasher);
                }
            }
        }
        Ok(())
    }
}

/// Walks over the metadata of an object.
struct Metadata<'s, H> {
    scanner: &'s EssenceScanner,
    is_noted: bool,
    hasher: &'s mut H,
}

impl<'de, H: Hasher> DeserializeSeed<'de> for Metadata<'_, H> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, H: Hasher> Visitor<'de> for Metadata<'_, H> {
    type Value = ();

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("metadata")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { scanner, is_noted, hasher } = self;
        let wants_extra = scanner.wants("metadata", is_noted);
        while let Some(key) = map.next_key_seed(Text)? {
            match &*key {
                // The usual case is read only once: annotations are often half of the object.
                "annotations" if !wants_extra => {
                    let entries = map.next_value_seed(Entries)?;
                    hash_annotations(scanner, &entries, is_noted, hasher);
                }
                "labels" | "annotations" => {
                    let value: &RawValue = map.next_value()?;
                    if &*key == "labels" {
                        (1_u8, value.get()).hash(hasher);
                    } else {
                        let entries = entries_of(value).map_err(A::Error::custom)?;
                        hash_annotations(scanner, &entries, is_noted, hasher);
                    }
                    scanner
                        .hash_extra(&["metadata", &key], value, is_noted, hasher)
                        .map_err(A::Error::custom)?;
                }
                other if wants_extra => {
                    let value: &RawValue = map.next_value()?;
                    scanner
                        .hash_extra(&["metadata", other], value, is_noted, hasher)
                        .map_err(A::Error::custom)?;
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

fn hash_annotations(
    scanner: &EssenceScanner,
    entries: &[(Cow<'_, str>, &RawValue)],
    is_noted: bool,
    hasher: &mut impl Hasher,
) {
    let owned = owned_prefixes(entries.iter().map(|(key, _)| &**key));
    for (key, value) in entries {
        if is_essential_annotation(key, &owned) && !scanner.is_own(key) {
            (2_u8, &**key, value.get()).hash(hasher);
        } else if is_noted && scanner.is_note(key) {
            (4_u8, &**key, value.get()).hash(hasher);
        }
    }
}

fn entries_of(value: &RawValue) -> Result<Vec<(Cow<'_, str>, &RawValue)>, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(value.get());
    Entries.deserialize(&mut deserializer)
}

/// Reads the annotations; null means that there are none.
struct Entries;

impl<'de> DeserializeSeed<'de> for Entries {
    type Value = Vec<(Cow<'de, str>, &'de RawValue)>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Entries {
    type Value = Vec<(Cow<'de, str>, &'de RawValue)>;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a map of annotations")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(Vec::new())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entries = Vec::with_capacity(8);
        while let Some(key) = map.next_key_seed(Text)? {
            entries.push((key, map.next_value()?));
        }
        Ok(entries)
    }
}

/// Reads a string without copying it, unless it contains escapes.
struct Text;

impl<'de> DeserializeSeed<'de> for Text {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Text {
    type Value = Cow<'de, str>;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a string")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }
}
