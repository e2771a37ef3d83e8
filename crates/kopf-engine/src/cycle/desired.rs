//! The part of a cycle that reconciles the desired children of an object.
//!
//! Calls the functions, compares their results with the existing children, applies and deletes. The
//! result is reported in the condition `Ready`, which is part of the cycle's write.

use std::sync::Arc;
use std::time::Duration;

use kopf_client::Target;
use kopf_core::cause::Snapshot;
use kopf_core::desired::{self, ChildKey, Condition, Manifest};
use kopf_core::handler::{Handler, HandlerKind};
use kopf_core::invoke::{CallbackError, Output};
use kopf_core::occasion::{Occasion, Reason};
use kopf_core::progress::State;
use kopf_core::retry::Outcome;
use kopf_core::select;
use kopf_model::{Object, Resource, Timestamp};
use serde_json::Value;

use super::{Cycle, Mode, dry_run, observers};
use crate::attempt::report;
use crate::callbacks;
use crate::children::rehearsal::{Action, Proposal};
use crate::children::{HandlerMemory, Knowledge};

mod condition;
mod reconcile;

pub(super) use condition::reconsider;
use reconcile::{plan, reconcile, remove};

/// How long to wait for the events about deleted children before checking again.
const RECHECK: Duration = Duration::from_secs(10);
/// The results of the functions.
#[derive(Default)]
pub(super) struct DesiredChildren {
    /// Whether there are children that only we can delete.
    pub(super) is_needed: bool,
    /// The fingerprint of what the functions saw; `None` if they were not called.
    pub(super) view: Option<u64>,
    answers: Vec<(Arc<Handler>, Answer)>,
    wake_at: Option<Timestamp>,
}

impl DesiredChildren {
    pub(super) fn is_empty(&self) -> bool {
        self.answers.is_empty()
    }
}

enum Answer {
    Children(Vec<Manifest>),
    Failed(String),
    /// Neither children nor a relevant failure: nothing changes.
    Nothing,
}

/// Deletes the children that would outlive the object; returns whether it must wait for them.
///
/// They are deleted before the deletion handlers run, so that these run only once.
pub(super) async fn delete_outliving(
    cycle: &mut Cycle,
    snapshot: &Snapshot,
    reason: Reason,
) -> bool {
    let owner = snapshot.object().clone();
    let handlers = &cycle.served.handlers.desired;
    let is_rehearsed = cycle.shared.runtime.rehearsal.is_some();
    if handlers.is_empty() || reason != Reason::Delete || is_rehearsed {
        return false;
    }
    let is_partial = matches!(
        cycle.shared.children.knows(handlers.iter().flat_map(|it| &it.children)),
        Knowledge::Partial
    );
    let left = desired::outliving(&owner, &cycle.shared.children.of(owner.uid(), [].iter()));
    if left.is_empty() && !is_partial {
        return false;
    }
    cycle.rest.wake_at = Some(cycle.after(RECHECK));
    if cycle.mode == Mode::Full {
        for (deletion, is_leaving) in left {
            if !is_leaving && let Err(error) = remove(cycle, &deletion).await {
                tracing::warn!(child = %deletion.key, %error, "could not delete a child");
            }
        }
    }
    true
}

/// Calls the functions for the children that the object should have.
pub(super) async fn ask_all(
    cycle: &mut Cycle,
    snapshot: &Snapshot,
    reason: Reason,
) -> Result<DesiredChildren, CallbackError> {
    let served = Arc::clone(&cycle.served);
    let owner = snapshot.object();
    let is_leaving = matches!(reason, Reason::Gone | Reason::Free | Reason::Delete);
    if served.handlers.desired.is_empty() || is_leaving {
        return Ok(DesiredChildren::default());
    }
    if let Some(rehearsal) = &cycle.shared.runtime.rehearsal {
        rehearsal.begin(owner);
    }
    let is_held = cycle.is_held(owner);
    if cycle.mode != Mode::Full {
        return Ok(DesiredChildren { is_needed: is_held, ..DesiredChildren::default() });
    }
    let handlers = &served.handlers.desired;
    let children = handlers.iter().flat_map(|it| &it.children);
    let knowledge = cycle.shared.children.knows(children);
    let resources = match knowledge {
        Knowledge::Complete(resources) => resources,
        // The end of the list triggers another cycle.
        Knowledge::Partial => {
            return Ok(DesiredChildren { is_needed: is_held, ..DesiredChildren::default() });
        }
        Knowledge::Unserved(selector) => {
            let text = format!("the cluster has no resource {selector}");
            let first = handlers.iter().find(|it| !is_observer(it));
            let answers = first.map(|it| (Arc::clone(it), Answer::Failed(text)));
            let answers = answers.into_iter().collect();
            let is_needed = is_held;
            return Ok(DesiredChildren { is_needed, answers, ..DesiredChildren::default() });
        }
    };
    let view = condition::view_of(cycle);
    let select = || select::for_occasion(handlers, &snapshot.subject, &Occasion::Desired);
    let matching = callbacks::decide(select).await?;
    let mut all = DesiredChildren { view: Some(view), ..DesiredChildren::default() };
    for handler in handlers.iter().filter(|handler| !is_observer(handler)) {
        let answer = if matching.iter().any(|other| Arc::ptr_eq(other, handler)) {
            ask(cycle, handler, snapshot, view, &resources, &mut all.wake_at).await
        } else {
            Answer::Children(Vec::new())
        };
        all.answers.push((Arc::clone(handler), answer));
    }
    all.is_needed = needs_finalizer(cycle, &all.answers, owner);
    Ok(all)
}

fn needs_finalizer(cycle: &mut Cycle, answers: &[(Arc<Handler>, Answer)], owner: &Object) -> bool {
    let is_foreign = |(_, answer): &(_, Answer)| match answer {
        Answer::Children(manifests) => manifests.iter().any(|manifest| manifest.is_foreign),
        Answer::Failed(_) | Answer::Nothing => false,
    };
    let children = cycle.shared.children.of(owner.uid(), [].iter());
    let memory = cycle.memory.desired.get_or_insert_default();
    let is_unsure = answers.iter().any(|(_, answer)| !matches!(answer, Answer::Children(_)));
    memory.needs_finalizer = answers.iter().any(is_foreign)
        || (is_unsure && memory.needs_finalizer)
        || !desired::outliving(owner, &children).is_empty();
    memory.needs_finalizer
}

/// Calls one function, unless it has failed for the same state and its retry is not due yet.
async fn ask(
    cycle: &mut Cycle,
    handler: &Arc<Handler>,
    snapshot: &Snapshot,
    view: u64,
    resources: &[Arc<Resource>],
    wake_at: &mut Option<Timestamp>,
) -> Answer {
    let now = cycle.shared.runtime.clock.now();
    let only = std::slice::from_ref(handler);
    let (mut state, text) = failing(cycle, handler, view, now);
    if state.due(only, now).is_empty() {
        *wake_at = earliest(*wake_at, state.wake_at(now));
        memory_of(cycle, handler).failing = Some((state, view, text.clone()));
        return Answer::Failed(text);
    }
    let attempt = state.attempt(&handler.id, now);
    let (subject, patch) = (&snapshot.subject, Arc::clone(&cycle.patch));
    let outcome = observers::call(cycle, handler, subject, Occasion::Desired, attempt, patch).await;
    let Some(outcome) = outcome else { return Answer::Nothing };
    let failure = match (&outcome.error, &outcome.output) {
        (Some(failure), _) => failure.message.clone(),
        (None, Output::Nothing) => return Answer::Nothing,
        (None, output) => match complete(handler, snapshot, output, resources) {
            Ok(manifests) => return Answer::Children(manifests),
            Err(text) => text,
        },
    };
    let mut outcome = outcome;
    if outcome.error.is_none() {
        // An invalid child stays invalid until the object changes.
        outcome = invalid(&failure);
        report::outcome(&cycle.shared.runtime, handler, Some(subject), &outcome);
    }
    let now = cycle.shared.runtime.clock.now();
    state.record_outcome(&handler.id, &outcome, now);
    *wake_at = earliest(*wake_at, state.wake_at(now));
    memory_of(cycle, handler).failing = Some((state, view, failure.clone()));
    Answer::Failed(failure)
}

/// The failed attempts for the same state, and the message.
fn failing(
    cycle: &mut Cycle,
    handler: &Arc<Handler>,
    view: u64,
    now: Timestamp,
) -> (State, String) {
    let known = memory_of(cycle, handler).failing.take().filter(|(_, about, _)| *about == view);
    let (state, text) = match known {
        Some((state, _, text)) => (state, text),
        None => (State::new(None), String::new()),
    };
    (state.with_handlers(std::slice::from_ref(handler), now), text)
}

/// Calls the observers of children, if anything has changed for them; returns when to check again.
///
/// Runs after the other handlers, so that their writes and created children are included.
pub(super) async fn observe(
    cycle: &mut Cycle,
    snapshot: &Snapshot,
    view: u64,
) -> Result<Option<Timestamp>, CallbackError> {
    let served = Arc::clone(&cycle.served);
    let handlers = &served.handlers.desired;
    let mut wake_at = None;
    let select = || select::for_occasion(handlers, &snapshot.subject, &Occasion::Desired);
    for handler in callbacks::decide(select).await? {
        if is_observer(&handler) {
            wake_at = earliest(wake_at, look(cycle, &handler, snapshot, view).await);
        }
    }
    Ok(wake_at)
}

async fn look(
    cycle: &mut Cycle,
    handler: &Arc<Handler>,
    snapshot: &Snapshot,
    view: u64,
) -> Option<Timestamp> {
    let states_hash = cycle.shared.children.states_hash(cycle.object.uid());
    let seen = states_hash ^ view.rotate_left(1);
    if memory_of(cycle, handler).seen == Some(seen) {
        return None;
    }
    // Its own status writes while it fails are no reason to restart.
    let about = states_hash ^ cycle.object.generation().unwrap_or_default().cast_unsigned();
    let now = cycle.shared.runtime.clock.now();
    let only = std::slice::from_ref(handler);
    let (mut state, text) = failing(cycle, handler, about, now);
    if state.due(only, now).is_empty() {
        let wake_at = state.wake_at(now);
        memory_of(cycle, handler).failing = Some((state, about, text));
        return wake_at;
    }
    let attempt = state.attempt(&handler.id, now);
    let (subject, patch) = (&snapshot.subject, Arc::clone(&cycle.patch));
    let outcome =
        observers::call(cycle, handler, subject, Occasion::Desired, attempt, patch).await?;
    let Some(failure) = &outcome.error else {
        memory_of(cycle, handler).seen = Some(seen);
        return None;
    };
    let text = failure.message.clone();
    let now = cycle.shared.runtime.clock.now();
    state.record_outcome(&handler.id, &outcome, now);
    let wake_at = state.wake_at(now);
    memory_of(cycle, handler).failing = Some((state, about, text));
    wake_at
}

/// Applies and deletes children, and reports the result; returns when to check again.
pub(super) async fn reconcile_all(
    cycle: &mut Cycle,
    desired: DesiredChildren,
) -> Option<Timestamp> {
    let mut wake_at = desired.wake_at;
    let mut conditions = Vec::new();
    for (handler, answer) in desired.answers {
        match answer {
            Answer::Nothing => {}
            Answer::Failed(text) => conditions.push(Condition::failed(text)),
            Answer::Children(manifests) => {
                let done = reconcile(cycle, &handler, &manifests).await;
                wake_at = earliest(wake_at, done.wake_at);
                conditions.push(if done.refused.is_empty() {
                    Condition::of(&done.readiness)
                } else {
                    Condition::refused(&done.refused)
                });
            }
        }
    }
    if let Some(condition) = Condition::worst(conditions) {
        condition::report(cycle, condition);
    }
    wake_at
}

/// Proposes actions for the desired children.
pub(super) async fn propose(cycle: &mut Cycle, desired: DesiredChildren) -> Vec<Proposal> {
    let mut proposals = Vec::new();
    for (handler, answer) in desired.answers {
        match answer {
            Answer::Nothing => {}
            Answer::Failed(text) => {
                let action = Action::Refuse(text);
                proposals.push(Proposal { child: handler.id.to_string(), action });
            }
            Answer::Children(manifests) => {
                let (plan, observed) = plan(cycle, &handler, &manifests);
                proposals.extend(dry_run::rehearse(cycle, &manifests, &observed, plan).await);
            }
        }
    }
    proposals
}

fn memory_of<'a>(cycle: &'a mut Cycle, handler: &Handler) -> &'a mut HandlerMemory {
    let memory = cycle.memory.desired.get_or_insert_default();
    memory.handlers.entry(Arc::clone(&handler.id)).or_default()
}

fn is_observer(handler: &Handler) -> bool {
    matches!(handler.kind, HandlerKind::Observe)
}

pub(super) fn target<'a>(resource: &'a Resource, key: &'a ChildKey) -> Target<'a> {
    Target { resource, namespace: key.namespace.as_deref(), name: &key.name, subresource: None }
}

fn complete(
    handler: &Handler,
    snapshot: &Snapshot,
    output: &Output,
    resources: &[Arc<Resource>],
) -> Result<Vec<Manifest>, String> {
    let children = match output {
        Output::Json(Value::Array(children)) => children.as_slice(),
        Output::Json(child @ Value::Object(_)) => std::slice::from_ref(child),
        _ => return Err("desired children are a list of objects".to_owned()),
    };
    desired::manifests(&snapshot.subject, &handler.id, children, resources)
        .map_err(|error| error.to_string())
}

fn invalid(message: &str) -> Outcome {
    use kopf_core::retry::{Failure, FailureKind};
    let failure = Failure { kind: FailureKind::Permanent, message: message.to_owned() };
    Outcome { is_final: true, error: Some(failure), ..Outcome::default() }
}

fn earliest(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    one.into_iter().chain(other).min()
}
