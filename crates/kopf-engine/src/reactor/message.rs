//! What the parts of a running engine tell the reactor.

use std::collections::BTreeSet;

use kopf_client::{Discovered, RequestError};
use kopf_core::handler::HandlerId;
use kopf_core::queue::QueueKey;

use crate::cycle::Done;
use crate::leadership::Share;
use crate::reactor::store::Uid;

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

/// What is told.
pub(crate) enum Message {
    /// A worker has finished with an object.
    Done(Box<Done>),
    /// A daemon or a timer has ended.
    BackgroundEnded { key: Key, handler: HandlerId },
    /// Discovery has answered for some groups, or for all.
    Discovered { groups: Option<BTreeSet<String>>, result: Result<Discovered, RequestError> },
    /// Operations are to be paused in favour of others, or resumed.
    Paused(bool),
    /// Which objects are ours has changed.
    Share(Share),
}
