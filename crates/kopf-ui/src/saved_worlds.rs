//! Saved states of an embedded cluster, as text in memory.

use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::{Value, json};

/// How many states are kept; the oldest is dropped first.
const WORLDS_MAX: usize = 10;

/// The saved states.
#[derive(Default)]
pub(crate) struct SavedWorlds(Mutex<Vec<SavedWorld>>);

struct SavedWorld {
    id: u64,
    name: String,
    at: Timestamp,
    objects: usize,
    text: String,
}

impl SavedWorlds {
    /// The saved states, newest first.
    pub(crate) fn list(&self) -> Value {
        let worlds = self.0.lock();
        let shown = worlds.iter().rev().map(|world| {
            json!({
                "id": world.id, "name": world.name, "at": world.at, "objects": world.objects,
                "bytes": world.text.len(),
            })
        });
        shown.collect()
    }

    /// Saves a state and returns its id.
    pub(crate) fn keep(&self, name: Option<&str>, objects: usize, text: String) -> u64 {
        let mut worlds = self.0.lock();
        let id = worlds.last().map_or(1, |last| last.id + 1);
        let name = name.map_or_else(|| format!("world {id}"), str::to_owned);
        worlds.push(SavedWorld { id, name, at: Timestamp::now(), objects, text });
        if worlds.len() > WORLDS_MAX {
            worlds.remove(0);
        }
        id
    }

    /// The text of a saved state.
    pub(crate) fn text(&self, id: u64) -> Option<String> {
        let worlds = self.0.lock();
        worlds.iter().find(|world| world.id == id).map(|world| world.text.clone())
    }
}
