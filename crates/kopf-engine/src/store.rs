//! What is known about the objects of one watch: one small record each, bodies only if needed.
//!
//! Owned by the reactor alone, so there are no locks. A record is about as large as a line of text;
//! everything that only busy objects need is boxed and dropped when they become idle.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasher, RandomState};

use kopf_core::occasion::EventKind;
use kopf_core::write::Version;
use kopf_model::{EssenceHash, Object};

use crate::key::Uid;

pub(crate) mod memory;

use memory::Memory;

/// How many undelivered events of one object are kept for event handlers.
pub(crate) const EVENTS_MAX: usize = 64;

/// All objects of one watch.
pub(crate) struct Store {
    records: HashMap<Uid, Record, foldhash::fast::RandomState>,
    hasher: RandomState,
    /// Counts lists, to find objects that a list did not contain.
    generation: u16,
    /// Whether an object was seen whose uid is not a UUID, so that its number is valid only in this
    /// process.
    has_odd_uids: bool,
}

/// One object.
#[derive(Default)]
pub(crate) struct Record {
    /// The newest version that was handled or needed no handling.
    pub(crate) version: Version,
    /// The fingerprint of the essence at that version, if nothing was left to do.
    pub(crate) settled: Option<EssenceHash>,
    /// What is waiting for a worker.
    pub(crate) inbox: Option<Box<Inbox>>,
    /// The newest body without its tree, if it is kept.
    pub(crate) body: Option<Object>,
    /// What is remembered besides the object; taken by the worker while the object is busy.
    pub(crate) memory: Option<Box<Memory>>,
    generation: u16,
    pub(crate) flags: Flags,
    /// Whether the state that a worker has, or will get, is from before the server was restored
    /// from a backup.
    is_doubted: bool,
}

/// Small facts about an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flags {
    /// It was first seen in a list.
    pub(crate) noticed_by_listing: bool,
    /// All handlers of some change have finished in this process.
    pub(crate) handled_once: bool,
    /// A worker has it.
    pub(crate) busy: bool,
    /// The worker considers the object gone, based only on a list.
    pub(crate) leaving: bool,
    /// The indexes have its newest state.
    pub(crate) indexed: bool,
    /// Our finalizer was present at the settled version.
    pub(crate) held: bool,
    /// Deletion was requested at the settled version.
    pub(crate) deleting: bool,
    /// It was logged that the object nests too deep to be read.
    pub(crate) unread: bool,
    /// An earlier process has left nothing to do at this version.
    pub(crate) remembered: bool,
}

impl Uid {
    /// The number of an object whose uid is a UUID.
    pub(crate) fn of(object: &Object) -> Option<Self> {
        parse_uuid(object.uid()).map(Self)
    }

    /// The uid with this number.
    pub(crate) fn from_number(number: u128) -> Self {
        Self(number)
    }

    /// The uid as a number.
    pub(crate) fn number(self) -> u128 {
        self.0
    }
}

/// What is waiting for a worker.
#[derive(Default)]
pub(crate) struct Inbox {
    /// The newest state; `None` if only events must be delivered.
    pub(crate) object: Option<Object>,
    /// Whether the object is gone.
    pub(crate) gone: bool,
    /// Whether this is based only on a list, which may have been outdated.
    pub(crate) is_guess: bool,
    /// Undelivered events, oldest first; kept only if there are event handlers.
    pub(crate) events: Vec<(Option<EventKind>, Object)>,
}

impl Store {
    pub(crate) fn new() -> Self {
        let (records, hasher) = (HashMap::default(), RandomState::new());
        Self { records, hasher, generation: 0, has_odd_uids: false }
    }

    /// The number of an object; objects without a uid are identified by their names.
    pub(crate) fn uid(&mut self, object: &Object) -> Uid {
        if let Some(uid) = Uid::of(object) {
            return uid;
        }
        self.has_odd_uids = true;
        let identity = (object.uid(), object.namespace(), object.name());
        let high = self.hasher.hash_one((1_u8, identity));
        let low = self.hasher.hash_one((2_u8, identity));
        Uid((u128::from(high) << 64) | u128::from(low))
    }

    pub(crate) fn get(&mut self, uid: Uid) -> Option<&mut Record> {
        self.records.get_mut(&uid)
    }

    /// The record of an object; returns whether it is new.
    pub(crate) fn enter(&mut self, uid: Uid) -> (&mut Record, bool) {
        let generation = self.generation;
        match self.records.entry(uid) {
            Entry::Occupied(entry) => {
                let record = entry.into_mut();
                record.generation = generation;
                (record, false)
            }
            Entry::Vacant(entry) => {
                (entry.insert(Record { generation, ..Record::default() }), true)
            }
        }
    }

    pub(crate) fn remove(&mut self, uid: Uid) -> Option<Record> {
        self.records.remove(&uid)
    }

    /// A list starts.
    pub(crate) fn begin_list(&mut self) {
        self.generation = self.generation.wrapping_add(1);
    }

    /// The objects that the completed list did not contain.
    pub(crate) fn missing(&self) -> Vec<Uid> {
        self.records
            .iter()
            .filter(|(_, record)| record.generation != self.generation)
            .map(|(uid, _)| *uid)
            .collect()
    }

    /// Whether the last list did not contain an object.
    pub(crate) fn is_missing(&self, uid: Uid) -> bool {
        self.records.get(&uid).is_some_and(|record| record.generation != self.generation)
    }

    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether some objects have numbers that are meaningless to another process.
    pub(crate) fn has_odd_uids(&self) -> bool {
        self.has_odd_uids
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (Uid, &mut Record)> {
        self.records.iter_mut().map(|(uid, record)| (*uid, record))
    }

    /// The approximate size in memory.
    pub(crate) fn bytes(&self) -> usize {
        let records = self.records.capacity() * (size_of::<(Uid, Record)>() + 1);
        let bodies: usize = self
            .records
            .values()
            .map(|record| {
                let inbox = record.inbox.as_ref().map_or(0, |inbox| inbox.bytes());
                let memory = record.memory.as_ref().map_or(0, |_| size_of::<Memory>());
                let body = record.body.as_ref().map_or(0, |body| body.raw().len());
                inbox + memory + body
            })
            .sum();
        records + bodies
    }
}

impl Inbox {
    /// The newest waiting state.
    pub(crate) fn newest(&self) -> Option<&Object> {
        self.object.as_ref().or(self.events.last().map(|(_, object)| object))
    }
}

impl Record {
    /// Keeps the newest state for event handlers, as if it came from a list: another replica has
    /// received the events.
    pub(crate) fn put_newest(&mut self, object: Object) {
        self.inbox.get_or_insert_default().events = vec![(None, object)];
    }

    /// Another replica continues from here: only the state is known, as if it came from a list.
    /// Returns whether not even that is known.
    pub(crate) fn forget_our_work(&mut self) -> bool {
        let body = self.body.take();
        if !self.is_waiting() && body.is_some() {
            self.inbox.get_or_insert_default().object = body;
        }
        (self.version, self.settled, self.memory) = (Version::default(), None, None);
        let indexed = self.flags.indexed;
        self.flags = Flags { noticed_by_listing: true, indexed, ..Flags::default() };
        !self.is_waiting()
    }

    /// Stores the newest state, replacing the waiting one.
    pub(crate) fn put(&mut self, object: Object, gone: bool) {
        let inbox = self.inbox.get_or_insert_default();
        inbox.object = Some(object);
        (inbox.gone, inbox.is_guess) = (gone, false);
        self.flags.indexed = false;
        // A worker still has the previous state; the next one gets this.
        self.is_doubted &= self.flags.busy;
    }

    /// The object was not in a list.
    pub(crate) fn put_missing(&mut self, object: Object) {
        self.put(object, true);
        self.inbox.get_or_insert_default().is_guess = true;
    }

    /// The object was seen: a list that did not contain it was outdated.
    pub(crate) fn doubt_list(&mut self) {
        if let Some(inbox) = &mut self.inbox
            && inbox.is_guess
        {
            (inbox.gone, inbox.is_guess) = (false, false);
        }
    }

    /// The server was restored from a backup: no known or waiting state is newer than what it sends
    /// from now on.
    pub(crate) fn doubt_all(&mut self) {
        self.version = Version::default();
        self.is_doubted = self.flags.busy || self.body.is_some();
        self.doubt_sight();
        if let Some(inbox) = &mut self.inbox {
            (inbox.object, inbox.gone, inbox.is_guess) = (None, false, false);
        }
        self.inbox.take_if(|inbox| inbox.events.is_empty());
    }

    /// Whether a worker returns a state from before the server was restored, while the current
    /// state is waiting; true only once.
    pub(crate) fn is_outdated(&mut self) -> bool {
        self.is_waiting() && std::mem::take(&mut self.is_doubted)
    }

    /// Whether nothing is left to do at the known version.
    pub(crate) fn is_at_rest(&self) -> bool {
        let is_settled = self.settled.is_some() || self.flags.remembered;
        let is_known = self.version != Version::default() && !self.is_doubted;
        is_settled && is_known && self.inbox.is_none() && !self.flags.busy
    }

    /// Whether a state is waiting for a worker.
    pub(crate) fn is_waiting(&self) -> bool {
        self.inbox.as_ref().is_some_and(|inbox| inbox.object.is_some())
    }

    /// Sets the version that a worker has reached, and drops the waiting state if that version
    /// covers it.
    ///
    /// The worker may have wrongly considered the object gone: then it has not seen the waiting
    /// state, at any version.
    pub(crate) fn come_to(&mut self, version: Version, settled: Option<EssenceHash>) {
        let was_leaving = std::mem::take(&mut self.flags.leaving);
        let waiting = self.inbox.as_ref().and_then(|inbox| inbox.object.as_ref());
        if self.is_doubted {
            (self.version, self.settled) = (Version::default(), None);
            self.is_doubted = waiting.is_none();
            self.doubt_sight();
        } else {
            let is_covered =
                waiting.is_some_and(|object| Version::of(object).is_covered_by(version));
            (self.version, self.settled) = (version.max(self.version), settled);
            if let (true, Some(inbox)) = (is_covered && !was_leaving, &mut self.inbox)
                && !inbox.gone
            {
                inbox.object = None;
            }
        }
        self.inbox.take_if(|inbox| inbox.object.is_none() && inbox.events.is_empty());
    }

    /// Forgets that the indexes have the newest state if another one than that of the worker is
    /// waiting.
    pub(crate) fn compare_indexed(&mut self, version: Version) {
        let waiting = self.inbox.as_ref().and_then(|inbox| inbox.object.as_ref());
        let is_same = waiting.is_none_or(|object| Version::of(object) == version);
        self.flags.indexed &= is_same && !self.is_doubted;
    }

    fn doubt_sight(&self) {
        if let Some(memory) = &self.memory {
            memory.doubt();
        }
    }

    /// Takes a newer state that needs no handling.
    pub(crate) fn refresh(&mut self, object: &Object) {
        (self.version, self.is_doubted) = (Version::of(object), false);
        if self.body.is_some() {
            self.body = Some(object.at_rest());
        }
        if let Some(memory) = &mut self.memory {
            memory.refresh(object);
        }
    }

    /// Keeps an event for the event handlers; returns whether another one was lost for it.
    #[must_use]
    pub(crate) fn put_event(&mut self, kind: Option<EventKind>, object: Object) -> bool {
        self.inbox.get_or_insert_default().push_event(kind, object)
    }
}

impl Inbox {
    fn bytes(&self) -> usize {
        let events: usize = self.events.iter().map(|(_, object)| object.raw().len()).sum();
        events + self.object.as_ref().map_or(0, |object| object.raw().len())
    }

    /// Keeps an event; drops the oldest one if there are too many.
    fn push_event(&mut self, kind: Option<EventKind>, object: Object) -> bool {
        let is_full = self.events.len() >= EVENTS_MAX;
        if is_full {
            self.events.remove(0);
        }
        self.events.push((kind, object));
        is_full
    }
}

fn parse_uuid(text: &str) -> Option<u128> {
    let bytes = text.as_bytes();
    if bytes.len() != 36 {
        return None;
    }
    let mut number: u128 = 0;
    for (group, separator) in [(0..8, 8), (9..13, 13), (14..18, 18), (19..23, 23), (24..36, 36)] {
        let mut digits: u64 = 0;
        for byte in &bytes[group.clone()] {
            let digit = match byte {
                b'0'..=b'9' => byte - b'0',
                b'a'..=b'f' => byte - b'a' + 10,
                b'A'..=b'F' => byte - b'A' + 10,
                _ => return None,
            };
            digits = (digits << 4) | u64::from(digit);
        }
        if bytes.get(separator).is_some_and(|byte| *byte != b'-') {
            return None;
        }
        number = (number << (4 * group.len())) | u128::from(digits);
    }
    Some(number)
}

#[cfg(test)]
mod tests;
