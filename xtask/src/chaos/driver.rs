//! Makes the edits of the schedule, and records what the server has acknowledged.

use std::time::Duration;

use anyhow::{Result, bail};
use serde_json::{Value, json};

use super::api::{Api, MERGE};
use super::schedule::Edit;
use super::watcher::Book;
use super::world;

/// How long the server may be unavailable during one edit.
const PATIENCE: Duration = Duration::from_secs(240);
/// The value of a new object, unless the edit specifies another.
const FIRST_VALUE: i64 = 1;
/// The flaky handler fails twice for this value.
const FAILS_TWICE: i64 = 2;
/// After this time, most handlers have succeeded, and the flaky one waits for its next attempt.
const MIDWAY: Duration = Duration::from_millis(700);
/// The number of objects edited together at the end: few enough to be midway at the same time.
const GROUP: usize = 3;

/// The number of acknowledged edits.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) created: u32,
    pub(super) updated: u32,
    pub(super) deleted: u32,
    /// Edits of children.
    pub(super) drifts: u32,
    /// Creations that had to wait for the previous object of the name.
    pub(super) blocked: u32,
}

impl Counts {
    pub(super) fn edits(&self) -> u32 {
        self.created + self.updated + self.deleted
    }
}

#[derive(Clone, Default)]
struct Slot {
    /// The state that the server has acknowledged, if the object exists.
    state: Option<Value>,
    /// The value before the last step.
    previous: i64,
}

pub(super) struct Driver {
    api: Api,
    book: Book,
    slots: Vec<Slot>,
    pub(super) counts: Counts,
    /// Discrepancies between acknowledged edits and the server.
    pub(super) complaints: Vec<String>,
}

impl Driver {
    pub(super) fn new(api: Api, book: Book, slots: usize) -> Self {
        let slots = vec![Slot::default(); slots];
        Self { api, book, slots, counts: Counts::default(), complaints: Vec::new() }
    }

    /// Creates objects in every second slot.
    pub(super) async fn fill(&mut self) -> Result<()> {
        for slot in (0..self.slots.len()).step_by(2) {
            self.apply(slot, &Edit::Value(i64::try_from(slot)?)).await?;
        }
        Ok(())
    }

    /// Resets all objects, which were deleted with their definition.
    pub(super) fn forget(&mut self) {
        self.slots.fill(Slot::default());
    }

    pub(super) async fn apply(&mut self, slot: usize, edit: &Edit) -> Result<()> {
        let Some(state) = self.slots[slot].state.clone() else {
            return match edit {
                Edit::Drift { .. } => Ok(()),
                edit => self.create(slot, edit).await,
            };
        };
        match edit {
            Edit::Delete => self.delete(slot).await,
            Edit::Drift { delete } => self.drift(slot, *delete).await,
            edit => {
                let value = state["spec"]["value"].as_i64().unwrap_or_default();
                let patch = patch(edit, value, self.slots[slot].previous);
                if *edit == Edit::Step {
                    self.slots[slot].previous = value;
                }
                self.patch(slot, state, &patch).await
            }
        }
    }

    async fn create(&mut self, slot: usize, edit: &Edit) -> Result<()> {
        let mut state = json!({"spec": {"value": FIRST_VALUE}, "labels": {}});
        merge(&mut state, &patch(edit, FIRST_VALUE, FIRST_VALUE));
        let name = name(slot);
        let body = world::gadget(&name, &state);
        let json = "application/json";
        let answer = self.api.send("POST", world::GADGETS, json, Some(&body), PATIENCE).await?;
        let (status, object) = match answer {
            // Another object with the name, or this one from an attempt without a response.
            (409, _) => self.api.get(&path(&name), PATIENCE).await?,
            answer => answer,
        };
        let is_new = object["metadata"].get("deletionTimestamp").is_none();
        match status {
            200 | 201 if is_new && world::state(&object) == state => {
                self.book.note(&object, false);
                self.slots[slot].state = Some(state);
                self.counts.created += 1;
            }
            200 | 201 | 404 | 405 => self.counts.blocked += 1,
            _ => bail!("could not create {name}: {status} {object}"),
        }
        Ok(())
    }

    async fn patch(&mut self, slot: usize, mut state: Value, patch: &Value) -> Result<()> {
        let name = name(slot);
        let body = json!({"spec": patch["spec"], "metadata": {"labels": patch["labels"]}});
        let body = without_nulls_at_the_top(body);
        match self.api.send("PATCH", &path(&name), MERGE, Some(&body), PATIENCE).await? {
            (200, object) => {
                self.book.note(&object, false);
                merge(&mut state, patch);
                self.slots[slot].state = Some(state);
                self.counts.updated += 1;
            }
            (404, _) => {
                self.complaints.push(format!("{name} was acknowledged, and is not there"));
                self.slots[slot] = Slot::default();
            }
            (status, answer) => bail!("could not edit {name}: {status} {answer}"),
        }
        Ok(())
    }

    async fn delete(&mut self, slot: usize) -> Result<()> {
        let name = name(slot);
        let json = "application/json";
        match self.api.send("DELETE", &path(&name), json, None, PATIENCE).await? {
            (200 | 202 | 404, _) => {
                self.slots[slot] = Slot::default();
                self.counts.deleted += 1;
                Ok(())
            }
            (status, answer) => bail!("could not delete {name}: {status} {answer}"),
        }
    }

    async fn drift(&mut self, slot: usize, is_deletion: bool) -> Result<()> {
        let path = format!("{}/{}", world::CONFIG_MAPS, name(slot));
        let body = json!({"data": {"value": "edited by somebody"}});
        let (method, body) = if is_deletion { ("DELETE", None) } else { ("PATCH", Some(&body)) };
        // If there is no child, there is nothing to edit.
        let (status, _) = self.api.send(method, &path, MERGE, body, PATIENCE).await?;
        self.counts.drifts += u32::from(status == 200);
        Ok(())
    }

    /// Makes the last edits: while some handlers have succeeded and others wait, values change
    /// again, and some change back.
    pub(super) async fn finish(&mut self) -> Result<()> {
        let living = |slots: &[Slot]| -> Vec<(usize, i64)> {
            let value = |slot: &Slot| slot.state.as_ref()?["spec"]["value"].as_i64();
            let values = slots.iter().enumerate();
            values.filter_map(|(index, slot)| Some((index, value(slot)?))).collect()
        };
        let before = living(&self.slots);
        for group in before.chunks(GROUP) {
            for (slot, value) in group {
                let next = value - value.rem_euclid(3) + 3 + FAILS_TWICE;
                self.apply(*slot, &Edit::Value(next)).await?;
            }
            tokio::time::sleep(MIDWAY).await;
            for (slot, value) in group {
                let is_back = slot % 3 == 0;
                let last = if is_back { *value } else { value + 1000 };
                self.apply(*slot, &Edit::Value(last)).await?;
            }
        }
        Ok(())
    }

    /// Compares the acknowledged with the actual state.
    pub(super) fn check(&mut self, objects: &[Value]) {
        for (slot, expected) in self.slots.iter().enumerate() {
            let Some(expected) = &expected.state else { continue };
            let name = name(slot);
            let found = objects.iter().find(|object| object["metadata"]["name"] == name.as_str());
            match found.map(world::state) {
                Some(state) if state == *expected => {}
                Some(state) => {
                    self.complaints.push(format!("{name} is {state}, acknowledged was {expected}"));
                }
                None => self.complaints.push(format!("{name} was acknowledged, and is not there")),
            }
        }
    }
}

fn name(slot: usize) -> String {
    format!("gadget-{slot}")
}

fn path(name: &str) -> String {
    format!("{}/{name}", world::GADGETS)
}

/// The edit as a patch.
fn patch(edit: &Edit, value: i64, previous: i64) -> Value {
    match edit {
        Edit::Value(value) => json!({"spec": {"value": value}}),
        Edit::Step => json!({"spec": {"value": value + 1}}),
        Edit::Back => json!({"spec": {"value": previous}}),
        Edit::Several { value, color, note } => {
            json!({"spec": {"value": value, "color": color, "note": note.to_string()}})
        }
        Edit::Color(color) => json!({"spec": {"color": color}}),
        Edit::Note(note) => json!({"spec": {"note": note.to_string()}}),
        Edit::Tier(tier) => json!({"labels": {"tier": tier}}),
        Edit::Delete | Edit::Drift { .. } => json!({}),
    }
}

fn without_nulls_at_the_top(body: Value) -> Value {
    let mut body = body;
    if body["spec"].is_null() {
        body.as_object_mut().map(|body| body.remove("spec"));
    }
    if body["metadata"]["labels"].is_null() {
        body.as_object_mut().map(|body| body.remove("metadata"));
    }
    body
}

/// Applies a merge patch of two levels: null removes.
fn merge(state: &mut Value, patch: &Value) {
    for (part, fields) in patch.as_object().into_iter().flatten() {
        for (field, value) in fields.as_object().into_iter().flatten() {
            match (value, state[part].as_object_mut()) {
                (Value::Null, Some(target)) => {
                    target.remove(field);
                }
                (value, Some(target)) => {
                    target.insert(field.clone(), value.clone());
                }
                (_, None) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_and_its_way_back_restore_the_state() {
        let mut state = json!({"spec": {"value": 9, "color": "red"}, "labels": {}});
        let before = state.clone();
        merge(&mut state, &patch(&Edit::Step, 9, 1));
        assert_eq!(state["spec"]["value"], 10);
        merge(&mut state, &patch(&Edit::Back, 10, 9));
        assert_eq!(state, before);
    }

    #[test]
    fn null_removes_a_field_and_a_label() {
        let mut state = json!({"spec": {"value": 9, "color": "red"}, "labels": {"tier": "gold"}});
        merge(&mut state, &patch(&Edit::Color(None), 9, 9));
        merge(&mut state, &patch(&Edit::Tier(None), 9, 9));
        assert_eq!(state, json!({"spec": {"value": 9}, "labels": {}}));
    }
}
