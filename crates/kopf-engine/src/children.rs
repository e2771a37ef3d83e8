//! The children of objects whose handlers read them, as seen by the watches and in our own writes.
//!
//! One store for all kinds of children, indexed by owner. The reactor adds observations; cycles
//! read it and add the responses to what they apply, so that they never wait for the event.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use kopf_core::desired::{Applied, Child, ChildKey, Condition};
use kopf_core::handler::HandlerId;
use kopf_core::invoke::OperatorContext;
use kopf_core::progress::State;
use kopf_core::write::Version;
use kopf_model::{Object, Resource, Selector, Timestamp};
use parking_lot::Mutex;

use crate::cluster_view::Desired;

pub(crate) mod rehearsal;

/// How many deletions are remembered, to distinguish late responses from existing children.
const DELETED_MAX: usize = 4096;

/// All known children.
///
/// Written by the reactor and by cycles, read by cycles; locked only for lookups, never across an
/// await.
#[derive(Default)]
pub(crate) struct ChildStore(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    watches: BTreeMap<u32, Followed>,
    entries: HashMap<ChildKey, Entry>,
    owners: HashMap<String, BTreeSet<ChildKey>>,
    deleted: VecDeque<(String, Version)>,
}

struct Followed {
    desired: Desired,
    is_listed: bool,
    /// Counts lists, to find children that a list did not contain.
    generation: u32,
}

struct Entry {
    child: Child,
    version: Version,
    /// The watch and its list that last contained the child.
    seen: Option<(u32, u32)>,
}

/// What is remembered about the children of one object between its cycles.
#[derive(Default)]
pub(crate) struct DesiredMemory {
    pub(crate) handlers: BTreeMap<HandlerId, HandlerMemory>,
    /// Whether the last desired children included some that only we can delete.
    pub(crate) needs_finalizer: bool,
    /// The last reported condition, and its generation.
    pub(crate) said: Option<(Condition, Option<i64>)>,
    /// Whether the object was ever seen with the condition, so that its schema does not drop it.
    pub(crate) is_ready_kept: bool,
    /// How often in a row our own write was a reason to call the functions again.
    pub(crate) rounds: u32,
}

/// What is remembered about one handler.
#[derive(Default)]
pub(crate) struct HandlerMemory {
    /// Failed attempts of the function, and the state of the object that they were for.
    pub(crate) failing: Option<(State, u64, String)>,
    pub(crate) applied: BTreeMap<ChildKey, Applied>,
    /// The state for which an observer last succeeded.
    pub(crate) seen: Option<u64>,
    pub(crate) refused: BTreeMap<ChildKey, Refused>,
}

/// A child that the server rejected.
#[derive(Clone)]
pub(crate) struct Refused {
    /// The hash of the manifest; empty for deletions.
    pub(crate) hash: String,
    pub(crate) message: String,
    pub(crate) attempts: u32,
    pub(crate) next_at: Timestamp,
}

/// Whether the children of some kinds are completely known.
pub(crate) enum Knowledge {
    /// All of them are known.
    Complete(Vec<Arc<Resource>>),
    /// Some are still being listed.
    Partial,
    /// The cluster has no such resource.
    Unserved(String),
}

impl ChildStore {
    /// A watch starts.
    pub(crate) fn begin(&self, watch: u32, desired: Desired) {
        let followed = Followed { desired, is_listed: false, generation: 0 };
        self.0.lock().watches.insert(watch, followed);
    }

    /// Whether anything is watched.
    pub(crate) fn is_used(&self) -> bool {
        !self.0.lock().watches.is_empty()
    }

    /// A watch has ended: the children that only it reported are no longer known.
    pub(crate) fn end(&self, watch: u32) {
        let mut inner = self.0.lock();
        inner.watches.remove(&watch);
        let of_watch = |entry: &Entry| entry.seen.is_some_and(|(by, _)| by == watch);
        let keys: Vec<ChildKey> = inner
            .entries
            .iter()
            .filter(|(_, entry)| of_watch(entry))
            .map(|(key, _)| key.clone())
            .collect();
        for key in keys {
            inner.remove(&key);
        }
    }

    /// A list starts.
    pub(crate) fn list_begun(&self, watch: u32) {
        if let Some(followed) = self.0.lock().watches.get_mut(&watch) {
            followed.generation = followed.generation.wrapping_add(1);
        }
    }

    /// A list of this version has ended; returns the owners of children that it did not contain,
    /// and whether it was the first list.
    pub(crate) fn list_ended(&self, watch: u32, listed_at: Version) -> (Vec<String>, bool) {
        let mut inner = self.0.lock();
        let Some(followed) = inner.watches.get_mut(&watch) else { return Default::default() };
        let is_first = !std::mem::replace(&mut followed.is_listed, true);
        let generation = followed.generation;
        let desired = followed.desired.clone();
        let is_missing = |entry: &Entry| {
            desired.covers(&entry.child)
                && entry.seen != Some((watch, generation))
                && entry.version.is_covered_by(listed_at)
        };
        let keys: Vec<ChildKey> = inner
            .entries
            .iter()
            .filter(|(_, entry)| is_missing(entry))
            .map(|(key, _)| key.clone())
            .collect();
        let owners = keys.iter().filter_map(|key| inner.remove(key)).collect();
        (owners, is_first)
    }

    /// Processes a state from a watch; returns the affected owners.
    pub(crate) fn see(&self, watch: u32, object: Object, gone: bool) -> Vec<String> {
        let mut inner = self.0.lock();
        let Some(followed) = inner.watches.get(&watch) else { return Vec::new() };
        let child = Child { resource: Arc::clone(&followed.desired.resource), object };
        let seen = Some((watch, followed.generation));
        let (key, version) = (child.key(), Version::of(&child.object));
        if gone {
            inner.note_deletion(child.object.uid(), version);
            let is_older = inner.entries.get(&key).is_some_and(|entry| {
                entry.child.object.uid() == child.object.uid() || entry.version <= version
            });
            let owner = if is_older { inner.remove(&key) } else { None };
            return owner.into_iter().collect();
        }
        if let Some(entry) = inner.entries.get_mut(&key)
            && version.is_covered_by(entry.version)
        {
            entry.seen = seen;
            return Vec::new();
        }
        inner.put(key, Entry { child, version, seen })
    }

    /// Processes the response to one of our own writes.
    pub(crate) fn put(&self, resource: &Arc<Resource>, object: Object) {
        let mut inner = self.0.lock();
        let version = Version::of(&object);
        let is_gone =
            inner.deleted.iter().any(|(uid, at)| uid == object.uid() && version.is_covered_by(*at));
        let child = Child { resource: Arc::clone(resource), object };
        let key = child.key();
        let known = inner.entries.get(&key);
        let is_known = known.is_some_and(|entry| version.is_covered_by(entry.version));
        if !is_gone && !is_known {
            let seen = known.and_then(|entry| entry.seen);
            inner.put(key, Entry { child, version, seen });
        }
    }

    /// A child is deleted: one that no watch reports is no longer known.
    pub(crate) fn forget_unwatched(&self, key: &ChildKey, uid: &str) {
        let mut inner = self.0.lock();
        let Some(entry) = inner.entries.get(key) else { return };
        let is_watched = inner.watches.values().any(|it| it.desired.covers(&entry.child));
        if !is_watched && entry.child.object.uid() == uid {
            inner.remove(key);
        }
    }

    /// The children of an owner, and other objects with the names that it desires.
    pub(crate) fn of<'a>(
        &self,
        owner: &str,
        wanted: impl Iterator<Item = &'a ChildKey>,
    ) -> Vec<Child> {
        let inner = self.0.lock();
        let mut keys = inner.owners.get(owner).cloned().unwrap_or_default();
        keys.extend(wanted.cloned());
        let found = keys.iter().filter_map(|key| inner.entries.get(key));
        found.map(|entry| entry.child.clone()).collect()
    }

    /// A fingerprint of the states of all children of an owner.
    pub(crate) fn states_hash(&self, owner: &str) -> u64 {
        let inner = self.0.lock();
        let keys = inner.owners.get(owner).into_iter().flatten();
        let mut hasher = DefaultHasher::new();
        for entry in keys.filter_map(|key| inner.entries.get(key)) {
            (entry.child.object.uid(), entry.child.object.resource_version()).hash(&mut hasher);
        }
        hasher.finish()
    }

    /// The resource of this group, version and kind, if its children are watched.
    pub(crate) fn resource(&self, group: &str, version: &str, kind: &str) -> Option<Arc<Resource>> {
        let inner = self.0.lock();
        let mut resources = inner.watches.values().map(|watch| &watch.desired.resource);
        let is_it =
            |it: &&Arc<Resource>| it.group == group && it.version == version && it.kind == kind;
        resources.find(is_it).cloned()
    }

    /// Whether all children of a resource are known.
    pub(crate) fn is_listed(&self, resource: &Resource) -> bool {
        let inner = self.0.lock();
        let mut watches =
            inner.watches.values().filter(|watch| *watch.desired.resource == *resource);
        watches.all(|watch| watch.is_listed)
    }

    /// Whether all children of these kinds are known.
    pub(crate) fn knows<'a>(&self, selectors: impl Iterator<Item = &'a Selector>) -> Knowledge {
        let inner = self.0.lock();
        let mut resources = Vec::new();
        let (mut is_partial, mut unserved) = (false, None);
        for selector in selectors {
            let mut watches = inner
                .watches
                .values()
                .filter(|watch| selector.matches(&watch.desired.resource))
                .peekable();
            if watches.peek().is_none() {
                unserved.get_or_insert_with(|| selector.to_string());
            }
            for watch in watches {
                is_partial |= !watch.is_listed;
                resources.push(Arc::clone(&watch.desired.resource));
            }
        }
        match (is_partial, unserved) {
            (true, _) => Knowledge::Partial,
            (false, Some(selector)) => Knowledge::Unserved(selector),
            (false, None) => Knowledge::Complete(resources),
        }
    }
}

impl Desired {
    /// Whether a watch of this collection reports a child.
    fn covers(&self, child: &Child) -> bool {
        let namespace = self.namespace.as_deref();
        child.resource == self.resource
            && namespace.is_none_or(|namespace| child.object.namespace() == Some(namespace))
    }
}

impl Inner {
    /// Inserts an entry; returns its owner, and the previous one if it was different.
    fn put(&mut self, key: ChildKey, entry: Entry) -> Vec<String> {
        let owner = entry.child.owner().map(str::to_owned);
        let former = self.remove(&key).filter(|former| Some(former) != owner.as_ref());
        if let Some(owner) = &owner {
            self.owners.entry(owner.clone()).or_default().insert(key.clone());
        }
        self.entries.insert(key, entry);
        owner.into_iter().chain(former).collect()
    }

    /// Removes an entry; returns its owner.
    fn remove(&mut self, key: &ChildKey) -> Option<String> {
        let owner = self.entries.remove(key)?.child.owner()?.to_owned();
        if let Some(keys) = self.owners.get_mut(&owner) {
            keys.remove(key);
            if keys.is_empty() {
                self.owners.remove(&owner);
            }
        }
        Some(owner)
    }

    fn note_deletion(&mut self, uid: &str, version: Version) {
        if self.deleted.len() >= DELETED_MAX {
            self.deleted.pop_front();
        }
        self.deleted.push_back((uid.to_owned(), version));
    }
}

/// The children of one object, for its handlers.
pub(crate) struct Family {
    pub(crate) children: Arc<ChildStore>,
    pub(crate) context: Arc<OperatorContext>,
    pub(crate) owner: String,
}

impl kopf_core::invoke::Family for Family {
    fn resource(&self, group: &str, version: &str, kind: &str) -> Option<Arc<Resource>> {
        self.children.resource(group, version, kind)
    }

    fn resources(&self, selector: &Selector) -> Vec<Arc<Resource>> {
        match self.children.knows(std::iter::once(selector)) {
            Knowledge::Complete(resources) => resources,
            Knowledge::Partial | Knowledge::Unserved(_) => Vec::new(),
        }
    }

    fn children(&self, resource: &Resource) -> Option<Vec<Object>> {
        if !self.children.is_listed(resource) {
            return None;
        }
        let all = self.children.of(&self.owner, [].iter()).into_iter();
        let is_owned = |child: &Child| child.owner() == Some(&self.owner);
        let of_kind = all.filter(|child| *child.resource == *resource && is_owned(child));
        Some(of_kind.map(|child| child.object).collect())
    }

    fn note(&self, resource: &Arc<Resource>, child: Object) {
        self.children.put(resource, child);
    }

    fn field_manager(&self) -> String {
        self.context.settings.read().persistence.field_manager.clone()
    }
}

#[cfg(test)]
mod tests;
