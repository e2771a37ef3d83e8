//! What an operator knows of its objects, kept across a restart, and which watches may use it.
//!
//! No files and no requests here. The engine collects a [`Snapshot`] from its stores, writes it to
//! a file, and reads it at the next start. A watch with a section goes on from the section's version
//! instead of listing its objects.
//!
//! A section says of every object either that nothing was left to do at some version, or that
//! something was. Objects of the second kind are fetched again. What has changed since, the server
//! sends as events. The essences are not in the file: what was handled last is stored on the
//! objects.

mod basis;
mod format;

pub use basis::{basis, needs_all_objects};
pub use format::{SnapshotError, decode, encode};

use crate::write::Version;

/// This many objects may be unsettled in any case.
const UNSETTLED_MAX: usize = 100;
/// Beyond that, one unsettled object for this many settled ones.
const SETTLED_PER_UNSETTLED: usize = 10;

/// What is known of the objects of all watches that may go on from there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// One section per watch.
    pub sections: Vec<Section>,
}

/// What is known of the objects of one watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Which watch, of which operator, on which server.
    pub key: SectionKey,
    /// All changes up to this version are taken into account.
    pub version: Version,
    /// The objects about which nothing is left to do.
    pub settled: Vec<Settled>,
    /// The objects that have to be looked at again.
    pub unsettled: Vec<ObjectName>,
}

/// Which watch, of which operator, on which server. A section is used only if all of it is equal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SectionKey {
    /// The address of the server; empty if it is not known.
    pub server: String,
    /// What the server says about the version of the resource's schema.
    pub schema: String,
    /// The resource.
    pub resource: String,
    /// The namespace; empty for the whole cluster.
    pub namespace: String,
    /// The selectors of the watch: labels, fields, shards.
    pub selectors: [String; 3],
    /// The handlers and settings that decide what is to be done: see [`basis`].
    pub basis: String,
}

/// An object about which nothing is left to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settled {
    /// Its uid, as a number.
    pub uid: u128,
    /// The version at which nothing was left to do.
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
    /// Whether going on from here takes less than a list: unsettled objects are fetched one by one.
    #[must_use]
    pub fn is_cheaper_than_list(&self) -> bool {
        let unsettled_max = UNSETTLED_MAX.max(self.settled.len() / SETTLED_PER_UNSETTLED);
        self.unsettled.len() <= unsettled_max
    }
}

#[cfg(test)]
mod tests;
