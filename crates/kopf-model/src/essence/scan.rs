//! The fingerprint of an essence, computed from data found while the object was read, and from its
//! annotations.
//!
//! Equal fingerprints mean an unchanged essence. If they differ, the essences must be compared,
//! because formatting, ignored fields and our own records can cause the difference.

use std::hash::{Hash, Hasher};

use serde::de::Error as _;

use super::{is_essential_annotation, owned_prefixes};
use crate::field::FieldPath;
use crate::hash_seed::Seed;
use crate::json::raw::{Malformed, entries, member};
use crate::object::Object;

/// The fingerprint of an essence; comparable only within one scanner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EssenceHash(u64);

/// Computes fingerprints with one secret seed and one set of fields.
///
/// The seed is random per scanner, so that nobody can construct a change with the same fingerprint.
#[derive(Clone, Debug)]
pub struct EssenceScanner {
    seed: Seed,
    extra: Vec<FieldPath>,
    own_prefixes: Vec<String>,
    own_keys: Vec<String>,
    notes: Notes,
}

/// Where the last-handled state is stored.
#[derive(Clone, Debug, Default)]
struct Notes {
    annotations: Vec<String>,
    fields: Vec<FieldPath>,
}

/// The fingerprints of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprints {
    /// The fingerprint of the essence.
    pub essence: EssenceHash,
    /// The fingerprint of the essence and the stored last-handled state: if that state is removed
    /// or edited, the object must be handled again.
    pub noted: EssenceHash,
}

impl EssenceScanner {
    /// Creates a scanner for essences with these extra fields.
    ///
    /// `own_annotations` are those that the storages remove from essences: exact keys, or prefixes
    /// if they end with a slash.
    #[must_use]
    pub fn new(extra: Vec<FieldPath>, own_annotations: Vec<String>) -> Self {
        let (own_prefixes, own_keys) =
            own_annotations.into_iter().partition(|pattern| pattern.ends_with('/'));
        let notes = Notes::default();
        Self { seed: Seed::default(), extra, own_prefixes, own_keys, notes }
    }

    /// Sets the places where the last-handled state is stored.
    ///
    /// Annotations whose names begin with a given one count too: some kinds have longer names.
    #[must_use]
    pub fn with_notes(mut self, annotations: Vec<String>, fields: Vec<FieldPath>) -> Self {
        self.notes = Notes { annotations, fields };
        self
    }

    /// Computes the fingerprints of an object.
    ///
    /// # Errors
    /// Fails for objects with unusual metadata.
    pub fn scan(&self, object: &Object) -> Result<Fingerprints, serde_json::Error> {
        let unusual = || serde_json::Error::custom("the metadata is unusual");
        let mut hasher = self.seed.build_hasher();
        object.essence_hash().ok_or_else(unusual)?.hash(&mut hasher);
        let mut noting = self.seed.build_hasher();
        let annotations = entries(object.raw_annotations()).map_err(serde_json::Error::custom)?;
        let owned = owned_prefixes(annotations.iter().map(|(key, _)| &**key));
        for (key, value) in &annotations {
            if is_essential_annotation(key, &owned) && !self.is_own(key) {
                (2_u8, &**key, value).hash(&mut hasher);
            }
            if self.is_note(key) {
                (4_u8, &**key, value).hash(&mut noting);
            }
        }
        hash_fields(&self.extra, object, &mut hasher)?;
        hash_fields(&self.notes.fields, object, &mut noting)?;
        let essence = hasher.finish();
        essence.hash(&mut noting);
        Ok(Fingerprints { essence: EssenceHash(essence), noted: EssenceHash(noting.finish()) })
    }

    /// Whether a change of this annotation changes the fingerprint of the essence, unless another
    /// operator stores its records under the same prefix.
    #[must_use]
    pub fn covers_annotation(&self, key: &str) -> bool {
        let owned = owned_prefixes(std::iter::once(key));
        is_essential_annotation(key, &owned) && !self.is_own(key)
    }

    fn is_note(&self, annotation: &str) -> bool {
        self.notes.annotations.iter().any(|key| annotation.starts_with(key.as_str()))
    }

    /// Whether an annotation is one of those that the storages remove from essences.
    #[must_use]
    pub fn is_own(&self, annotation: &str) -> bool {
        self.own_keys.iter().any(|key| key == annotation)
            || self.own_prefixes.iter().any(|prefix| annotation.starts_with(prefix.as_str()))
    }
}

/// The raw value of a field that is usually not essential; all others are hashed anyway.
fn found<'a>(object: &'a Object, field: &FieldPath) -> Result<Option<&'a [u8]>, Malformed> {
    let mut keys = field.keys();
    let mut raw = match keys.next() {
        Some("status") => object.raw_status(),
        Some("apiVersion" | "kind" | "metadata") => {
            keys = field.keys();
            object.raw()
        }
        _ => return Ok(None),
    };
    for key in keys {
        match member(raw, key)? {
            Some(value) => raw = value,
            None => return Ok(None),
        }
    }
    Ok(Some(raw).filter(|raw| !raw.is_empty()))
}

fn hash_fields(
    fields: &[FieldPath],
    object: &Object,
    hasher: &mut impl Hasher,
) -> Result<(), serde_json::Error> {
    for field in fields {
        if let Some(value) = found(object, field).map_err(serde_json::Error::custom)? {
            (3_u8, field, value).hash(hasher);
        }
    }
    Ok(())
}
