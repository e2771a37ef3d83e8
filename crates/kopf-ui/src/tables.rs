//! A small row per object of each watched resource, with revisions: repeated requests get only what
//! has changed.
//!
//! Pure. Filled by `follower`, read by the pages. Bounded: beyond a number of rows, further
//! objects are only counted.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use kopf_model::Object;
use serde::Serialize;

use crate::object_state::{ObjectState, Phase, state_of};
use crate::stored_state::{Handled, StorageLayout, StoredState};
use kopf_engine::journal::{Chronicle, Overview};

/// The maximum total number of rows.
const ROWS_MAX: usize = 100_000;
/// How many removed rows are kept per table; a request for older ones gets all rows.
const REMOVED_MAX: usize = 10_000;

/// Namespace and name.
pub(crate) type Key = (Option<String>, String);

/// All tables, by resource as `plural.group`.
#[derive(Default)]
pub(crate) struct Tables {
    revision: u64,
    rows: usize,
    tables: BTreeMap<String, Table>,
    /// The operator's memory, by resource and key; also of objects without a row.
    memories: HashMap<(String, Key), Chronicle>,
    /// The sequence number of the newest entry.
    sequence: u64,
    /// The number of objects without a row, since there are too many.
    pub(crate) left_out: usize,
}

/// The objects of one resource.
#[derive(Default)]
struct Table {
    rows: HashMap<Key, Kept>,
    removed: VecDeque<(u64, Key)>,
    /// The revision before which removals are no longer known.
    forgotten: u64,
}

struct Kept {
    revision: u64,
    stored: StoredState,
    state: ObjectState,
}

/// One object.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
    pub(crate) created: Option<String>,
    #[serde(flatten)]
    pub(crate) state: ObjectState,
}

/// The changes in a table.
#[derive(Debug, Serialize)]
pub(crate) struct Changes {
    /// The revision for the next request.
    pub(crate) revision: u64,
    /// Whether these are all rows, replacing the known ones.
    pub(crate) complete: bool,
    pub(crate) rows: Vec<Row>,
    pub(crate) removed: Vec<Key>,
    pub(crate) left_out: usize,
}

impl Tables {
    /// Sets the newest state of an object.
    pub(crate) fn put(&mut self, resource: &Arc<str>, layout: &StorageLayout, object: &Object) {
        let key = (object.namespace().map(str::to_owned), object.name().to_owned());
        let mut stored = layout.read(object);
        if stored.handled == Handled::Never && !self.may_be_handled(resource, layout) {
            stored.handled = Handled::Unknown;
        }
        let memory = self.memories.get(&(resource.to_string(), key.clone()));
        let state = state_of(&stored, memory);
        let table = self.tables.entry(resource.to_string()).or_default();
        let known = table.rows.get(&key);
        if known.is_some_and(|known| known.stored == stored && known.state == state) {
            return;
        }
        if known.is_none() {
            if self.rows >= ROWS_MAX {
                self.left_out += 1;
                return;
            }
            self.rows += 1;
        }
        self.revision += 1;
        table.rows.insert(key, Kept { revision: self.revision, stored, state });
    }

    /// Whether objects of a resource may have a change handler.
    fn may_be_handled(&self, resource: &str, layout: &StorageLayout) -> bool {
        let plural = |name: &'_ str| name.split('.').next().unwrap_or_default().to_owned();
        let plurals: Vec<String> = self.tables.keys().map(|name| plural(name)).collect();
        let plurals: Vec<&str> = plurals.iter().map(String::as_str).collect();
        layout.may_be_handled(&plural(resource), &plurals)
    }

    /// Removes an object.
    pub(crate) fn remove(&mut self, resource: &str, key: &Key) {
        let Some(table) = self.tables.get_mut(resource) else { return };
        if table.rows.remove(key).is_none() {
            return;
        }
        self.rows -= 1;
        self.revision += 1;
        table.removed.push_back((self.revision, key.clone()));
        if table.removed.len() > REMOVED_MAX
            && let Some((revision, _)) = table.removed.pop_front()
        {
            table.forgotten = revision;
        }
    }

    /// Removes the objects of one namespace, or of all, that are not in a complete list.
    pub(crate) fn retain(
        &mut self,
        resource: &str,
        namespace: Option<&str>,
        is_listed: impl Fn(&Key) -> bool,
    ) {
        let Some(table) = self.tables.get(resource) else { return };
        let is_there = |key: &Key| namespace.is_none() || key.0.as_deref() == namespace;
        let gone = table.rows.keys().filter(|key| is_there(key) && !is_listed(key));
        let gone: Vec<Key> = gone.cloned().collect();
        for key in &gone {
            self.remove(resource, key);
        }
    }

    /// Creates a table for each of these resources, and removes all others.
    pub(crate) fn keep(&mut self, resources: &[Arc<str>]) {
        let unwanted: Vec<String> = self
            .tables
            .keys()
            .filter(|it| !resources.iter().any(|r| **r == **it))
            .cloned()
            .collect();
        for resource in unwanted {
            if let Some(table) = self.tables.remove(&resource) {
                self.rows -= table.rows.len();
            }
        }
        for resource in resources {
            self.tables.entry(resource.to_string()).or_default();
        }
    }

    /// The sequence number of the newest entry of the operator's memory.
    pub(crate) fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Adds the operator's memory; replaces it if the operator has restarted.
    pub(crate) fn remember(&mut self, news: Overview) {
        if news.sequence < self.sequence {
            self.memories.clear();
        }
        self.sequence = news.sequence;
        for chronicle in news.objects {
            let key = (chronicle.namespace.clone(), chronicle.name.clone());
            if let Some(table) = self.tables.get_mut(&chronicle.resource)
                && let Some(kept) = table.rows.get_mut(&key)
            {
                let state = state_of(&kept.stored, Some(&chronicle));
                if state != kept.state {
                    self.revision += 1;
                    (kept.state, kept.revision) = (state, self.revision);
                }
            }
            self.memories.insert((chronicle.resource.clone(), key), chronicle);
        }
        // The operator drops the oldest entries, and so does the UI.
        if self.memories.len() > ROWS_MAX {
            self.memories.clear();
        }
    }

    /// Drops the operator's memory, since it is a different operator now.
    pub(crate) fn forget(&mut self) {
        self.memories.clear();
        self.sequence = 0;
    }

    /// The changes in a table since a revision.
    pub(crate) fn since(&self, resource: &str, revision: u64) -> Option<Changes> {
        let table = self.tables.get(resource)?;
        let complete = revision == 0 || revision < table.forgotten || revision > self.revision;
        let is_news = |kept: &Kept| complete || kept.revision > revision;
        let rows =
            table.rows.iter().filter(|(_, kept)| is_news(kept)).map(|(key, kept)| row(key, kept));
        let removed = table.removed.iter().filter(|(at, _)| !complete && *at > revision);
        Some(Changes {
            revision: self.revision,
            complete,
            rows: rows.collect(),
            removed: removed.map(|(_, key)| key.clone()).collect(),
            left_out: self.left_out,
        })
    }

    /// The number of objects of each resource by state.
    pub(crate) fn counts(&self) -> BTreeMap<&str, BTreeMap<Phase, usize>> {
        let count = |table: &Table| {
            let mut counts = BTreeMap::new();
            for kept in table.rows.values() {
                *counts.entry(kept.state.phase).or_default() += 1;
            }
            counts
        };
        self.tables.iter().map(|(resource, table)| (resource.as_str(), count(table))).collect()
    }

    /// The objects of a resource that have failed, or wait for their next attempt.
    pub(crate) fn failing(&self, resource: &str) -> Vec<Key> {
        let is_failing = |kept: &Kept| kept.state.phase <= Phase::Retrying;
        let rows = self.tables.get(resource).into_iter().flat_map(|table| &table.rows);
        let mut keys: Vec<Key> =
            rows.filter(|(_, kept)| is_failing(kept)).map(|(key, _)| key.clone()).collect();
        keys.sort();
        keys
    }

    /// All rows that are not settled.
    pub(crate) fn unsettled(&self) -> impl Iterator<Item = (&str, Row)> {
        self.tables.iter().flat_map(|(resource, table)| {
            let unsettled = table.rows.iter().filter(|(_, it)| it.state.phase < Phase::Paused);
            unsettled.map(|(key, kept)| (resource.as_str(), row(key, kept)))
        })
    }
}

fn row(key: &Key, kept: &Kept) -> Row {
    Row {
        namespace: key.0.clone(),
        name: key.1.clone(),
        created: kept.stored.created.clone(),
        state: kept.state.clone(),
    }
}

#[cfg(test)]
mod tests;
