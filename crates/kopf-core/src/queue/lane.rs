//! Keys that wait to run: first in, first out within a group; the groups take turns.

use std::collections::{HashMap, VecDeque};

use foldhash::fast::RandomState;

use super::QueueKey;

/// One line of waiting keys per group.
pub(super) struct Lane<K: QueueKey> {
    turns: VecDeque<K::Group>,
    groups: HashMap<K::Group, VecDeque<K>, RandomState>,
    /// A short empty line for the next group: most keys wait alone.
    spare: VecDeque<K>,
}

/// The maximum capacity of the spare line.
const SPARE_MAX: usize = 64;

impl<K: QueueKey> Default for Lane<K> {
    fn default() -> Self {
        Self { turns: VecDeque::new(), groups: HashMap::default(), spare: VecDeque::new() }
    }
}

impl<K: QueueKey> Lane<K> {
    /// Appends a key to the line of its group.
    pub(super) fn push(&mut self, key: K) {
        let group = key.group();
        match self.groups.get_mut(&group) {
            Some(line) => line.push_back(key),
            None => {
                let mut line = std::mem::take(&mut self.spare);
                line.push_back(key);
                self.groups.insert(group.clone(), line);
                self.turns.push_back(group);
            }
        }
    }

    /// Takes the first key of the next group. Drops keys that are no longer valid because they were
    /// taken from another lane or forgotten.
    pub(super) fn pop(&mut self, is_valid: impl Fn(&K) -> bool) -> Option<K> {
        while let Some(group) = self.turns.pop_front() {
            let line = self.groups.get_mut(&group).expect("a group with turns has a line");
            let mut found = None;
            while let Some(key) = line.pop_front() {
                if is_valid(&key) {
                    found = Some(key);
                    break;
                }
            }
            if line.is_empty() {
                let emptied = self.groups.remove(&group).unwrap_or_default();
                if emptied.capacity() <= SPARE_MAX {
                    self.spare = emptied;
                }
            } else {
                self.turns.push_back(group);
            }
            if found.is_some() {
                return found;
            }
        }
        None
    }
}
