//! Turns the patch of a cycle into requests: at most one per (sub)resource, none without effect.
//!
//! Pure. The engine asks for the next request with the freshest known state of the object, sends
//! it, and comes back with the answer. A conflict is answered by asking again with a newer state.

use std::panic::{AssertUnwindSafe, catch_unwind};

use kopf_model::json_patch::{self, Operation};
use kopf_model::{ConditionChanges, Object, Patch, Resource, Transformation, merge};
use serde_json::{Map, Value, json};

use crate::invoke::panic_text;

/// One request to be sent.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    /// Whether it goes to the status subresource.
    pub to_status: bool,
    /// Its body.
    pub content: Content,
}

/// The body of a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// `application/merge-patch+json`
    Merge(Map<String, Value>),
    /// `application/json-patch+json`, with a test of the version first.
    Json(Vec<Operation>),
}

/// The requests of one patch.
#[derive(Clone, Debug)]
pub struct Writer {
    patch: Patch,
    has_status: bool,
    pending: Pending,
    panics: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Pending {
    main: bool,
    status: bool,
}

/// Which of the two documents of a resource with a status subresource.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Main,
    Status,
}

impl Writer {
    /// Requests for a patch of an object of this resource.
    #[must_use]
    pub fn new(patch: Patch, resource: &Resource) -> Self {
        let has_status = resource.subresources.contains("status");
        let is_empty = patch.is_empty();
        let pending = Pending { main: !is_empty, status: !is_empty && has_status };
        Self { patch, has_status, pending, panics: Vec::new() }
    }

    /// The next request, or none when nothing is left to be changed.
    ///
    /// `freshest` is the newest known state: of the cycle at first, then of the last answer, or of
    /// a newer event after a conflict. Transformations that panic are dropped, see [`Self::panics`].
    #[must_use]
    pub fn next(&mut self, freshest: &Object) -> Option<Write> {
        if !self.pending.main && !self.pending.status {
            return None;
        }
        if self.is_about_finalizers() {
            return self.request_finalizers(freshest).filter(|_| self.pending.main);
        }
        let body = freshest.value();
        let version = freshest.resource_version();
        // The results go before the note that says that they are there, so that a crash between
        // the two loses nothing; and letting an object go may be the last thing that is possible.
        [Part::Status, Part::Main]
            .into_iter()
            .find_map(|part| self.is_pending(part).then(|| self.request(part, body, version))?)
    }

    /// What the transformations said that panicked since this was last asked.
    pub fn panics(&mut self) -> Vec<String> {
        std::mem::take(&mut self.panics)
    }

    /// Notes that a request was accepted.
    pub fn accepted(&mut self, write: &Write) {
        if write.to_status {
            self.pending.status = false;
        } else {
            self.pending.main = false;
        }
    }

    /// The patch that the requests are for.
    #[must_use]
    pub fn patch(&self) -> &Patch {
        &self.patch
    }

    /// What is still to be written, for a later cycle.
    #[must_use]
    pub fn remaining(&self) -> Patch {
        let mut merge = Map::new();
        for (key, value) in &self.patch.merge {
            let part = if key == "status" { self.status_part() } else { Part::Main };
            if self.is_pending(part) {
                merge.insert(key.clone(), value.clone());
            }
        }
        let transformations = if self.pending.main || self.pending.status {
            self.patch.transformations.clone()
        } else {
            Vec::new()
        };
        let is_stated = self.is_pending(self.status_part());
        let conditions = match is_stated {
            true => self.patch.conditions.clone(),
            false => ConditionChanges::default(),
        };
        Patch { merge, transformations, conditions, ..Patch::default() }
    }

    /// Where the status goes.
    fn status_part(&self) -> Part {
        if self.has_status { Part::Status } else { Part::Main }
    }

    fn is_pending(&self, part: Part) -> bool {
        match part {
            Part::Main => self.pending.main,
            Part::Status => self.pending.status,
        }
    }

    /// The request of a patch that is about nothing but finalizers: of objects that are held, all
    /// get one, and their finalizers are known without parsing the rest.
    fn request_finalizers(&self, object: &Object) -> Option<Write> {
        let before = object.finalizers();
        let mut after: Vec<&str> = before.iter().map(String::as_str).collect();
        for transformation in &self.patch.transformations {
            match transformation {
                Transformation::AddFinalizer(name) if !after.contains(&&**name) => after.push(name),
                Transformation::RemoveFinalizer(name) => after.retain(|other| *other != &**name),
                _ => {}
            }
        }
        let path = || "/metadata/finalizers".to_owned();
        let change = match (before.is_empty(), after.is_empty()) {
            (true, true) => return None,
            (true, false) => vec![Operation::Add { path: path(), value: after.into() }],
            (false, true) => vec![Operation::Remove { path: path() }],
            (false, false) => {
                let tree = |list: Value| json!({"metadata": {"finalizers": list}});
                json_patch::between(&tree(before.into()), &tree(after.into()))
            }
        };
        if change.is_empty() {
            return None;
        }
        let test = Operation::test_version(object.resource_version());
        let operations = std::iter::once(test).chain(change).collect();
        Some(Write { to_status: false, content: Content::Json(operations) })
    }

    fn is_about_finalizers(&self) -> bool {
        let Patch { merge, transformations, conditions, .. } = &self.patch;
        merge.is_empty()
            && conditions.is_empty()
            && transformations.iter().all(Transformation::is_about_finalizers)
    }

    fn request(&mut self, part: Part, body: &Value, version: &str) -> Option<Write> {
        let to_status = part == Part::Status;
        let whole = self.patch.merge_for(body.get("status")).into_owned();
        let merge = self.merge_of(part, &whole);
        if self.patch.transformations.is_empty() {
            let content = merge::changes(body, &merge).then_some(Content::Merge(merge));
            return content.map(|content| Write { to_status, content });
        }
        let mut merged = body.clone();
        merge::apply(&mut merged, &whole);
        let target = self.transformed(&merged);
        let is_transformed = json_patch::between(&merged, &target)
            .iter()
            .any(|operation| self.part_of(operation) == part);
        if !is_transformed {
            // Merge patches cannot conflict, so they are preferred where they are enough.
            let content = merge::changes(body, &merge).then_some(Content::Merge(merge));
            return content.map(|content| Write { to_status, content });
        }
        let mut operations = json_patch::between(body, &target);
        operations.retain(|operation| self.part_of(operation) == part);
        if operations.is_empty() {
            return None;
        }
        operations.insert(0, Operation::test_version(version));
        Some(Write { to_status, content: Content::Json(operations) })
    }

    /// The body after all transformations but those that panic.
    ///
    /// What cannot be done must neither block its object nor end the daemon that asked for it, so
    /// it is treated like what the server refuses.
    fn transformed(&mut self, merged: &Value) -> Value {
        'anew: loop {
            let mut target = merged.clone();
            for (number, transformation) in self.patch.transformations.iter().enumerate() {
                let applied = catch_unwind(AssertUnwindSafe(|| transformation.apply(&mut target)));
                if let Err(panic) = applied {
                    // It may have stopped in the middle of something.
                    self.panics.push(panic_text(panic.as_ref()));
                    self.patch.transformations.remove(number);
                    continue 'anew;
                }
            }
            return target;
        }
    }

    fn merge_of(&self, part: Part, whole: &Map<String, Value>) -> Map<String, Value> {
        let belongs = |key: &str| match part {
            Part::Main => key != "status" || !self.has_status,
            Part::Status => key == "status",
        };
        whole
            .iter()
            .filter(|(key, _)| belongs(key))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect()
    }

    fn part_of(&self, operation: &Operation) -> Part {
        if self.has_status && operation.is_about_status() { Part::Status } else { Part::Main }
    }
}

#[cfg(test)]
mod tests;
