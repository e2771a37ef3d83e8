//! Finds objects that the operator writes repeatedly in reaction to its own writes.
//!
//! A bounded table of the recent writes requested by handlers; idle objects take no space.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::Duration;

use kopf_core::loops::{LoopDetector, LoopReport};
use kopf_model::FieldPath;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::key::Key;

/// How many objects are watched for loops at the same time.
const OBJECTS_MAX: usize = 1024;

/// The recent writes of all objects; shared by all cycles, locked briefly per write.
pub(crate) struct Loops {
    origin: Instant,
    recent: Mutex<HashMap<Key, Recent, foldhash::fast::RandomState>>,
}

/// The recent writes of one object.
#[derive(Default)]
struct Recent {
    at: Duration,
    /// Created at the second write within the window: most objects are written only once.
    detector: Option<Box<LoopDetector>>,
    /// Every write before this time is slowed down.
    slow_until: Duration,
}

/// What to do after a write that is part of a loop.
pub(crate) struct Slowdown {
    /// Set once in a while, for the log.
    pub(crate) report: Option<LoopReport>,
    /// How long to leave the object alone.
    pub(crate) pause: Duration,
}

impl Loops {
    pub(crate) fn new() -> Self {
        Self { origin: Instant::now(), recent: Mutex::default() }
    }

    /// Whether an object was written recently, so that another write may be part of a loop.
    pub(crate) fn is_recent(&self, key: Key) -> bool {
        self.recent.lock().contains_key(&key)
    }

    /// Records a write requested by handlers; returns whether it is part of a loop.
    pub(crate) fn note_write(&self, key: Key, fields: Vec<FieldPath>) -> Option<Slowdown> {
        let now = self.origin.elapsed();
        let mut recent = self.recent.lock();
        if recent.len() >= OBJECTS_MAX && !recent.contains_key(&key) {
            recent.retain(|_, known| now.saturating_sub(known.at) <= LoopDetector::WINDOW);
            if recent.len() >= OBJECTS_MAX {
                // A burst of many objects: a real loop will be detected again after it.
                recent.clear();
            }
        }
        let known = match recent.entry(key) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                entry.insert(Recent { at: now, ..Recent::default() });
                return None;
            }
        };
        let former = std::mem::replace(&mut known.at, now);
        let detector = known.detector.get_or_insert_with(|| {
            let mut detector = LoopDetector::default();
            detector.note_write(fields.clone(), former);
            Box::new(detector)
        });
        let report = detector.note_write(fields, now);
        if report.is_none() && now >= known.slow_until {
            return None;
        }
        // It stays slow while the loop continues.
        known.slow_until = now + LoopDetector::WINDOW;
        Some(Slowdown { report, pause: LoopDetector::PAUSE })
    }
}
