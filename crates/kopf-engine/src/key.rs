//! Which object of which watch: what the queue, the stores and the daemons know an object by.

use kopf_core::queue::QueueKey;

/// Which object, within one watch: the uid as a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Uid(pub(crate) u128);

/// Which object of which watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) watch: u32,
    /// The namespace as a number; objects of one namespace share their turns.
    pub(crate) group: u32,
    pub(crate) uid: Uid,
}

impl QueueKey for Key {
    type Group = u32;

    fn group(&self) -> u32 {
        self.group
    }
}
