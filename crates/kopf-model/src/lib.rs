//! Values: keys, objects, selectors, diffs, patches, essences and stored records.
//!
//! No I/O, no async, no clock. What is persisted on objects has its types here and nowhere else,
//! byte-compatible with Kopf's formats by default.

pub mod diff;
pub mod field;
pub mod object;
pub mod patch;
pub mod resource;

pub use diff::{Diff, DiffItem, DiffOperation};
pub use field::FieldPath;
pub use object::{Object, ObjectKey, ParseError};
pub use patch::{Patch, Transformation};
pub use resource::{Resource, Selector};

/// A moment in time; stored with an explicit offset and six fractional digits.
pub use jiff::Timestamp;
