//! Determines what happened to an object since it was last handled.
//!
//! Pure: all inputs are in a [`Snapshot`]. The order of events does not matter: only the newest
//! state is compared with the last-handled one.

use std::sync::Arc;

use kopf_model::{Diff, Essence, FieldPath, Object, storage::StorageError};

use crate::finalizer::is_held;
use crate::occasion::{Change, EventKind, Reason, Subject};
use crate::settings::Storages;

/// All data that decides about an object at one moment.
#[derive(Clone)]
pub struct Snapshot {
    /// The object in its newest known state.
    pub subject: Subject,
    /// The type of the event that delivered it; `None` if it was listed.
    pub event: Option<EventKind>,
    /// The last-handled essence; `None` if there is none.
    pub old: Option<Essence>,
    /// The current essence.
    pub new: Essence,
    /// The differences.
    pub diff: Arc<Diff>,
    /// What this process has seen of the object.
    pub memory: Seen,
}

/// What this process has seen of an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Whether it was first seen in a list, so an earlier process may have handled it.
    pub noticed_by_listing: bool,
    /// Whether all handlers of some cause have finished in this process.
    pub fully_handled_once: bool,
}

impl Snapshot {
    /// Compares an object with its stored last-handled state.
    ///
    /// `known` is its essence, if already known.
    ///
    /// # Errors
    /// Fails when the notes on the object cannot be understood, or when a storage of a user does.
    pub fn take(
        subject: Subject,
        event: Option<EventKind>,
        memory: Seen,
        storages: &Storages,
        extra_fields: &[FieldPath],
        known: Option<Essence>,
    ) -> Result<Self, StorageError> {
        let object = &subject.object;
        let new = match known {
            Some(known) => known,
            None => {
                let mut new = storages.diffbase.build(object, extra_fields)?;
                storages.progress.clear(&mut new)?;
                new
            }
        };
        let mut old = storages.diffbase.fetch(object, &new)?;
        if let Some(old) = &mut old {
            storages.progress.clear(old)?;
        }
        let diff = Arc::new(match &old {
            None => Diff::of_added(new.clone()),
            Some(old) if old.is(&new) => Diff::default(),
            Some(old) => Diff::of_changed(old.clone(), new.clone()),
        });
        Ok(Self { subject, event, old, new, diff, memory })
    }

    /// The newest known state of the object.
    #[must_use]
    pub fn object(&self) -> &Object {
        &self.subject.object
    }

    /// Whether the object is gone from the cluster.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.event == Some(EventKind::Deleted)
    }
}

/// Determines the cause; the first rule that applies wins.
#[must_use]
pub fn detect(snapshot: &Snapshot, finalizer: &str) -> Change {
    let memory = snapshot.memory;
    let initial = memory.noticed_by_listing && !memory.fully_handled_once;
    let is_deleting = snapshot.object().is_deleting();
    let is_held = is_held(snapshot.object(), finalizer);
    let (reason, initial) = if snapshot.is_gone() {
        (Reason::Gone, initial)
    } else if is_deleting && !is_held {
        (Reason::Free, initial)
    } else if is_deleting {
        (Reason::Delete, initial)
    } else if snapshot.old.is_none() {
        // Never handled: not a resumption, no matter how long the object has existed.
        (Reason::Create, false)
    } else if !snapshot.diff.is_empty() {
        (Reason::Update, initial)
    } else if initial {
        (Reason::Resume, true)
    } else {
        (Reason::Noop, false)
    };
    Change {
        reason,
        initial,
        old: snapshot.old.clone(),
        new: Some(snapshot.new.clone()),
        diff: Arc::clone(&snapshot.diff),
    }
}

#[cfg(test)]
mod tests;
