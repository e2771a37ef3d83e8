//! The parts of a cycle that process every state of an object: indexes and raw events.

use std::sync::Arc;

use kopf_core::handler::Handler;
use kopf_core::index;
use kopf_core::invoke::{Attempt, CallbackError};
use kopf_core::occasion::{EventKind, Occasion, Subject};
use kopf_core::plan::move_result;
use kopf_core::progress::State;
use kopf_core::retry::Outcome;
use kopf_core::select;
use kopf_model::{Object, Patch};
use parking_lot::Mutex;

use super::{Cycle, CycleError, caught};
use crate::attempt::{self, Request};
use crate::callbacks;

/// Updates the entries of the object in all indexes.
pub(super) async fn index(cycle: &mut Cycle) -> Result<(), CallbackError> {
    let served = Arc::clone(&cycle.served);
    let object = cycle.object.key();
    let subject = cycle.subject();
    if cycle.gone {
        for handler in &served.handlers.indexing {
            with_index(cycle, handler, |index| index.discard(&object));
        }
        return Ok(());
    }
    let handlers = &served.handlers.indexing;
    let select = || select::for_occasion(handlers, &subject, &Occasion::Index);
    let matching = callbacks::decide(select).await?;
    // By ids: an index may be declared several times, for different kinds of objects.
    for handler in handlers.iter().filter(|it| !matching.iter().any(|other| other.id == it.id)) {
        with_index(cycle, handler, |index| index.discard(&object));
    }
    for handler in &matching {
        index_with(cycle, handler, &subject).await;
    }
    Ok(())
}

async fn index_with(cycle: &mut Cycle, handler: &Arc<Handler>, subject: &Subject) {
    let now = cycle.shared.runtime.clock.now();
    let known = cycle.memory.indexing.remove(&handler.id);
    let mut state =
        known.unwrap_or_else(|| State::new(None)).with_handlers(std::slice::from_ref(handler), now);
    if state.due(std::slice::from_ref(handler), now).is_empty() {
        cycle.memory.indexing.insert(Arc::clone(&handler.id), state);
        return;
    }
    let attempt = state.attempt(&handler.id, now);
    // The patch of an index handler is discarded.
    let outcome = call(cycle, handler, subject, Occasion::Index, attempt, Arc::default()).await;
    let Some(outcome) = outcome else { return };
    let object = cycle.object.key();
    if outcome.error.is_some() {
        state.record_outcome(&handler.id, &outcome, cycle.shared.runtime.clock.now());
        cycle.memory.indexing.insert(Arc::clone(&handler.id), state);
        with_index(cycle, handler, |index| index.discard(&object));
        return;
    }
    if let Some(entries) = index::entries(outcome.output) {
        with_index(cycle, handler, |index| index.replace(&object, entries));
    }
}

fn with_index(cycle: &Cycle, handler: &Handler, change: impl FnOnce(&index::Index)) {
    if let Some(index) = cycle.shared.stores.get(&handler.id) {
        change(index);
    }
}

/// Calls the event handlers for every event in order; fails with the first filter that does, but
/// not before the other events.
pub(super) async fn deliver_events(
    cycle: &mut Cycle,
    events: Vec<(Option<EventKind>, Object)>,
) -> Result<(), CycleError> {
    let mut delivered = Ok(());
    for (kind, object) in events {
        delivered = delivered.and(caught(deliver_event(cycle, kind, object)).await);
    }
    delivered
}

async fn deliver_event(
    cycle: &mut Cycle,
    kind: Option<EventKind>,
    object: Object,
) -> Result<(), CallbackError> {
    let served = Arc::clone(&cycle.served);
    let subject = Subject { resource: Arc::clone(&served.resource), object };
    let occasion = Occasion::Event { kind };
    let select = || select::for_occasion(&served.handlers.watching, &subject, &occasion);
    for handler in callbacks::decide(select).await? {
        let now = cycle.shared.runtime.clock.now();
        let attempt = Attempt { retry: 0, started: now, now };
        let patch = Arc::clone(&cycle.patch);
        let outcome = call(cycle, &handler, &subject, occasion.clone(), attempt, patch).await;
        if let Some(mut outcome) = outcome {
            move_result(&handler.id, &mut outcome, &mut cycle.patch.lock());
        }
    }
    Ok(())
}

/// Calls a handler that has neither sub-handlers nor stored progress; `None` if it was cancelled.
pub(super) async fn call(
    cycle: &mut Cycle,
    handler: &Arc<Handler>,
    subject: &Subject,
    occasion: Occasion,
    attempt: Attempt,
    patch: Arc<Mutex<Patch>>,
) -> Option<Outcome> {
    let shared = Arc::clone(&cycle.shared);
    let memo = cycle.memory.memo(&shared.runtime.memos, subject.object.uid());
    let request = Request {
        subject: Some(subject),
        patch: Some(patch),
        family: shared.family(subject),
        ..Request::new(handler, attempt, occasion, memo)
    };
    attempt::run(&shared.runtime, request).await.ok().map(|attempted| attempted.outcome)
}
