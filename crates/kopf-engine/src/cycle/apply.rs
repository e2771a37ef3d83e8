//! The writes of a cycle: retried after failures, reduced after rejections.
//!
//! Content that the server never accepts must not block its object. It is dropped with an error,
//! and the engine's own part, its records and the finalizer, is written without it.

use std::time::Duration;

use kopf_client::{RequestError, Urgency};
use kopf_core::finalizer::is_held;
use kopf_core::write::{
    After, AfterOwn, Asker, Look, OwnAnswer, after_failure, after_outdated, after_own_part,
    dropped_fields, is_whole, own_part,
};
use kopf_model::{Object, Patch};

use super::{Cycle, CycleError, Mode, history};
use crate::context::shared::Served;
use crate::write::{self, Applied, Outdated, limit, rejection};

/// The minimum time before a write without a newer state is retried.
const NEWER_PATIENCE_MIN: Duration = Duration::from_secs(1);

impl Cycle {
    /// Sends a patch; a rejected one is reduced to our own part, so that the object is not stuck.
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
        let asker = Asker::Cycle { failures: self.memory.errors };
        if after_failure(rejection(error.failure), asker) == After::OwnPart
            && let Some(applied) = Box::pin(self.send_own_part(&patch, &error, urgency)).await
        {
            return Ok(applied);
        }
        self.memory.unsent = patch;
        Err(error.into())
    }

    /// Sends a patch while no daemon or timer of the object does; the next one knows the response.
    pub(super) async fn send_alone(
        &self,
        patch: &Patch,
        urgency: Urgency,
    ) -> Result<Applied, RequestError> {
        let _guard = match &self.memory.background.write_lock {
            Some(lock) => lock.take().await,
            None => None,
        };
        let (cluster, resource) = (&self.shared.cluster, &self.served.resource);
        let applied = write::send(cluster, resource, &self.object, patch, urgency).await?;
        if let (Applied::Changed(object), Some(live)) = (&applied, &self.memory.background.live) {
            live.set(object.clone());
        }
        Ok(applied)
    }

    async fn send(&self, patch: &Patch, urgency: Urgency) -> Result<Applied, RequestError> {
        let applied = self.send_alone(patch, urgency).await?;
        if let Applied::Changed(_) = &applied {
            history::note_write(self, patch);
        }
        Ok(applied)
    }

    /// Sends our own part of a rejected patch; `None` if that is rejected too.
    async fn send_own_part(
        &self,
        patch: &Patch,
        error: &RequestError,
        urgency: Urgency,
    ) -> Option<Applied> {
        let own = self.own_part(patch);
        if is_whole(&own, patch) {
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
                    tracing::error!(%error, "the server also rejected our progress annotations");
                    return None;
                }
            }
        };
        report_dropped(patch, &own, error);
        Some(applied)
    }

    /// Writes pending changes, together with the current ones of event handlers; returns whether
    /// the cycle can continue.
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
                // Either an event will soon report that the object is gone, or the server was
                // wrong.
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

    /// The event about the newer state may be lost or late: fetches the state once. If there is no
    /// newer one, the content of the patch was rejected.
    async fn resend_outdated(&mut self, outdated: Outdated) -> Result<Applied, CycleError> {
        let look = match self.refresh().await {
            Ok(look) => look,
            Err(error) => {
                self.memory.unsent = outdated.patch;
                return Err(error);
            }
        };
        let Outdated { patch, error } = outdated;
        let asker = Asker::Cycle { failures: self.memory.errors };
        if after_outdated(rejection(error.failure), look, asker) == After::Again {
            return self.apply(patch, Urgency::Normal).await;
        }
        if look == Look::Forbidden {
            let ambiguity = self.memory.ambiguity.get_or_insert_default();
            ambiguity.note(&self.served.resource, &self.object, &error);
        }
        let own = self.own_part(&patch);
        let sent = match own.is_empty() {
            true => Ok(Applied::Unchanged),
            false => self.send(&own, Urgency::Normal).await,
        };
        let (answer, answered) = match sent {
            Ok(Applied::Changed(object)) if is_whole(&own, &patch) => {
                return Ok(Applied::Changed(object));
            }
            Ok(Applied::Changed(object)) => (OwnAnswer::Changed, Some(object)),
            Ok(Applied::Unchanged) => (OwnAnswer::Unchanged, None),
            Ok(Applied::Outdated(own)) => {
                tracing::warn!(error = %own.error, "the server rejected our progress annotations");
                (OwnAnswer::Outdated, None)
            }
            Ok(Applied::Replaced) => return Ok(Applied::Replaced),
            Ok(Applied::NotFound) => {
                self.memory.unsent = patch;
                return Ok(Applied::NotFound);
            }
            Err(error) => {
                self.memory.unsent = patch;
                return Err(error.into());
            }
        };
        let was_held = self.is_held(&self.object);
        let is_moved = answered.as_ref().is_some_and(|it| self.is_held(it) != was_held);
        match after_own_part(answer, look, is_moved, self.object.is_deleting()) {
            AfterOwn::Done => {
                report_dropped(&patch, &own, &error);
                Ok(answered.map_or(Applied::Unchanged, Applied::Changed))
            }
            AfterOwn::Again => {
                self.object = answered.unwrap_or_else(|| self.object.clone());
                self.apply(patch, Urgency::Normal).await
            }
            AfterOwn::Keep => Ok(Applied::Outdated(Outdated { patch, error })),
        }
    }

    /// Fetches the newest state of the object.
    pub(super) async fn refresh(&mut self) -> Result<Look, CycleError> {
        let (cluster, resource) = (&self.shared.cluster, &self.served.resource);
        let (look, found) = write::look(cluster, resource, &self.object).await?;
        if let Some(found) = found {
            self.object = found;
        }
        Ok(look)
    }

    /// Another object has taken the name of ours, so ours is gone: the rest of the cycle is the
    /// same as if an event had reported that.
    pub(super) fn lose(&mut self) {
        tracing::debug!("the object was replaced by another one with the same name");
        // States older than the known one decide nothing.
        self.gone = self.mode != Mode::EventsOnly;
    }

    pub(super) fn wait_for_newer(&mut self) {
        let timeout = self.shared.runtime.context.settings.read().persistence.consistency_timeout;
        // A handler that does not want to wait for it must not retry endlessly either.
        self.rest.wake_at = Some(self.after(timeout.max(NEWER_PATIENCE_MIN)));
    }

    pub(super) fn is_held(&self, object: &Object) -> bool {
        is_held(object, &self.served.finalizer)
    }

    fn own_part(&self, patch: &Patch) -> Patch {
        let Served { storages, .. } = &*self.served;
        let is_note = |annotation: &str| self.served.is_note(annotation);
        own_part(patch, storages, is_note, self.object.is_deleting())
    }
}

/// Reports the fields of a patch that are not written, only by name: the values may be secret.
fn report_dropped(patch: &Patch, own: &Patch, error: &RequestError) {
    let fields = dropped_fields(patch, own).join(", ");
    tracing::error!(%error, fields, "the server rejected the changes; dropping them");
}
