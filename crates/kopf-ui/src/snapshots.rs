//! Saved states of an embedded cluster, as text in memory.

use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::{Value, json};

/// How many states are kept; the oldest is dropped first.
const SNAPSHOTS_MAX: usize = 10;

/// The saved states.
#[derive(Default)]
pub(crate) struct Snapshots(Mutex<Vec<Snapshot>>);

struct Snapshot {
    id: u64,
    name: String,
    at: Timestamp,
    objects: usize,
    text: String,
}

impl Snapshots {
    /// The saved states, newest first.
    pub(crate) fn list(&self) -> Value {
        let snapshots = self.0.lock();
        let shown = snapshots.iter().rev().map(|snapshot| {
            json!({
                "id": snapshot.id, "name": snapshot.name, "at": snapshot.at, "objects": snapshot.objects,
                "bytes": snapshot.text.len(),
            })
        });
        shown.collect()
    }

    /// Saves a state and returns its id.
    pub(crate) fn keep(&self, name: Option<&str>, objects: usize, text: String) -> u64 {
        let mut snapshots = self.0.lock();
        let id = snapshots.last().map_or(1, |last| last.id + 1);
        let name = name.map_or_else(|| format!("snapshot {id}"), str::to_owned);
        snapshots.push(Snapshot { id, name, at: Timestamp::now(), objects, text });
        if snapshots.len() > SNAPSHOTS_MAX {
            snapshots.remove(0);
        }
        id
    }

    /// The text of a saved state.
    pub(crate) fn text(&self, id: u64) -> Option<String> {
        let snapshots = self.0.lock();
        snapshots.iter().find(|snapshot| snapshot.id == id).map(|snapshot| snapshot.text.clone())
    }
}
