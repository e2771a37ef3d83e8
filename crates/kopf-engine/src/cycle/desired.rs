//! The part of a cycle that gives an object the children that it should have.
//!
//! Asks the functions, compares with the children that are there, applies and deletes; what comes
//! of it is said in the condition `Ready`, which goes along with the write of the cycle.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use kopf_client::{Failure, RequestError, Target};
use kopf_core::cause::Snapshot;
use kopf_core::desired::{
    self, Applied, Child, ChildKey, Condition, Doomed, Manifest, Plan, READY, Readiness, Step,
    fingerprint,
};
use kopf_core::handler::{Handler, HandlerKind};
use kopf_core::invoke::Output;
use kopf_core::occasion::Occasion;
use kopf_core::progress::State;
use kopf_core::retry::Outcome;
use kopf_core::retry_pacing::doubled;
use kopf_core::select;
use kopf_model::condition::{CONDITIONS, condition};
use kopf_model::{Object, Patch, Resource, Timestamp};
use serde_json::Value;

use super::{Cycle, Mode, Next, dry_run, observers};
use crate::attempt::report;
use crate::children::rehearsal::{Action, Proposal};
use crate::children::{Knowledge, Refused, Wished};

/// How long to wait for the news that children are gone before looking again.
const RECHECK: Duration = Duration::from_secs(10);
/// The longest pause between attempts to apply or delete a child.
const REFUSED_MAX: Duration = Duration::from_secs(64);
/// Who sets the condition `Ready`, in warnings about other writers of it.
const WRITER: &str = "desired";
/// How often in a row the functions are asked again because of our own write.
const ROUNDS_MAX: u32 = 5;

/// What the functions want.
#[derive(Default)]
pub(super) struct Wishes {
    /// Whether there are children that only we can delete.
    pub(super) is_needed: bool,
    /// What the functions saw; none if they were not asked.
    pub(super) view: Option<u64>,
    wishes: Vec<(Arc<Handler>, Wish)>,
    wake_at: Option<Timestamp>,
}

impl Wishes {
    pub(super) fn is_empty(&self) -> bool {
        self.wishes.is_empty()
    }
}

enum Wish {
    Children(Vec<Manifest>),
    Failed(String),
    /// Neither children nor a failure that counts: all stays as it is.
    Nothing,
}

/// What became of the children of one handler.
#[derive(Default)]
struct Reconciled {
    refused: BTreeMap<ChildKey, String>,
    readiness: BTreeMap<ChildKey, Readiness>,
    wake_at: Option<Timestamp>,
}

/// Deletes the children that would outlive the object; tells whether it has to wait for them.
///
/// They go before the deletion handlers run, so that these run only once.
pub(super) async fn part(cycle: &mut Cycle, snapshot: &Snapshot) -> bool {
    let owner = snapshot.object().clone();
    let handlers = &cycle.served.handlers.desiring;
    let is_held = cycle.is_held(&owner);
    let is_rehearsed = cycle.shared.runtime.rehearsal.is_some();
    if handlers.is_empty() || cycle.gone || !owner.is_deleting() || !is_held || is_rehearsed {
        return false;
    }
    let is_partial = matches!(
        cycle.shared.children.knows(handlers.iter().flat_map(|it| &it.children)),
        Knowledge::Partial
    );
    let left = desired::farewell(&owner, &cycle.shared.children.of(owner.uid(), [].iter()));
    if left.is_empty() && !is_partial {
        return false;
    }
    cycle.rest.wake_at = Some(cycle.after(RECHECK));
    if cycle.mode == Mode::Full {
        for (doomed, is_leaving) in left {
            if !is_leaving && let Err(error) = remove(cycle, &doomed).await {
                tracing::warn!(child = %doomed.key, %error, "could not delete a child");
            }
        }
    }
    true
}

/// Asks the functions for the children that the object should have.
pub(super) async fn wish(cycle: &mut Cycle, snapshot: &Snapshot) -> Wishes {
    let served = Arc::clone(&cycle.served);
    let owner = snapshot.object();
    if served.handlers.desiring.is_empty() || cycle.gone || owner.is_deleting() {
        return Wishes::default();
    }
    if let Some(rehearsal) = &cycle.shared.runtime.rehearsal {
        rehearsal.begin(owner);
    }
    let is_held = cycle.is_held(owner);
    if cycle.mode != Mode::Full {
        return Wishes { is_needed: is_held, ..Wishes::default() };
    }
    let handlers = &served.handlers.desiring;
    let children = handlers.iter().flat_map(|it| &it.children);
    let knowledge = cycle.shared.children.knows(children);
    let resources = match knowledge {
        Knowledge::Complete(resources) => resources,
        // The end of the list brings us back here.
        Knowledge::Partial => return Wishes { is_needed: is_held, ..Wishes::default() },
        Knowledge::Unserved(selector) => {
            let text = format!("the cluster has no resource {selector}");
            let wishes = handlers.iter().find(|it| !is_observer(it));
            let wishes = wishes.map(|it| (Arc::clone(it), Wish::Failed(text)));
            let wishes = wishes.into_iter().collect();
            return Wishes { is_needed: is_held, wishes, ..Wishes::default() };
        }
    };
    let view = view_of(cycle);
    let matching = select::for_occasion(handlers, &snapshot.subject, &Occasion::Desired);
    let mut all = Wishes { view: Some(view), ..Wishes::default() };
    for handler in handlers.iter().filter(|handler| !is_observer(handler)) {
        let wish = if matching.iter().any(|other| Arc::ptr_eq(other, handler)) {
            ask(cycle, handler, snapshot, view, &resources, &mut all.wake_at).await
        } else {
            Wish::Children(Vec::new())
        };
        all.wishes.push((Arc::clone(handler), wish));
    }
    all.is_needed = needs_finalizer(cycle, &all.wishes, owner);
    all
}

fn needs_finalizer(cycle: &mut Cycle, wishes: &[(Arc<Handler>, Wish)], owner: &Object) -> bool {
    let is_foreign = |(_, wish): &(_, Wish)| match wish {
        Wish::Children(manifests) => manifests.iter().any(|manifest| manifest.is_foreign),
        Wish::Failed(_) | Wish::Nothing => false,
    };
    let children = cycle.shared.children.of(owner.uid(), [].iter());
    let memory = cycle.memory.desired.get_or_insert_default();
    let is_unsure = wishes.iter().any(|(_, wish)| !matches!(wish, Wish::Children(_)));
    memory.needs_finalizer = wishes.iter().any(is_foreign)
        || (is_unsure && memory.needs_finalizer)
        || !desired::farewell(owner, &children).is_empty();
    memory.needs_finalizer
}

/// Asks one function, unless it has failed on the same state and its time has not come.
async fn ask(
    cycle: &mut Cycle,
    handler: &Arc<Handler>,
    snapshot: &Snapshot,
    view: u64,
    resources: &[Arc<Resource>],
    wake_at: &mut Option<Timestamp>,
) -> Wish {
    let now = cycle.shared.runtime.clock.now();
    let only = std::slice::from_ref(handler);
    let (mut state, text) = failing(cycle, handler, view, now);
    if state.due(only, now).is_empty() {
        *wake_at = earliest(*wake_at, state.wake_at(now));
        memory_of(cycle, handler).failing = Some((state, view, text.clone()));
        return Wish::Failed(text);
    }
    let attempt = state.attempt(&handler.id, now);
    let (subject, patch) = (&snapshot.subject, Arc::clone(&cycle.patch));
    let outcome = observers::call(cycle, handler, subject, Occasion::Desired, attempt, patch).await;
    let Some(outcome) = outcome else { return Wish::Nothing };
    let failure = match (&outcome.error, &outcome.output) {
        (Some(failure), _) => failure.message.clone(),
        (None, Output::Nothing) => return Wish::Nothing,
        (None, output) => match complete(handler, snapshot, output, resources) {
            Ok(manifests) => return Wish::Children(manifests),
            Err(text) => text,
        },
    };
    let mut outcome = outcome;
    if outcome.error.is_none() {
        // What cannot be a child stays so until the object changes.
        outcome = invalid(&failure);
        report::outcome(&cycle.shared.runtime, handler, Some(subject), &outcome);
    }
    let now = cycle.shared.runtime.clock.now();
    state.take_in(&handler.id, &outcome, now);
    *wake_at = earliest(*wake_at, state.wake_at(now));
    memory_of(cycle, handler).failing = Some((state, view, failure.clone()));
    Wish::Failed(failure)
}

/// The attempts that have failed on the same state, and what was said then.
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

/// Calls the observers of children, if there is anything new to look at; returns when to look
/// again.
///
/// After the other handlers, so that what they have written and made counts already.
pub(super) async fn observe(
    cycle: &mut Cycle,
    snapshot: &Snapshot,
    view: u64,
) -> Option<Timestamp> {
    let served = Arc::clone(&cycle.served);
    let handlers = &served.handlers.desiring;
    let mut wake_at = None;
    for handler in select::for_occasion(handlers, &snapshot.subject, &Occasion::Desired) {
        if is_observer(&handler) {
            wake_at = earliest(wake_at, look(cycle, &handler, snapshot, view).await);
        }
    }
    wake_at
}

async fn look(
    cycle: &mut Cycle,
    handler: &Arc<Handler>,
    snapshot: &Snapshot,
    view: u64,
) -> Option<Timestamp> {
    let glance = cycle.shared.children.glance(cycle.object.uid());
    let seen = glance ^ view.rotate_left(1);
    if memory_of(cycle, handler).seen == Some(seen) {
        return None;
    }
    // What it writes into the status while it fails is no reason to begin anew.
    let about = glance ^ cycle.object.generation().unwrap_or_default().cast_unsigned();
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
    state.take_in(&handler.id, &outcome, now);
    let wake_at = state.wake_at(now);
    memory_of(cycle, handler).failing = Some((state, about, text));
    wake_at
}

/// Applies and deletes as wished, and says what came of it; returns when to look again.
pub(super) async fn pursue(cycle: &mut Cycle, wishes: Wishes) -> Option<Timestamp> {
    let mut wake_at = wishes.wake_at;
    let mut conditions = Vec::new();
    for (handler, wish) in wishes.wishes {
        match wish {
            Wish::Nothing => {}
            Wish::Failed(text) => conditions.push(Condition::failed(text)),
            Wish::Children(manifests) => {
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
        say(cycle, condition);
    }
    wake_at
}

/// What would be done about all wishes.
pub(super) async fn propose(cycle: &mut Cycle, wishes: Wishes) -> Vec<Proposal> {
    let mut proposals = Vec::new();
    for (handler, wish) in wishes.wishes {
        match wish {
            Wish::Nothing => {}
            Wish::Failed(text) => {
                let action = Action::Refuse(text);
                proposals.push(Proposal { child: handler.id.to_string(), action });
            }
            Wish::Children(manifests) => {
                let (plan, observed) = plan(cycle, &handler, &manifests);
                proposals.extend(dry_run::rehearse(cycle, &manifests, &observed, plan).await);
            }
        }
    }
    proposals
}

fn plan(cycle: &mut Cycle, handler: &Handler, manifests: &[Manifest]) -> (Plan, Vec<Child>) {
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

async fn reconcile(
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
            Step::Delete(doomed) => delete_child(cycle, handler, &doomed, &mut done).await,
            Step::Refuse { key, message } => {
                done.wake_at = earliest(done.wake_at, Some(cycle.after(RECHECK)));
                tell_once(cycle, handler, &key, "", &message);
                done.refused.insert(key, message);
            }
        }
    }
    let wished = memory_of(cycle, handler);
    wished.refused.retain(|key, _| done.refused.contains_key(key));
    wished.applied.retain(|key, _| done.readiness.contains_key(key));
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
    let target = target(&manifest.resource, key);
    let body = Bytes::from(manifest.value.to_string());
    tracing::debug!(child = %key, "applying a child");
    match cycle.shared.cluster.apply(target, body).await {
        Ok(object) => {
            let content = desired::content_of(object.value());
            let state = desired::readiness(&manifest.resource, object.value());
            cycle.shared.children.put(&manifest.resource, object);
            done.readiness.insert(key.clone(), state);
            let applied = Applied { hash: hash.clone(), content };
            memory_of(cycle, handler).applied.insert(key.clone(), applied);
        }
        Err(error) => refuse(cycle, handler, key, hash, &error, done),
    }
}

async fn delete_child(
    cycle: &mut Cycle,
    handler: &Arc<Handler>,
    doomed: &Doomed,
    done: &mut Reconciled,
) {
    if is_postponed(cycle, handler, &doomed.key, "", done) {
        return;
    }
    match remove(cycle, doomed).await {
        Ok(()) => {}
        // Another one by now, as its watch will tell; or a conflict of the moment.
        Err(error) if error.failure == Failure::Conflict => {
            done.wake_at = earliest(done.wake_at, Some(cycle.after(RECHECK)));
        }
        Err(error) => refuse(cycle, handler, &doomed.key, "", &error, done),
    }
}

/// Deletes a child; one that is gone by now is no failure.
async fn remove(cycle: &Cycle, doomed: &Doomed) -> Result<(), RequestError> {
    tracing::debug!(child = %doomed.key, "deleting a child");
    let target = target(&doomed.resource, &doomed.key);
    match cycle.shared.cluster.delete(target, &doomed.uid).await {
        Err(error) if error.failure != Failure::NotFound => Err(error),
        _ => {
            // Nobody would tell of its end, for which the owner would wait without end.
            cycle.shared.children.forget_unwatched(&doomed.key, &doomed.uid);
            Ok(())
        }
    }
}

/// Whether the same was refused before and its time has not come.
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
    let attempts = tell_once(cycle, handler, key, hash, &message);
    let pause = doubled(Duration::from_secs(1), attempts, REFUSED_MAX);
    let next_at = cycle.after(pause);
    tracing::warn!(child = %key, %error, ?pause, "the server rejected a child; retrying");
    if let Some(refused) = memory_of(cycle, handler).refused.get_mut(key) {
        refused.next_at = next_at;
    }
    done.wake_at = earliest(done.wake_at, Some(next_at));
    done.refused.insert(key.clone(), message);
}

/// Remembers a refusal, and posts an event if it is news; returns how often it happened before.
fn tell_once(
    cycle: &mut Cycle,
    handler: &Handler,
    key: &ChildKey,
    hash: &str,
    message: &str,
) -> u32 {
    let now = cycle.shared.runtime.clock.now();
    let wished = memory_of(cycle, handler);
    let known = wished.refused.get(key).filter(|it| it.hash == hash);
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

/// Puts the condition into the patch of the cycle, if it is news.
fn say(cycle: &mut Cycle, condition: Condition) {
    let now = cycle.shared.runtime.clock.now();
    // Where the status is no resource of its own, saying it would be a new generation itself.
    let has_status = cycle.served.resource.subresources.contains("status");
    let generation = cycle.object.generation().filter(|_| has_status);
    let changes = condition.to_changes(generation, now);
    let is_there = has_ready(cycle);
    let status = cycle.object.stanza("status");
    let mut patch = cycle.patch.lock();
    let expected = patch.status_after(status.as_deref());
    let is_news = changes.applied_to(expected.get(CONDITIONS)).is_some();
    let said = Some((condition, generation));
    let memory = cycle.memory.desired.get_or_insert_default();
    memory.is_ready_kept |= is_there;
    // A schema without conditions drops them; saying it again would not help.
    let is_in_vain = !memory.is_ready_kept && memory.said == said;
    memory.said = said;
    if is_news && !is_in_vain {
        let change = Patch { conditions: changes, ..Patch::default() };
        patch.absorb_from(&WRITER.into(), change);
    }
}

/// Whether the object has the condition as it is now.
fn has_ready(cycle: &Cycle) -> bool {
    let status = cycle.object.stanza("status");
    let list = status.as_ref().and_then(|status| status.get(CONDITIONS)?.as_array());
    list.is_some_and(|list| condition(list, READY).is_some())
}

/// Our own write may have changed what the functions look at.
pub(super) fn reconsider(cycle: &mut Cycle, next: Next, view: Option<u64>) -> Next {
    let Some(view) = view else { return next };
    let is_ready_kept = has_ready(cycle);
    let is_changed =
        !cycle.object.is_deleting() && cycle.memory.unsent.is_empty() && view_of(cycle) != view;
    let memory = cycle.memory.desired.get_or_insert_default();
    memory.is_ready_kept |= is_ready_kept;
    memory.rounds = if is_changed { memory.rounds + 1 } else { 0 };
    if matches!(next, Next::Again) || !is_changed || memory.rounds > ROUNDS_MAX {
        return next;
    }
    (cycle.rest.wake_at, cycle.rest.is_settled) = (None, false);
    Next::Again
}

/// A number for all that the functions may depend on: not our notes, counters and conditions.
fn view_of(cycle: &Cycle) -> u64 {
    let mut tree = cycle.object.value().clone();
    if let Some(metadata) = tree.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in ["resourceVersion", "managedFields", "generation", "finalizers"] {
            metadata.shift_remove(field);
        }
        let own = &cycle.served.own_annotations;
        let is_own = |key: &str| own.iter().any(|pattern| key.starts_with(pattern.as_str()));
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.retain(|key, _| !is_own(key));
        }
        // The map comes and goes with our notes.
        metadata.retain(|_, value| value.as_object().is_none_or(|map| !map.is_empty()));
    }
    if let Some(status) = tree.get_mut("status").and_then(Value::as_object_mut) {
        status.shift_remove("conditions");
        if status.is_empty() {
            tree.as_object_mut().map(|tree| tree.shift_remove("status"));
        }
    }
    fingerprint(&tree)
}

fn memory_of<'a>(cycle: &'a mut Cycle, handler: &Handler) -> &'a mut Wished {
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
