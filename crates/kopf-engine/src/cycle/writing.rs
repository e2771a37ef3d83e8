//! The writes of a cycle: made again when they failed, made smaller when they are refused.
//!
//! What the server will never take must not block its object. It is dropped with an error, and what
//! the engine itself has to write, its notes and the finalizer, goes without it.

use std::time::Duration;

use kopf_client::{Failure, RequestError, Target, Urgency};
use kopf_core::loops::patched_fields;
use kopf_model::{FieldPath, Object, Patch, Transformation};

use super::{Cycle, CycleError, Mode};
use crate::apply::{Applied, Outdated, apply, limit};
use crate::store::Version;

/// How often in a row a write is forbidden before it is taken for refused: rights may be granted
/// soon, but a policy does not change its mind.
const FORBIDDEN_MAX: u32 = 5;

/// The least time after which a write is made again for which there was no newer state.
const NEWER_PATIENCE_MIN: Duration = Duration::from_secs(1);

/// What a look for the newest state of an object has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// This is it for sure.
    Newest,
    /// It may be another.
    Unsure,
    /// We are not allowed to look.
    Forbidden,
}

impl Cycle {
    /// Sends a patch; a refused one is reduced to our own part, so that the object is not stuck.
    pub(super) async fn apply(
        &mut self,
        patch: Patch,
        urgency: Urgency,
    ) -> Result<Applied, CycleError> {
        if patch.is_empty() || self.gone {
            return Ok(Applied::Unchanged);
        }
        let error = match self.send(&patch, urgency).await {
            Ok(Applied::NotFound) => {
                self.memory.unsent = patch;
                return Ok(Applied::NotFound);
            }
            Ok(applied) => return Ok(applied),
            Err(error) => error,
        };
        if self.is_refused(error.failure)
            && let Some(applied) = Box::pin(self.send_own_part(&patch, &error, urgency)).await
        {
            return Ok(applied);
        }
        self.memory.unsent = patch;
        Err(error.into())
    }

    /// Sends a patch when no daemon or timer of the object does; the next one knows the answer.
    pub(super) async fn send_in_turn(
        &self,
        patch: &Patch,
        urgency: Urgency,
    ) -> Result<Applied, RequestError> {
        let _turn = match &self.memory.turns {
            Some(turns) => turns.take().await,
            None => None,
        };
        let (cluster, resource) = (&self.shared.cluster, &self.served.resource);
        let applied = apply(cluster, resource, &self.object, patch, urgency).await?;
        if let (Applied::Changed(object), Some(live)) = (&applied, &self.memory.live) {
            live.set(object.clone());
        }
        Ok(applied)
    }

    async fn send(&self, patch: &Patch, urgency: Urgency) -> Result<Applied, RequestError> {
        let applied = self.send_in_turn(patch, urgency).await?;
        if let Applied::Changed(_) = &applied {
            self.note_write(patch);
        }
        Ok(applied)
    }

    fn is_refused(&self, failure: Failure) -> bool {
        match failure {
            Failure::Invalid | Failure::Client(400 | 413) => true,
            Failure::Forbidden => self.memory.errors >= FORBIDDEN_MAX,
            _ => false,
        }
    }

    /// Sends what we need ourselves of a refused patch; none if that is refused, too.
    async fn send_own_part(
        &self,
        patch: &Patch,
        error: &RequestError,
        urgency: Urgency,
    ) -> Option<Applied> {
        let own = self.own_part(patch);
        if is_same(&own, patch) {
            return None;
        }
        let applied = if own.is_empty() {
            Applied::Unchanged
        } else {
            match self.send(&own, urgency).await {
                Ok(Applied::Outdated(own)) => {
                    return Some(Applied::Outdated(Outdated { patch: patch.clone(), ..own }));
                }
                Ok(applied) => applied,
                Err(error) => {
                    tracing::error!(%error, "the server refused our notes, too");
                    return None;
                }
            }
        };
        report_dropped(patch, &own, error);
        Some(applied)
    }

    /// Writes what could not be written before, with what event handlers want meanwhile; tells
    /// whether the cycle can go on.
    pub(super) async fn resend(&mut self) -> Result<bool, CycleError> {
        if self.gone {
            return Ok(true);
        }
        let is_repeated = !self.memory.unsent.is_empty();
        let mut patch = std::mem::take(&mut self.memory.unsent);
        patch.absorb(std::mem::take(&mut *self.patch.lock()));
        limit(&mut patch);
        let mut applied = self.apply(patch, Urgency::Normal).await?;
        if let Applied::Outdated(outdated) = applied {
            applied = self.resend_outdated(outdated).await?;
        }
        match applied {
            Applied::Unchanged => {}
            Applied::Changed(object) => self.object = object,
            Applied::Replaced => self.lose(),
            Applied::NotFound if is_repeated => return Err(CycleError::Missing),
            Applied::NotFound => {
                // Either it is told soon that the object is gone, or the server was wrong.
                self.wait_for_newer();
                return Ok(false);
            }
            Applied::Outdated(outdated) => {
                self.memory.unsent = outdated.patch;
                self.wait_for_newer();
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The event about the newer state may be lost or late: looks for it, once. Where there is
    /// none, the patch was refused for what it asks for.
    async fn resend_outdated(&mut self, outdated: Outdated) -> Result<Applied, CycleError> {
        let tried = Version::of(&self.object);
        let look = match self.refresh().await {
            Ok(look) => look,
            Err(error) => {
                self.memory.unsent = outdated.patch;
                return Err(error);
            }
        };
        if Version::of(&self.object) != tried || outdated.error.failure == Failure::Conflict {
            return self.apply(outdated.patch, Urgency::Normal).await;
        }
        let Outdated { patch, error } = outdated;
        let is_newest = look == Look::Newest;
        if look == Look::Forbidden {
            let riddle = self.memory.riddle.get_or_insert_default();
            riddle.note(&self.served.resource, &self.object, &error);
        }
        let (own, was_held) = (self.own_part(&patch), self.is_held(&self.object));
        let sent = match own.is_empty() {
            true => Ok(Applied::Unchanged),
            false => self.send(&own, Urgency::Normal).await,
        };
        match sent {
            Ok(Applied::Changed(object)) if is_same(&own, &patch) => Ok(Applied::Changed(object)),
            // A finalizer goes with a test of the version: it was not for the version.
            Ok(Applied::Changed(object)) if is_newest || self.is_held(&object) != was_held => {
                report_dropped(&patch, &own, &error);
                Ok(Applied::Changed(object))
            }
            Ok(Applied::Changed(object)) => {
                // Notes go without such a test, but the answer to them is the newest state.
                self.object = object;
                self.apply(patch, Urgency::Normal).await
            }
            // Nothing that is asked of an object on its way out may hold it up.
            Ok(Applied::Unchanged) if is_newest || self.object.is_deleting() => {
                report_dropped(&patch, &own, &error);
                Ok(Applied::Unchanged)
            }
            Ok(Applied::Unchanged) => Ok(Applied::Outdated(Outdated { patch, error })),
            Ok(Applied::Outdated(own)) => {
                // Without our part the handlers would run again, so it is tried again.
                tracing::warn!(error = %own.error, "the server does not take our notes");
                Ok(Applied::Outdated(Outdated { patch, error }))
            }
            Ok(Applied::Replaced) => Ok(Applied::Replaced),
            Ok(Applied::NotFound) => {
                self.memory.unsent = patch;
                Ok(Applied::NotFound)
            }
            Err(error) => {
                self.memory.unsent = patch;
                Err(error.into())
            }
        }
    }

    /// Looks for the newest state of the object.
    pub(super) async fn refresh(&mut self) -> Result<Look, CycleError> {
        let target = Target {
            resource: &self.served.resource,
            namespace: self.object.namespace(),
            name: self.object.name(),
            subresource: None,
        };
        match self.shared.cluster.get(target).await {
            Ok(object) if object.uid() == self.object.uid() => {
                self.object = object;
                Ok(Look::Newest)
            }
            Ok(_) => Ok(Look::Unsure),
            // Operators need not be allowed to read single objects; the watch will tell.
            Err(error) if error.failure == Failure::Forbidden => Ok(Look::Forbidden),
            Err(error) if error.failure == Failure::NotFound => Ok(Look::Unsure),
            Err(error) => Err(error.into()),
        }
    }

    /// Another object has taken the name of ours, which is gone, therefore: the rest of the cycle
    /// is the same as if we had been told.
    pub(super) fn lose(&mut self) {
        tracing::debug!("another object has taken the name of this one meanwhile");
        // What is older than what is known already decides nothing.
        self.gone = self.mode != Mode::EventsOnly;
    }

    pub(super) fn wait_for_newer(&mut self) {
        let timeout = self.shared.runtime.context.settings.read().persistence.consistency_timeout;
        // Whoever does not want to wait for it is not to ask without end either.
        self.wake_at = Some(self.after(timeout.max(NEWER_PATIENCE_MIN)));
    }

    pub(super) fn is_held(&self, object: &Object) -> bool {
        object.finalizers().contains(&self.served.finalizer)
    }

    /// The part of a patch that the engine itself put there: its notes and the finalizer.
    fn own_part(&self, patch: &Patch) -> Patch {
        let mut own = self.notes_only(patch);
        // An object that is being deleted takes no new finalizer.
        let is_deleting = self.object.is_deleting();
        let is_own = |it: &&Transformation| match it {
            Transformation::AddFinalizer(_) => !is_deleting,
            Transformation::RemoveFinalizer(_) => true,
            Transformation::Function(_) => false,
        };
        own.transformations = patch.transformations.iter().filter(is_own).cloned().collect();
        own
    }

    fn notes_only(&self, patch: &Patch) -> Patch {
        let annotations = FieldPath::from_keys(["metadata", "annotations"]);
        let mut notes = Patch::default();
        if let Some(entries) = patch.get(&annotations).and_then(serde_json::Value::as_object) {
            for (key, value) in entries.iter().filter(|(key, _)| self.served.is_note(key)) {
                notes.set(&annotations.join(key), value.clone());
            }
        }
        let storages = &self.served.storages;
        for field in storages.progress.own_fields().iter().chain(&storages.diffbase.own_fields()) {
            if let Some(value) = patch.get(field) {
                notes.set(field, value.clone());
            }
        }
        notes
    }
}

/// Whether our own part is all of a patch.
fn is_same(own: &Patch, patch: &Patch) -> bool {
    own.merge == patch.merge
        && own.transformations.len() == patch.transformations.len()
        && own.conditions == patch.conditions
}

/// Tells what of a patch is not written, by name: the values may be secret.
fn report_dropped(patch: &Patch, own: &Patch, error: &RequestError) {
    let mut fields: Vec<String> = patched_fields(patch)
        .iter()
        .filter(|field| own.get(field).is_none())
        .map(ToString::to_string)
        .collect();
    if patch.transformations.iter().any(|it| !it.is_about_finalizers()) {
        fields.push("transformations".into());
    } else if own.transformations.len() < patch.transformations.len() {
        fields.push("metadata.finalizers".into());
    }
    let fields = fields.join(", ");
    tracing::error!(%error, fields, "the server refused what was to be changed; dropped");
}
