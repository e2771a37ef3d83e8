//! What a watch tells the engine.

use std::sync::Arc;
use std::time::Duration;

use kopf_model::Object;
use smallvec::SmallVec;

use crate::error::RequestError;

/// Observations in their order; outside of bursts, events arrive one by one.
pub type Batch = SmallVec<[Observation; 2]>;

/// An observation.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Observation {
    /// A list starts, as of this version; objects that it does not contain by its end do not exist.
    ListBegun {
        /// The version of the collection; empty for streams, which send it at their end.
        version: String,
    },
    /// An object in a list.
    Listed(Object),
    /// The list is complete.
    ListEnded {
        /// The version of the collection: objects that are older and were not listed do not exist.
        version: String,
    },
    /// An event about an object.
    Changed(ChangeKind, Object),
    /// The watch continues from remembered data; all changes up to this version are known.
    Continued {
        /// The remembered version.
        version: String,
    },
    /// All changes up to this version have been sent.
    Reached {
        /// The version of a bookmark.
        version: String,
    },
    /// The server is alive although nothing happened.
    Heartbeat,
    /// Something failed; another attempt follows.
    Disturbed {
        /// The error.
        error: Arc<RequestError>,
        /// When the next attempt is made.
        retry_in: Duration,
    },
}

/// The type of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// `ADDED`
    Added,
    /// `MODIFIED`
    Modified,
    /// `DELETED`
    Deleted,
}
