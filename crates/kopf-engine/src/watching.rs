//! Step 1 of the path of a change: the collections that are followed, and their observations.
//!
//! [`Discovery`] knows the resources of the cluster and which of them are wanted, [`Watches`]
//! follows the objects of handlers, [`ChildWatches`] those of their children. Each owns its state;
//! the reactor passes findings between them.

mod child_watches;
mod discovery;
mod feed;
mod first_list;
mod meta_watch;
mod patchability;
mod saved;
mod server_filters;
mod watches;

pub(crate) use child_watches::ChildWatches;
pub(crate) use discovery::Discovery;
pub(crate) use feed::{Feed, Observations, Tag};
pub(crate) use first_list::FirstList;
pub(crate) use watches::{Watch, Watches};
