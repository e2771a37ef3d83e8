//! Values: keys, objects, selectors, diffs, patches, essences and stored records.
//!
//! No I/O, no async, no clock. The types of data persisted on objects are only here,
//! byte-compatible with Kopf's formats by default.

pub mod backoff;
pub mod callback;
pub mod condition;
pub mod diff;
pub mod equality;
pub mod essence;
pub mod field;
pub mod finalizer;
pub mod handled;
mod hash_seed;
pub mod hierarchy;
pub mod json;
pub mod json_patch;
pub mod keys;
pub mod lease;
pub mod merge;
pub mod namespace;
pub mod object;
pub mod patch;
pub mod peering;
pub mod record;
pub mod resource;
pub mod selector;
pub mod shards;
pub mod storage;
mod version;

pub use callback::{CallbackError, ErrorObject};
pub use condition::{Condition, ConditionChanges, ConditionStatus};
pub use diff::{Diff, DiffItem, DiffOperation, DiffScope};
pub use essence::{Essence, EssenceHash, EssenceScanner, Fingerprints};
pub use field::FieldPath;
pub use handled::HandledState;
pub use object::{Object, ObjectKey, ParseError};
pub use patch::{Patch, Transformation};
pub use record::ProgressRecord;
pub use resource::{Resource, Selector};
pub use storage::{DiffBaseStorage, ProgressStorage, StoredForm};
pub use version::Version;

/// A point in time; stored with an explicit offset and six fractional digits.
pub use jiff::Timestamp;
