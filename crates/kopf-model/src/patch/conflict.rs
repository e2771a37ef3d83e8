//! Records what each writer requests in a cycle, to detect writers that request different things.
//!
//! The later writer wins, as in any merge. The loss is only logged.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::condition::{CONDITIONS, ConditionChanges};
use crate::field::FieldPath;
use crate::merge;

/// Two writers request different things in one cycle.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Conflict {
    /// The field, or the condition identified by its type.
    pub field: FieldPath,
    /// The writer that requested first.
    pub earlier: Arc<str>,
    /// The writer that requested later, and wins.
    pub later: Arc<str>,
}

/// What each writer has requested in this cycle so far.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    writers: Vec<(Arc<str>, Map<String, Value>, ConditionChanges)>,
    pub(super) conflicts: Vec<Conflict>,
}

impl Ledger {
    /// Records the requests of a writer, and their conflicts with those of others.
    pub(super) fn note(
        &mut self,
        writer: &Arc<str>,
        asked: &Map<String, Value>,
        conditions: &ConditionChanges,
    ) {
        for (earlier, known, known_conditions) in &self.writers {
            if earlier == writer {
                continue;
            }
            let mut fields = clashes(known, asked);
            let above = FieldPath::from_keys(["status", CONDITIONS]);
            let kinds = known_conditions.clashes(conditions);
            fields.extend(kinds.iter().map(|kind| above.join(kind)));
            for field in fields {
                let (earlier, later) = (Arc::clone(earlier), Arc::clone(writer));
                let conflict = Conflict { field, earlier, later };
                if !self.conflicts.contains(&conflict) {
                    self.conflicts.push(conflict);
                }
            }
        }
        match self.writers.iter_mut().find(|(known, ..)| known == writer) {
            Some((_, known, known_conditions)) => {
                merge::combine(known, asked.clone());
                known_conditions.absorb(conditions.clone());
            }
            None => self.writers.push((Arc::clone(writer), asked.clone(), conditions.clone())),
        }
    }
}

/// The fields that two merge patches set to different values.
///
/// Lists conflict if the later one lacks an item of the earlier one: an extended list loses
/// nothing.
#[must_use]
pub fn clashes(earlier: &Map<String, Value>, later: &Map<String, Value>) -> Vec<FieldPath> {
    let mut fields = Vec::new();
    collect(earlier, later, &FieldPath::default(), &mut fields);
    fields
}

fn collect(
    earlier: &Map<String, Value>,
    later: &Map<String, Value>,
    above: &FieldPath,
    fields: &mut Vec<FieldPath>,
) {
    for (key, new) in later {
        let Some(old) = earlier.get(key) else { continue };
        match (old, new) {
            (Value::Object(old), Value::Object(new)) => {
                collect(old, new, &above.join(key), fields);
            }
            (Value::Array(old), Value::Array(new)) if old.iter().all(|it| new.contains(it)) => {}
            (old, new) if old == new => {}
            _ => fields.push(above.join(key)),
        }
    }
}

#[cfg(test)]
mod tests;
