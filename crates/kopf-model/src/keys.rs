//! Names of annotations for logical keys, such as handler ids.
//!
//! Annotation names have at most 63 characters from a small alphabet, so long ids are truncated and
//! get a hash. There are two versions: v2 is current, v1 was written by old releases. Both are
//! written, so that an operator can be moved in either direction.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use blake2::Blake2bVar;
use blake2::digest::{Update, VariableOutput};
use serde_json::Value;

use crate::field::FieldPath;
use crate::object::Object;

/// The maximum length of the name part of an annotation key.
const NAME_LENGTH_MAX: usize = 63;

/// Makes annotation keys under one prefix.
#[derive(Clone, Debug)]
pub struct KeyMaker {
    prefix: String,
    with_v1: bool,
    /// The keys made so far: handlers are few, and needed for every object.
    known: Arc<RwLock<HashMap<String, Keys, foldhash::fast::RandomState>>>,
}

/// The annotation keys for one logical key.
type Keys = Arc<[String]>;

/// The maximum number of cached keys; sub-handlers can have any number of names.
const KNOWN_MAX: usize = 1024;

/// The prefix for annotations is empty.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the annotation prefix must not be empty")]
pub struct EmptyPrefix;

impl KeyMaker {
    /// Creates keys under a prefix, in both versions.
    ///
    /// # Errors
    /// Fails if the prefix is empty.
    pub fn new(prefix: impl Into<String>) -> Result<Self, EmptyPrefix> {
        let prefix = prefix.into();
        if prefix.is_empty() {
            Err(EmptyPrefix)
        } else {
            Ok(Self { prefix, with_v1: true, known: Arc::default() })
        }
    }

    /// Omits the keys of old releases.
    #[must_use]
    pub fn without_v1(mut self) -> Self {
        self.with_v1 = false;
        self.known = Arc::default();
        self
    }

    /// The prefix without the slash.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Whether an annotation is under this prefix.
    #[must_use]
    pub fn owns(&self, annotation: &str) -> bool {
        annotation.strip_prefix(&*self.prefix).is_some_and(|rest| rest.starts_with('/'))
    }

    /// All keys for a logical key on an object: read in this order, and all written.
    #[must_use]
    pub fn keys(&self, logical: &str, object: &Object) -> Arc<[String]> {
        if is_replica_set_of_deployment(object) {
            return self.remembered(&format!("{logical}-ofDRS"));
        }
        self.remembered(logical)
    }

    fn remembered(&self, logical: &str) -> Keys {
        // A poisoned lock is harmless: entries are inserted as a whole.
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(keys) = known.get(logical) {
            return Arc::clone(keys);
        }
        drop(known);
        let keys = self.make(logical);
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() < KNOWN_MAX {
            known.insert(logical.to_owned(), Arc::clone(&keys));
        }
        keys
    }

    fn make(&self, logical: &str) -> Keys {
        let current = self.v2(logical);
        if self.with_v1 {
            let former = self.v1(logical);
            if former != current {
                return Arc::new([current, former]);
            }
        }
        Arc::new([current])
    }

    /// The current key: only the name part counts towards the limit.
    #[must_use]
    pub fn v2(&self, logical: &str) -> String {
        let safe = safe_name(logical);
        let length = logical.chars().count();
        if length <= NAME_LENGTH_MAX {
            return format!("{}/{safe}", self.prefix);
        }
        let suffix = hash_suffix(logical);
        let kept = NAME_LENGTH_MAX - suffix.chars().count();
        format!("{}/{}{suffix}", self.prefix, first_characters(&safe, kept))
    }

    /// The key of old releases: the prefix counts towards the limit too.
    #[must_use]
    pub fn v1(&self, logical: &str) -> String {
        let safe = safe_name(logical);
        let limit = signed(NAME_LENGTH_MAX) - signed(self.prefix.chars().count()) - 1;
        let length = signed(safe.chars().count());
        if length <= limit {
            return format!("{}/{safe}", self.prefix);
        }
        let suffix = hash_suffix(&safe);
        // A negative count means "all but the last ones", as it did in old releases.
        let kept = limit - signed(suffix.chars().count());
        let kept = if kept < 0 { (length + kept).max(0) } else { kept };
        let kept = usize::try_from(kept).expect("negative counts were resolved above");
        format!("{}/{}{suffix}", self.prefix, first_characters(&safe, kept))
    }
}

fn signed(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn safe_name(logical: &str) -> String {
    logical.replace('/', ".").replace(['<', '>'], "_")
}

fn first_characters(text: &str, count: usize) -> &str {
    text.char_indices().nth(count).map_or(text, |(end, _)| &text[..end])
}

fn hash_suffix(text: &str) -> String {
    let mut digest = [0; 4];
    let mut hasher = Blake2bVar::new(digest.len()).expect("four bytes is a valid digest size");
    hasher.update(text.as_bytes());
    hasher.finalize_variable(&mut digest).expect("the buffer has the digest's size");
    let encoded = STANDARD.encode(digest).replace('+', "-").replace('/', ".");
    format!("-{}", encoded.trim_end_matches(['=', '-', '.']))
}

/// Deployments copy their annotations to their replica sets, so the two need different keys.
fn is_replica_set_of_deployment(object: &Object) -> bool {
    object.is_kind("ReplicaSet")
        && object
            .field(&FieldPath::from_keys(["metadata", "ownerReferences"]))
            .and_then(|owners| owners.as_array().cloned())
            .is_some_and(|owners| {
                owners
                    .iter()
                    .any(|owner| owner.get("kind").and_then(Value::as_str) == Some("Deployment"))
            })
}

#[cfg(test)]
mod tests;
