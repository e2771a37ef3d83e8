//! Where operators store their records on objects: the last-handled state and the progress of
//! handlers.
//!
//! Storages read bodies and write into patches; they never access a cluster. All of Kopf's storages
//! are here with Kopf's formats, plus [`CompactDiffBase`] for objects whose copy would not fit.

use std::sync::Arc;

use crate::callback::CallbackError;
use crate::essence::Essence;
use crate::field::FieldPath;
use crate::object::Object;
use crate::patch::Patch;
use crate::record::ProgressRecord;

mod annotations;
mod compact;
mod multi;
mod status;

pub use annotations::{AnnotationsDiffBase, AnnotationsProgress};
pub use compact::{ANNOTATIONS_SIZE_MAX, CompactDiffBase};
pub use multi::{MultiDiffBase, MultiProgress, SmartProgress};
pub use status::{StatusDiffBase, StatusProgress};

/// Stores the last-handled state of objects.
pub trait DiffBaseStorage: Send + Sync {
    /// The essence of an object, without the records of this storage.
    ///
    /// # Errors
    /// Fails when a storage of a user does, as all methods here.
    fn build(&self, object: &Object, extra: &[FieldPath]) -> Result<Essence, CallbackError>;

    /// The last-handled essence, or `None` if the object was never handled.
    ///
    /// `new` is the current essence: it provides unchanged values that were stored only as digests.
    ///
    /// # Errors
    /// Fails if the stored state is malformed.
    fn fetch(&self, object: &Object, new: &Essence) -> Result<Option<Essence>, StorageError>;

    /// Requests that an essence be stored. Returns its stored form.
    ///
    /// # Errors
    /// Fails when a storage of a user does.
    fn store(
        &self,
        essence: &Essence,
        object: &Object,
        patch: &mut Patch,
    ) -> Result<StoredForm, CallbackError>;

    /// The annotations that [`build`](Self::build) removes: exact keys, or prefixes with a slash.
    fn own_annotations(&self, object: &Object) -> Vec<String> {
        let _ = object;
        Vec::new()
    }

    /// The fields outside annotations that [`store`](Self::store) writes.
    fn own_fields(&self) -> Vec<FieldPath> {
        Vec::new()
    }

    /// Whether [`build`](Self::build) may add fields that are usually not essential and not among
    /// the `extra` fields, such as a part of the status.
    ///
    /// If not, events about such fields can be skipped.
    fn adds_fields(&self) -> bool {
        true
    }
}

/// Stores the progress of handlers on objects.
pub trait ProgressStorage: Send + Sync {
    /// The record of one handler, or `None`.
    ///
    /// # Errors
    /// Fails if the stored record is malformed.
    fn fetch(&self, id: &str, object: &Object) -> Result<Option<ProgressRecord>, StorageError>;

    /// Requests that a record be stored.
    ///
    /// # Errors
    /// Fails when a storage of a user does, as all methods here.
    fn store(
        &self,
        id: &str,
        record: &ProgressRecord,
        object: &Object,
        patch: &mut Patch,
    ) -> Result<(), CallbackError>;

    /// Requests that a record be removed, whether it is on the object or only in the patch.
    ///
    /// # Errors
    /// Fails when a storage of a user does.
    fn purge(&self, id: &str, object: &Object, patch: &mut Patch) -> Result<(), CallbackError>;

    /// Requests a meaningless change to trigger an event, or the removal of an earlier one.
    ///
    /// # Errors
    /// Fails when a storage of a user does.
    fn touch(
        &self,
        object: &Object,
        patch: &mut Patch,
        value: Option<&str>,
    ) -> Result<(), CallbackError>;

    /// Removes the records of this storage from an essence.
    ///
    /// # Errors
    /// Fails when a storage of a user does.
    fn clear(&self, essence: &mut Essence) -> Result<(), CallbackError>;

    /// The annotations that [`clear`](Self::clear) removes: exact keys, or prefixes with a slash.
    fn own_annotations(&self) -> Vec<String> {
        Vec::new()
    }

    /// The fields outside annotations that this storage writes.
    fn own_fields(&self) -> Vec<FieldPath> {
        Vec::new()
    }
}

/// The form in which an essence was stored, for the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoredForm {
    /// Unmodified.
    Plain,
    /// Compressed, because the plain form would not fit.
    Compressed {
        /// The size of the plain form in bytes.
        plain_size: usize,
        /// The stored size in bytes.
        stored_size: usize,
    },
    /// With digests in place of large values, because even the compressed form would not fit.
    Digested {
        /// The size of the plain form in bytes.
        plain_size: usize,
        /// The stored size in bytes.
        stored_size: usize,
        /// How many values are stored only as digests.
        digests: usize,
    },
}

/// Why notes cannot be read from an object.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StorageError {
    /// The notes cannot be understood.
    #[error("the stored state in {place} is malformed")]
    Malformed {
        /// The annotation or field.
        place: String,
        /// The kind of error.
        #[source]
        source: StorageErrorKind,
    },
    /// A storage of a user or a front end has failed.
    #[error(transparent)]
    Callback(#[from] CallbackError),
}

/// The kinds of errors in stored data.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StorageErrorKind {
    /// It is not JSON.
    #[error("it is not valid JSON")]
    Json(#[from] serde_json::Error),
    /// It is not base64.
    #[error("it is not valid base64")]
    Base64(#[from] base64::DecodeError),
    /// It is not compressed data, or too large when decompressed.
    #[error("it cannot be decompressed")]
    Compression(#[from] std::io::Error),
    /// It was written by a newer release.
    #[error("it has the unknown form {0:?}")]
    UnknownForm(String),
}

/// Shared handles behave like the storage itself.
impl<S: DiffBaseStorage + ?Sized> DiffBaseStorage for Arc<S> {
    fn build(&self, object: &Object, extra: &[FieldPath]) -> Result<Essence, CallbackError> {
        (**self).build(object, extra)
    }

    fn fetch(&self, object: &Object, new: &Essence) -> Result<Option<Essence>, StorageError> {
        (**self).fetch(object, new)
    }

    fn store(
        &self,
        essence: &Essence,
        object: &Object,
        patch: &mut Patch,
    ) -> Result<StoredForm, CallbackError> {
        (**self).store(essence, object, patch)
    }

    fn own_annotations(&self, object: &Object) -> Vec<String> {
        (**self).own_annotations(object)
    }

    fn own_fields(&self) -> Vec<FieldPath> {
        (**self).own_fields()
    }

    fn adds_fields(&self) -> bool {
        (**self).adds_fields()
    }
}

impl std::fmt::Display for StoredForm {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Plain => formatter.write_str("plain"),
            Self::Compressed { plain_size, stored_size } => {
                write!(formatter, "compressed from {plain_size} to {stored_size} bytes")
            }
            Self::Digested { plain_size, stored_size, digests } => write!(
                formatter,
                "compressed from {plain_size} to {stored_size} bytes, {digests} values as digests"
            ),
        }
    }
}

#[cfg(test)]
mod tests;
