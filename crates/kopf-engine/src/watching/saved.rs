//! What is remembered of a watch: what it starts with after a restart, and what it stores for the
//! next one.

use std::collections::HashSet;
use std::sync::Arc;

use kopf_client::{Collection, Remembered};
use kopf_core::snapshot::{ObjectName, Section, SectionKey, Settled};
use kopf_core::write::Version;
use kopf_model::Object;

use crate::key::Uid;
use crate::snapshots::Snapshots;
use crate::store::{Record, Store};

/// The state of a watch, to continue from after a restart.
#[derive(Default)]
pub(crate) struct Saved {
    /// The key under which the watch is remembered; `None` if it is not.
    key: Option<SectionKey>,
    /// The remembered section, until the watch has newer data.
    section: Option<Section>,
    /// All changes up to this version were processed.
    reached: Version,
}

impl Saved {
    /// The remembered data of a watch, by its collection and what its handlers depend on.
    pub(super) fn recall(
        snapshots: Option<&Snapshots>,
        collection: &Collection,
        basis: Option<&str>,
    ) -> Self {
        let key = || snapshots?.key(collection, basis?);
        let key = key();
        let section = snapshots.zip(key.as_ref()).and_then(|(snapshots, key)| snapshots.take(key));
        Self { key, section, reached: Version::default() }
    }

    /// For a watch that continues instead of listing.
    pub(crate) fn remembered(&self) -> Option<Remembered> {
        let section = self.section.as_ref()?;
        let uids: HashSet<Uid> =
            section.settled.iter().map(|it| Uid::from_number(it.uid)).collect();
        let names: HashSet<ObjectName> = section.unsettled.iter().cloned().collect();
        let is_known = move |object: &Object| {
            Uid::of(object).is_some_and(|uid| uids.contains(&uid))
                || names.contains(&name_of(object))
        };
        let wanted = section.unsettled.iter().map(|it| (it.namespace.clone(), it.name.clone()));
        Some(Remembered {
            version: section.version.number(),
            wanted: wanted.collect(),
            is_known: Arc::new(is_known),
        })
    }

    /// A list has ended: the remembered data is no longer needed.
    pub(crate) fn note_listed(&mut self, version: &str) {
        (self.section, self.reached) = (None, Version::parse(version));
    }

    /// Records the version of an event or a bookmark.
    pub(crate) fn note_version(&mut self, version: Version) {
        self.reached = self.reached.max(version);
    }

    /// Fills a store with the remembered data; returns the resulting version.
    pub(super) fn restore(&mut self, store: &mut Store) -> Version {
        let Some(section) = self.section.take() else { return Version::default() };
        self.reached = section.version;
        for settled in section.settled {
            let (record, is_new) = store.enter(Uid::from_number(settled.uid));
            if is_new {
                record.version = settled.version;
                record.flags.noticed_by_listing = true;
                record.flags.remembered = true;
            }
        }
        self.reached
    }

    /// The section to remember; `None` if there is nothing to continue from.
    pub(super) fn section(&self, store: &mut Store, is_complete: bool) -> Option<Section> {
        if self.section.is_some() {
            return self.section.clone();
        }
        let is_sound = is_complete && !store.has_odd_uids() && self.reached != Version::default();
        let key = self.key.clone().filter(|_| is_sound)?;
        let mut section =
            Section { key, version: self.reached, settled: Vec::new(), unsettled: Vec::new() };
        for (uid, record) in store.iter_mut() {
            if record.is_at_rest() {
                section.settled.push(Settled { uid: uid.number(), version: record.version });
            } else {
                // Without a name it could not be fetched, so everything must be listed.
                section.unsettled.push(newest(record).map(name_of)?);
            }
        }
        Some(section)
    }
}

/// The newest known state of an object.
fn newest(record: &Record) -> Option<&Object> {
    let waiting = record.inbox.as_ref().and_then(|inbox| inbox.newest());
    waiting.or(record.body.as_ref())
}

fn name_of(object: &Object) -> ObjectName {
    ObjectName { namespace: object.namespace().map(str::to_owned), name: object.name().to_owned() }
}
