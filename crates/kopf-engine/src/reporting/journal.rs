//! The recent history of objects, for users who ask what happened to one and why.
//!
//! Cycles and daemons write, the debug endpoint reads. Bounded in objects, entries and bytes, and
//! empty unless it can be read. Decides nothing, and nothing depends on it.

mod calls;

use std::collections::{BTreeMap, HashMap, VecDeque};

use kopf_core::occasion::Subject;
use kopf_model::{Object, Resource, Timestamp};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

pub use calls::RunningCall;

/// How many objects are remembered; those without changes for the longest time are dropped first.
const OBJECTS_MAX: usize = 1000;
/// How many entries are kept per object.
const ENTRIES_MAX: usize = 24;
/// How many causes are kept for longer than other entries.
const CAUSES_KEPT: usize = ENTRIES_MAX / 2;
/// How many changed or written fields are kept per entry.
pub(crate) const FIELDS_MAX: usize = 12;
/// Longer texts are truncated.
pub(crate) const TEXT_MAX: usize = 240;

/// The remembered history of one object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Chronicle {
    /// `plural.group`, or the plural alone for the core group.
    pub resource: String,
    /// The kind.
    pub kind: String,
    /// The namespace, if it has one.
    pub namespace: Option<String>,
    /// The name.
    pub name: String,
    /// The uid; a new object of the same name starts a new history.
    pub uid: String,
    /// Increases with every change of any object.
    pub sequence: u64,
    /// What happened, the oldest first.
    pub entries: VecDeque<Entry>,
    /// The state of the object at the end of its last cycle.
    pub situation: Situation,
    /// The calls of change handlers that have not ended yet.
    #[serde(default)]
    pub running: Vec<RunningCall>,
}

/// One entry of the history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The time.
    pub at: Timestamp,
    /// The content.
    #[serde(flatten)]
    pub episode: Episode,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Episode {
    /// A change was detected.
    Cause {
        /// `create`, `update`, `delete` or `resume`.
        reason: String,
        /// The differences from the last-handled state.
        changes: Vec<FieldChange>,
        /// How many more fields differ.
        more: usize,
        /// The selected handlers.
        selected: Vec<String>,
        /// The handlers for such changes that were not selected.
        filtered: Vec<Filtered>,
    },
    /// A handler was called.
    Attempt {
        /// The id of the handler.
        handler: String,
        /// The number of the attempt, from 1.
        number: u32,
        /// How long it took.
        milliseconds: u64,
        /// How it ended.
        ending: AttemptEnding,
        /// Why it failed.
        error: Option<String>,
        /// When it is retried.
        next_at: Option<Timestamp>,
        /// Whether such calls are made all the time, not because of a change: those of indexes,
        /// desired children, timers and the like. Only the last ones of each handler are kept.
        #[serde(default)]
        routine: bool,
    },
    /// The object was written.
    Write {
        /// The written fields.
        fields: Vec<String>,
        /// How many more fields were written.
        more: usize,
        /// The old and new values of these fields, as far as the patch shows them.
        #[serde(default)]
        changes: Vec<FieldChange>,
    },
    /// The object could not be handled; it is retried after a pause.
    Trouble {
        /// The error.
        error: String,
    },
    /// The object is gone from the cluster.
    Gone,
}

/// A changed field.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FieldChange {
    /// The path of the field.
    pub field: String,
    /// The old value as JSON, if there was one.
    pub old: Option<String>,
    /// The new value as JSON, if there is one.
    pub new: Option<String>,
}

/// A handler that does not apply to an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filtered {
    /// The id of the handler.
    pub handler: String,
    /// The reason.
    pub why: String,
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptEnding {
    /// It succeeded.
    Success,
    /// It will be retried.
    Retry,
    /// It failed permanently.
    Failure,
}

/// The state of an object at the end of its last cycle.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Situation {
    /// When the object is handled again, if nothing happens before.
    pub wake_at: Option<Timestamp>,
    /// Why it could not be handled, if that is the case.
    pub error: Option<String>,
    /// Whether it is gone from the cluster.
    pub gone: bool,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// Whether our finalizer holds it.
    pub held: bool,
    /// The handlers whose conditions it does not meet in its current state.
    pub filtered: Vec<Filtered>,
    /// The running daemons and timers.
    pub background: Vec<String>,
    /// Its desired children.
    pub children: Vec<ChildState>,
    /// The errors of desired handlers, by handler.
    pub desired_failures: BTreeMap<String, String>,
}

/// A desired child.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChildState {
    /// Kind and name.
    pub child: String,
    /// What it waits for; `None` if it is ready.
    pub waiting: Option<String>,
    /// The message of the server if it rejected the child.
    pub refused: Option<String>,
    /// When it is applied again.
    pub next_at: Option<Timestamp>,
}

/// The objects with changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Overview {
    /// The highest sequence of all objects.
    pub sequence: u64,
    /// The objects with changes since the requested sequence, the latest last.
    pub objects: Vec<Chronicle>,
}

/// The response about an object without a remembered history.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Unknown {
    /// Whether objects of this resource in this namespace are watched at all.
    pub watched: bool,
    /// The labels that all handlers require, if any: other objects are not even watched.
    pub labels: Option<String>,
    /// The fields that all handlers require, likewise.
    pub fields: Option<String>,
}

/// Remembers the recent history of objects, or nothing at all.
///
/// Written by cycles and daemons, read by the debug endpoint; locked only briefly.
pub(crate) struct Journal(Option<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    sequence: u64,
    objects: HashMap<Place, Chronicle>,
    /// Maps the last sequence of an object to its place: the order in which they are dropped.
    order: BTreeMap<u64, Place>,
}

/// Resource, namespace and name.
type Place = (String, Option<String>, String);

impl Journal {
    /// Creates a journal that remembers only if it can be read.
    pub(crate) fn new(is_wanted: bool) -> Self {
        Self(is_wanted.then(Mutex::default))
    }

    /// Whether anything is remembered at all.
    pub(crate) fn is_wanted(&self) -> bool {
        self.0.is_some()
    }

    /// Adds an entry; it is created only if it is remembered.
    pub(crate) fn note(&self, subject: &Subject, at: Timestamp, make: impl FnOnce() -> Episode) {
        let Some(inner) = &self.0 else { return };
        let episode = make();
        inner.lock().touch(&subject.resource, &subject.object, |chronicle| {
            if chronicle.repeats(&episode) {
                return;
            }
            chronicle.forget_call(&episode);
            chronicle.make_room_for(&episode);
            chronicle.entries.push_back(Entry { at, episode });
        });
    }

    /// Replaces the situation; it is created only if it is remembered.
    pub(crate) fn conclude(&self, subject: &Subject, make: impl FnOnce() -> Situation) {
        let Some(inner) = &self.0 else { return };
        let situation = make();
        inner.lock().touch(&subject.resource, &subject.object, |it| {
            it.situation = situation;
            // Cancelled calls are no longer running.
            it.running.clear();
        });
    }

    /// The history of one object.
    pub(crate) fn of(
        &self,
        resource: &str,
        namespace: Option<&str>,
        name: &str,
    ) -> Option<Chronicle> {
        let place = (resource.to_owned(), namespace.map(str::to_owned), name.to_owned());
        self.0.as_ref()?.lock().objects.get(&place).cloned()
    }

    /// The objects with changes since a sequence.
    pub(crate) fn since(&self, sequence: u64) -> Overview {
        let Some(inner) = &self.0 else { return Overview { sequence: 0, objects: Vec::new() } };
        let inner = inner.lock();
        let places = inner.order.range(sequence.saturating_add(1)..).map(|(_, place)| place);
        let objects = places.filter_map(|place| inner.objects.get(place).cloned()).collect();
        Overview { sequence: inner.sequence, objects }
    }
}

impl Inner {
    fn touch(&mut self, resource: &Resource, object: &Object, change: impl FnOnce(&mut Chronicle)) {
        let place = (
            resource_name(resource),
            object.namespace().map(str::to_owned),
            object.name().to_owned(),
        );
        let chronicle = self
            .objects
            .entry(place.clone())
            .and_modify(|known| {
                if known.uid != object.uid() {
                    *known =
                        Chronicle { sequence: known.sequence, ..Chronicle::new(&place, object) };
                }
            })
            .or_insert_with(|| Chronicle::new(&place, object));
        let former = chronicle.sequence;
        change(chronicle);
        self.sequence += 1;
        chronicle.sequence = self.sequence;
        self.order.remove(&former);
        self.order.insert(self.sequence, place);
        if self.objects.len() > OBJECTS_MAX
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.objects.remove(&oldest);
        }
    }
}

impl Chronicle {
    fn new(place: &Place, object: &Object) -> Self {
        let (resource, namespace, name) = place.clone();
        Self {
            resource,
            kind: object.kind().to_owned(),
            namespace,
            name,
            uid: object.uid().to_owned(),
            sequence: 0,
            entries: VecDeque::new(),
            situation: Situation::default(),
            running: Vec::new(),
        }
    }

    /// Drops the least important entry: causes are kept for longer than what follows from them.
    fn make_room_for(&mut self, episode: &Episode) {
        let repeated = self.entries.iter().position(|entry| entry.episode.is_routine_as(episode));
        if let Some(index) = repeated {
            self.entries.remove(index);
        }
        if self.entries.len() < ENTRIES_MAX {
            return;
        }
        let is_cause = |entry: &Entry| matches!(entry.episode, Episode::Cause { .. });
        let are_causes_few = self.entries.iter().filter(|it| is_cause(it)).count() <= CAUSES_KEPT;
        let is_routine = |entry: &Entry| entry.episode.is_routine();
        let least = self
            .entries
            .iter()
            .position(is_routine)
            .or_else(|| self.entries.iter().position(|it| are_causes_few && !is_cause(it)));
        self.entries.remove(least.unwrap_or(0));
    }

    /// Whether an entry is already known: every retry detects the same cause again.
    fn repeats(&self, episode: &Episode) -> bool {
        if !matches!(episode, Episode::Cause { .. }) {
            return false;
        }
        let is_cause = |entry: &&Entry| matches!(entry.episode, Episode::Cause { .. });
        self.entries.iter().rev().find(is_cause).is_some_and(|entry| entry.episode == *episode)
    }
}

impl Episode {
    fn is_routine(&self) -> bool {
        matches!(self, Self::Attempt { routine: true, .. })
    }

    /// Whether both are routine calls of the same handler with the same ending.
    fn is_routine_as(&self, other: &Self) -> bool {
        let (
            Self::Attempt { handler, ending, routine: true, .. },
            Self::Attempt { handler: other_handler, ending: other_ending, routine: true, .. },
        ) = (self, other)
        else {
            return false;
        };
        handler == other_handler && ending == other_ending
    }
}

/// `plural.group`, or the plural alone for the core group.
#[must_use]
pub fn resource_name(resource: &Resource) -> String {
    match resource.group.as_str() {
        "" => resource.plural.clone(),
        group => format!("{}.{group}", resource.plural),
    }
}

/// A text that fits into the journal.
pub(crate) fn shorten(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(TEXT_MAX) {
        text.truncate(end);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests;
