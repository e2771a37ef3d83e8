//! Servers that go back in time, since they were restored from a backup.
//!
//! Versions are lower then than what is known, and nothing that is known is newer than what the
//! server tells from now on. What becomes of single objects is the `store`'s matter.

use kopf_core::write::Version;
use kopf_model::Object;

use super::{FirstList, Reactor, Watch};
use crate::message::Key;

impl Watch {
    /// Takes the version of a list; tells whether the server has gone back in time.
    pub(super) fn is_back(&mut self, version: &str) -> bool {
        let version = Version::parse(version);
        // Not a number, or not told yet.
        if version == Version::default() {
            return false;
        }
        let newest = std::mem::replace(&mut self.newest, version);
        version < newest
    }
}

impl Reactor {
    /// Looks at all objects of a watch anew, and waits for its list as for the first one.
    pub(super) fn doubt(&mut self, id: u32) {
        let Some(watch) = self.watches.get_mut(&id) else { return };
        tracing::warn!(
            resource = %watch.desired.resource,
            "the server has gone back in time; looking at all objects anew"
        );
        for (_, record) in watch.store.iter_mut() {
            record.doubt_all();
        }
        watch.first_list = FirstList::default();
        // Nothing is left to be indexed until the list tells of it, except where a worker is at it.
        let store = &mut watch.store;
        let mut is_busy = |key: &Key| store.get(key.uid).is_some_and(|record| record.flags.busy);
        self.unindexed.retain(|key| key.watch != id || is_busy(key));
    }

    /// A stream tells its version at its end only, by when its objects were taken for known: all of
    /// them have to be told once more.
    pub(super) fn begin_anew(&mut self, id: u32) {
        self.doubt(id);
        // Whoever ends the pause begins anew in any case.
        if !self.is_paused {
            self.follow_anew(id);
        }
    }

    /// An object was indexed before the barrier is lifted, in the state that was known then.
    pub(super) fn take_indexed(&mut self, key: Key, object: Object) {
        let Some(watch) = self.watches.get_mut(&key.watch) else { return };
        let Some(record) = watch.store.get(key.uid) else { return };
        let is_waiting = record.is_waiting();
        if record.is_outdated() {
            // It is in the queue again.
            self.unindexed.insert(key);
        } else if !is_waiting && !watch.is_listing && watch.store.is_missing(key.uid) {
            // A list without it has ended while a worker was at it.
            self.vanish_as(key, object);
        }
        self.check_readiness();
    }
}
