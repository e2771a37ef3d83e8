//! Applies and deletes the children of an object, one request at a time, with pauses after
//! rejections.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use kopf_client::{Failure, RequestError};
use kopf_core::desired::{
    self, Applied, Child, ChildKey, Deletion, Manifest, Plan, Readiness, Repairs, Step,
};
use kopf_core::handler::Handler;
use kopf_model::{Timestamp, backoff};

use super::{RECHECK, earliest, memory_of, target};
use crate::children::Refused;
use crate::cycle::Cycle;

/// The longest pause between attempts to apply or delete a child.
const REFUSED_MAX: Duration = Duration::from_secs(64);

/// The result for the children of one handler.
#[derive(Default)]
pub(super) struct Reconciled {
    pub(super) refused: BTreeMap<ChildKey, String>,
    pub(super) readiness: BTreeMap<ChildKey, Readiness>,
    pub(super) wake_at: Option<Timestamp>,
}

/// What to do about the children of one handler, and the existing children.
pub(super) fn plan(
    cycle: &mut Cycle,
    handler: &Handler,
    manifests: &[Manifest],
) -> (Plan, Vec<Child>) {
    let uid = cycle.object.uid().to_owned();
    let keys = manifests.iter().map(|manifest| &manifest.key);
    let observed = cycle.shared.children.of(&uid, keys);
    let plan = desired::plan(desired::Inputs {
        owner: &uid,
        handler,
        desired: manifests,
        observed: &observed,
        applied: &memory_of(cycle, handler).applied,
    });
    (plan, observed)
}

/// Applies and deletes the children of one handler.
pub(super) async fn reconcile(
    cycle: &mut Cycle,
    handler: &Arc<Handler>,
    manifests: &[Manifest],
) -> Reconciled {
    let (plan, _) = plan(cycle, handler, manifests);
    let mut done = Reconciled { readiness: plan.readiness, ..Reconciled::default() };
    for step in plan.steps {
        match step {
            Step::Apply(number) => {
                apply_child(cycle, handler, &manifests[number], &mut done).await;
            }
            Step::Delete(deletion) => delete_child(cycle, handler, &deletion, &mut done).await,
            Step::Refuse { key, message } => {
                done.wake_at = earliest(done.wake_at, Some(cycle.after(RECHECK)));
                note_rejection(cycle, handler, &key, "", &message);
                done.refused.insert(key, message);
            }
        }
    }
    let remembered = memory_of(cycle, handler);
    remembered.refused.retain(|key, _| done.refused.contains_key(key));
    remembered.applied.retain(|key, _| done.readiness.contains_key(key));
    done
}

async fn apply_child(
    cycle: &mut Cycle,
    handler: &Arc<Handler>,
    manifest: &Manifest,
    done: &mut Reconciled,
) {
    let (key, hash) = (&manifest.key, &manifest.hash);
    if is_postponed(cycle, handler, key, hash, done) {
        return;
    }
    let Some(repairs) = repairs_now(cycle, handler, key, hash, done) else { return };
    let target = target(&manifest.resource, key);
    let body = Bytes::from(manifest.value.to_string());
    tracing::debug!(child = %key, "applying a child");
    match cycle.shared.cluster.apply(target, body).await {
        Ok(object) => {
            let content = desired::content_of(object.value());
            let state = desired::readiness(&manifest.resource, object.value());
            cycle.shared.children.put(&manifest.resource, object);
            done.readiness.insert(key.clone(), state);
            if repairs.pause() > Duration::ZERO {
                let pause = repairs.pause();
                tracing::warn!(
                    child = %key, ?pause,
                    "others keep deleting or changing a child; waiting before the next repair"
                );
            }
            let applied = Applied { hash: hash.clone(), content, repairs };
            memory_of(cycle, handler).applied.insert(key.clone(), applied);
        }
        Err(error) => refuse(cycle, handler, key, hash, &error, done),
    }
}

/// The applications of this manifest with the one that is due; `None` if it must wait, because
/// others have undone too many.
fn repairs_now(
    cycle: &mut Cycle,
    handler: &Handler,
    key: &ChildKey,
    hash: &str,
    done: &mut Reconciled,
) -> Option<Repairs> {
    let now = cycle.shared.runtime.clock.now();
    let known = memory_of(cycle, handler).applied.get(key).filter(|last| last.hash == hash);
    let repairs = known.map(|last| last.repairs.clone()).unwrap_or_default();
    match repairs.held_until(now) {
        Some(next_at) => {
            done.wake_at = earliest(done.wake_at, Some(next_at));
            None
        }
        None => Some(repairs.counted(now)),
    }
}

async fn delete_child(
    cycle: &mut Cycle,
    handler: &Arc<Handler>,
    deletion: &Deletion,
    done: &mut Reconciled,
) {
    if is_postponed(cycle, handler, &deletion.key, "", done) {
        return;
    }
    match remove(cycle, deletion).await {
        Ok(()) => {}
        // Replaced by another object, as its watch will report; or a temporary conflict.
        Err(error) if error.failure == Failure::Conflict => {
            done.wake_at = earliest(done.wake_at, Some(cycle.after(RECHECK)));
        }
        Err(error) => refuse(cycle, handler, &deletion.key, "", &error, done),
    }
}

/// Deletes a child; a child that no longer exists is not a failure.
pub(super) async fn remove(cycle: &Cycle, deletion: &Deletion) -> Result<(), RequestError> {
    tracing::debug!(child = %deletion.key, "deleting a child");
    let target = target(&deletion.resource, &deletion.key);
    match cycle.shared.cluster.delete(target, &deletion.uid).await {
        Err(error) if error.failure != Failure::NotFound => Err(error),
        _ => {
            // No watch reports its end, so the owner would wait forever.
            cycle.shared.children.forget_unwatched(&deletion.key, &deletion.uid);
            Ok(())
        }
    }
}

/// Whether the same was rejected before and its retry is not due yet.
fn is_postponed(
    cycle: &mut Cycle,
    handler: &Handler,
    key: &ChildKey,
    hash: &str,
    done: &mut Reconciled,
) -> bool {
    let now = cycle.shared.runtime.clock.now();
    let Some(refused) = memory_of(cycle, handler).refused.get(key) else { return false };
    if refused.hash != hash || refused.next_at <= now {
        return false;
    }
    done.wake_at = earliest(done.wake_at, Some(refused.next_at));
    done.refused.insert(key.clone(), refused.message.clone());
    true
}

fn refuse(
    cycle: &mut Cycle,
    handler: &Handler,
    key: &ChildKey,
    hash: &str,
    error: &RequestError,
    done: &mut Reconciled,
) {
    let message = error.message.to_string();
    let attempts = note_rejection(cycle, handler, key, hash, &message);
    let pause = backoff::doubled(Duration::from_secs(1), attempts, REFUSED_MAX);
    let next_at = cycle.after(pause);
    tracing::warn!(child = %key, %error, ?pause, "the server rejected a child; retrying");
    if let Some(refused) = memory_of(cycle, handler).refused.get_mut(key) {
        refused.next_at = next_at;
    }
    done.wake_at = earliest(done.wake_at, Some(next_at));
    done.refused.insert(key.clone(), message);
}

/// Remembers a rejection, and posts an event if it is new; returns how often it happened before.
fn note_rejection(
    cycle: &mut Cycle,
    handler: &Handler,
    key: &ChildKey,
    hash: &str,
    message: &str,
) -> u32 {
    let now = cycle.shared.runtime.clock.now();
    let remembered = memory_of(cycle, handler);
    let known = remembered.refused.get(key).filter(|it| it.hash == hash);
    let attempts = known.map_or(0, |it| it.attempts.saturating_add(1));
    let is_news = known.is_none_or(|it| it.message != message);
    let (hash, message) = (hash.to_owned(), message.to_owned());
    if is_news && cycle.shared.runtime.context.settings.read().posting.enabled {
        let text = format!("{key}: {message}");
        let recorder = &cycle.shared.runtime.context.recorder;
        recorder.record(&cycle.subject(), "Warning", "ApplyFailed", &text);
    }
    let refused = Refused { hash, message, attempts, next_at: now };
    memory_of(cycle, handler).refused.insert(key.clone(), refused);
    attempts
}
