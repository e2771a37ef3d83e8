//! The parts of a cycle that look at every state of an object: indexes and raw events.

use std::sync::Arc;

use kopf_core::handler::Handler;
use kopf_core::index;
use kopf_core::invoke::Attempt;
use kopf_core::occasion::{EventKind, Occasion, Subject};
use kopf_core::plan::deliver_result;
use kopf_core::progress::State;
use kopf_core::retry::Outcome;
use kopf_core::select;
use kopf_model::{Object, Patch};
use parking_lot::Mutex;

use super::{Cycle, CycleError, caught};
use crate::attempt::{self, Request};

impl Cycle {
    /// Brings the entries of the object in all indexes up to date.
    pub(super) async fn index(&mut self) {
        let served = Arc::clone(&self.served);
        let object = self.object.key();
        let subject = self.subject();
        if self.gone {
            for handler in &served.handlers.indexing {
                self.with_index(handler, |index| index.discard(&object));
            }
            return;
        }
        let handlers = &served.handlers.indexing;
        let matching = select::for_occasion(handlers, &subject, &Occasion::Index);
        // By ids: an index may be declared several times, for different kinds of objects.
        for handler in handlers.iter().filter(|it| !matching.iter().any(|other| other.id == it.id))
        {
            self.with_index(handler, |index| index.discard(&object));
        }
        for handler in &matching {
            self.index_with(handler, &subject).await;
        }
    }

    async fn index_with(&mut self, handler: &Arc<Handler>, subject: &Subject) {
        let now = self.shared.runtime.clock.now();
        let known = self.memory.indexing.remove(&handler.id);
        let mut state = known
            .unwrap_or_else(|| State::new(None))
            .with_handlers(std::slice::from_ref(handler), now);
        if state.due(std::slice::from_ref(handler), now).is_empty() {
            self.memory.indexing.insert(Arc::clone(&handler.id), state);
            return;
        }
        let attempt = state.attempt(&handler.id, now);
        // A patch of an index handler goes nowhere.
        let outcome =
            self.attempt(handler, subject, Occasion::Index, attempt, Arc::default()).await;
        let Some(outcome) = outcome else { return };
        let object = self.object.key();
        if outcome.error.is_some() {
            state.take_in(&handler.id, &outcome, self.shared.runtime.clock.now());
            self.memory.indexing.insert(Arc::clone(&handler.id), state);
            self.with_index(handler, |index| index.discard(&object));
            return;
        }
        if let Some(entries) = index::entries(outcome.output) {
            self.with_index(handler, |index| index.replace(&object, entries));
        }
    }

    fn with_index(&self, handler: &Handler, change: impl FnOnce(&index::Index)) {
        if let Some(index) = self.shared.stores.get(&handler.id) {
            change(index);
        }
    }

    /// Calls the event handlers for every event in order; fails with the first panic of a filter,
    /// but not before the other events.
    pub(super) async fn deliver_events(
        &mut self,
        events: Vec<(Option<EventKind>, Object)>,
    ) -> Result<(), CycleError> {
        let mut delivered = Ok(());
        for (kind, object) in events {
            delivered = delivered.and(caught(self.deliver_event(kind, object)).await);
        }
        delivered
    }

    async fn deliver_event(&mut self, kind: Option<EventKind>, object: Object) {
        let served = Arc::clone(&self.served);
        let subject = Subject { resource: Arc::clone(&served.resource), object };
        let occasion = Occasion::Event { kind };
        for handler in select::for_occasion(&served.handlers.watching, &subject, &occasion) {
            let now = self.shared.runtime.clock.now();
            let attempt = Attempt { retry: 0, started: now, now };
            let patch = Arc::clone(&self.patch);
            let outcome = self.attempt(&handler, &subject, occasion.clone(), attempt, patch).await;
            if let Some(outcome) = outcome {
                deliver_result(&handler.id, &outcome, &mut self.patch.lock());
            }
        }
    }

    /// Calls a handler that has neither sub-handlers nor stored progress; none if it was cancelled.
    pub(super) async fn attempt(
        &mut self,
        handler: &Arc<Handler>,
        subject: &Subject,
        occasion: Occasion,
        attempt: Attempt,
        patch: Arc<Mutex<Patch>>,
    ) -> Option<Outcome> {
        let shared = Arc::clone(&self.shared);
        let memo = self.memory.memo(&shared.runtime.memos, subject.object.uid());
        let request = Request {
            subject: Some(subject),
            patch: Some(patch),
            family: shared.family(subject),
            ..Request::new(handler, attempt, occasion, memo)
        };
        attempt::run(&shared.runtime, request).await.ok().map(|attempted| attempted.outcome)
    }
}
