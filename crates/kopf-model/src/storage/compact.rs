//! The last-handled state in one annotation, as close to Kopf's form as fits.
//!
//! Usually this is exactly Kopf's form. If it would exceed the server's limit for annotations, the
//! state is compressed. If it is still too large, large values are replaced by their digests, which
//! still show which field has changed, but not its old value.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use blake2::Blake2bVar;
use blake2::digest::{Update, VariableOutput};
use serde_json::{Map, Value, json};

use super::{AnnotationsDiffBase, DiffBaseStorage, StorageError, StorageErrorKind, StoredForm};
use crate::callback::CallbackError;
use crate::essence::Essence;
use crate::field::FieldPath;
use crate::json::deep;
use crate::json::text::to_ascii;
use crate::object::Object;
use crate::patch::Patch;

/// The server's limit for all annotation keys and values of an object.
pub const ANNOTATIONS_SIZE_MAX: usize = 256 * 1024;
/// The space reserved for the progress of handlers and for other writers.
const RESERVED_SIZE: usize = 24 * 1024;
/// The default limit of the server's database for a whole object, minus some space for metadata.
const OBJECT_SIZE_MAX: usize = 1_400 * 1024;
/// The space for a state even on objects that already exceed all limits.
const STATE_SIZE_MIN: usize = 16 * 1024;
/// The maximum size of a decompressed state.
const DECOMPRESSED_SIZE_MAX: usize = 64 * 1024 * 1024;
const COMPRESSION_LEVEL: i32 = 3;
/// Larger values are replaced by digests; each limit is tried if the one before is not enough.
const DIGESTED_FROM: [usize; 4] = [4096, 512, 96, 0];
const COMPACT_KEY: &str = "kopf.dev/compact";
const DIGEST_KEY: &str = "kopf.dev/digest";

/// Stores the last-handled state in one annotation, compressed or digested if it would not fit.
#[derive(Clone, Debug)]
pub struct CompactDiffBase(AnnotationsDiffBase);

impl CompactDiffBase {
    /// Uses the same annotation as the plain storage, and can read its form.
    #[must_use]
    pub fn new(plain: AnnotationsDiffBase) -> Self {
        Self(plain)
    }
}

impl DiffBaseStorage for CompactDiffBase {
    fn build(&self, object: &Object, extra: &[FieldPath]) -> Result<Essence, CallbackError> {
        self.0.build(object, extra)
    }

    fn fetch(&self, object: &Object, new: &Essence) -> Result<Option<Essence>, StorageError> {
        self.0.fetch(object, new)
    }

    fn store(
        &self,
        essence: &Essence,
        object: &Object,
        patch: &mut Patch,
    ) -> Result<StoredForm, CallbackError> {
        let places = self.0.places(object);
        let keys_size: usize = places.iter().map(String::len).sum();
        let taken = size_of_others(object, &places) + RESERVED_SIZE + keys_size;
        let budget = ANNOTATIONS_SIZE_MAX.saturating_sub(taken) / places.len();
        let (text, form) = encode(essence, budget);
        self.0.store_text(text, object, patch);
        Ok(form)
    }

    fn own_annotations(&self, object: &Object) -> Vec<String> {
        self.0.own_annotations(object)
    }

    fn adds_fields(&self) -> bool {
        false
    }
}

/// A stored state in Kopf's form, without reading it; `None` if it is unusual or compact.
pub(super) fn plain(text: &str) -> Option<Essence> {
    (!text.contains(COMPACT_KEY)).then(|| Essence::from_stored(text.trim_ascii_end())).flatten()
}

/// Turns a stored state in any form into an essence.
pub(super) fn expand(stored: Value, new: &Value) -> Result<Value, StorageErrorKind> {
    let Some(compact) = stored.get(COMPACT_KEY) else { return Ok(stored) };
    let form = compact.get("form").and_then(Value::as_str).unwrap_or_default();
    if form != "zstd" {
        return Err(StorageErrorKind::UnknownForm(form.to_owned()));
    }
    let data = compact.get("data").and_then(Value::as_str).unwrap_or_default();
    let plain = zstd::bulk::decompress(&STANDARD.decode(data)?, DECOMPRESSED_SIZE_MAX)?;
    let mut essence = deep::read(&plain)?;
    restore_unchanged(&mut essence, Some(new));
    Ok(essence)
}

fn size_of_others(object: &Object, own: &[String]) -> usize {
    let is_other = |key: &str| !own.iter().any(|other| other == key);
    object.notes(is_other).map(|(key, text)| key.len() + text.len()).sum()
}

fn encode(essence: &Essence, budget: usize) -> (String, StoredForm) {
    let plain = [essence.text(), "\n"].concat();
    if plain.len() <= budget {
        return (plain, StoredForm::Plain);
    }
    let plain_size = plain.len();
    // The copy is about as large as the object: both together must fit into the database.
    let room = OBJECT_SIZE_MAX.saturating_sub(plain_size).max(STATE_SIZE_MIN);
    let budget = budget.min(room);
    let text = compress(&plain);
    if text.len() <= budget {
        let form = StoredForm::Compressed { plain_size, stored_size: text.len() };
        return (text, form);
    }
    let mut smallest = None;
    for larger_than in DIGESTED_FROM {
        let mut digests = 0;
        let skeleton = digest_large(essence, larger_than, &mut digests);
        let text = compress(&to_ascii(&skeleton));
        let stored_size = text.len();
        smallest = Some((text, StoredForm::Digested { plain_size, stored_size, digests }));
        if stored_size <= budget {
            break;
        }
    }
    smallest.expect("there is at least one limit")
}

fn compress(plain: &str) -> String {
    let packed = zstd::bulk::compress(plain.as_bytes(), COMPRESSION_LEVEL)
        .expect("compressing into a growing buffer does not fail");
    json!({COMPACT_KEY: {"form": "zstd", "data": STANDARD.encode(packed)}}).to_string() + "\n"
}

/// Copies a value, replacing parts that are larger than the limit and have no smaller parts by
/// digests.
///
/// With a limit of zero, every top-level member becomes one digest, so the size of the result
/// depends only on their number.
fn digest_large(value: &Value, larger_than: usize, digests: &mut usize) -> Value {
    let descend = |map: &Map<String, Value>, digests: &mut usize| {
        map.iter()
            .map(|(key, value)| (key.clone(), digest_large(value, larger_than, digests)))
            .collect()
    };
    match value {
        Value::Object(map) if larger_than > 0 => Value::Object(descend(map, digests)),
        Value::Object(map) => {
            *digests += map.len();
            map.iter()
                .map(|(key, value)| (key.clone(), digest_of(value)))
                .collect::<Map<_, _>>()
                .into()
        }
        other if other.to_string().len() > larger_than => {
            *digests += 1;
            digest_of(other)
        }
        other => other.clone(),
    }
}

fn digest_of(value: &Value) -> Value {
    let mut digest = [0; 16];
    let mut hasher = Blake2bVar::new(digest.len()).expect("16 bytes is a valid digest size");
    hasher.update(sorted(value).to_string().as_bytes());
    hasher.finalize_variable(&mut digest).expect("the buffer has the digest's size");
    json!({DIGEST_KEY: STANDARD.encode(digest)})
}

/// The same value with sorted map keys: their order must not affect the digest.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by_key(|(key, _)| *key);
            entries
                .into_iter()
                .map(|(key, value)| (key.clone(), sorted(value)))
                .collect::<Map<_, _>>()
                .into()
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

/// Replaces digests by the current values that still have them.
fn restore_unchanged(old: &mut Value, new: Option<&Value>) {
    let Value::Object(map) = old else { return };
    if map.len() == 1 && map.contains_key(DIGEST_KEY) {
        if let Some(new) = new
            && digest_of(new) == *old
        {
            *old = new.clone();
        }
        return;
    }
    for (key, value) in map {
        restore_unchanged(value, new.and_then(|new| new.get(key)));
    }
}
