//! The identity of an object, read from its encoding without building a tree.

use std::borrow::Cow;

use serde::Deserialize;

/// The parts of the metadata that identify an object.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Identity<'a> {
    /// The uid, empty when absent.
    #[serde(borrow)]
    pub(crate) uid: Cow<'a, str>,
    /// The namespace, empty when absent.
    #[serde(borrow)]
    pub(crate) namespace: Cow<'a, str>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Head<'a> {
    #[serde(borrow)]
    metadata: Identity<'a>,
}

impl<'a> Identity<'a> {
    /// Reads the identity; what is missing or malformed is empty.
    pub(crate) fn read(encoded: &'a [u8]) -> Self {
        serde_json::from_slice::<Head<'_>>(encoded).unwrap_or_default().metadata
    }
}
