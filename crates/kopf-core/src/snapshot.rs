//! What an operator knows about its objects, kept across a restart, and which watches may use it.
//!
//! No files and no requests here. The engine collects a [`Snapshot`] from its stores, writes it to
//! a file, and reads it at the next start. A watch that has a section continues from the section's
//! version instead of listing its objects.
//!
//! A section records for every object whether anything was left to do at some version. Objects with
//! work left are fetched again. The server sends later changes as events. The essences are not in
//! the file: the last-handled state is stored on the objects.

mod basis;
mod format;

pub use basis::{basis, needs_all_objects};
pub use format::{SnapshotError, decode, encode};

use crate::write::Version;

/// This many objects may always be unsettled.
const UNSETTLED_MAX: usize = 100;
/// Beyond that, one unsettled object per this many settled ones.
const SETTLED_PER_UNSETTLED: usize = 10;

/// What is known about the objects of all watches that can continue from it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// One section per watch.
    pub sections: Vec<Section>,
}

/// What is known about the objects of one watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// The watch, the operator and the server.
    pub key: SectionKey,
    /// All changes up to this version are included.
    pub version: Version,
    /// The objects without work left.
    pub settled: Vec<Settled>,
    /// The objects that must be fetched again.
    pub unsettled: Vec<ObjectName>,
}

/// The watch, the operator and the server. A section is used only if all of these are equal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SectionKey {
    /// The address of the server; empty if unknown.
    pub server: String,
    /// The server's version of the resource's schema.
    pub schema: String,
    /// The resource.
    pub resource: String,
    /// The namespace; empty for the whole cluster.
    pub namespace: String,
    /// The selectors of the watch: labels, fields, shards.
    pub selectors: [String; 3],
    /// The handlers and settings that decide what to do; see [`basis`].
    pub basis: String,
}

/// An object without work left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settled {
    /// Its uid, as a number.
    pub uid: u128,
    /// The version at which no work was left.
    pub version: Version,
}

/// The name of an object.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectName {
    /// The namespace, unless the object is cluster-scoped.
    pub namespace: Option<String>,
    /// The name.
    pub name: String,
}

impl Section {
    /// Whether continuing from here is cheaper than a list: unsettled objects are fetched one by
    /// one.
    #[must_use]
    pub fn is_cheaper_than_list(&self) -> bool {
        let unsettled_max = UNSETTLED_MAX.max(self.settled.len() / SETTLED_PER_UNSETTLED);
        self.unsettled.len() <= unsettled_max
    }
}

#[cfg(test)]
mod tests;
