//! Identifies an object of a watch, for the queue, the stores and the daemons.

use kopf_core::queue::QueueKey;

/// Identifies an object within one watch: the uid as a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Uid(pub(crate) u128);

/// Identifies an object of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) watch: u32,
    /// The namespace as a number; the keys of one namespace share their turns.
    pub(crate) group: u32,
    pub(crate) uid: Uid,
}

impl QueueKey for Key {
    type Group = u32;

    fn group(&self) -> u32 {
        self.group
    }
}
