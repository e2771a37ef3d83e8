//! Runs the handlers of one detected change, sub-handlers included.
//!
//! Gets the selected handlers from the cycle, calls those that are due, and leaves the outcomes in
//! the progress and the results in the patch. Writes nothing to the cluster.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use kopf_core::handler::{Handler, HandlerId, child_id};
use kopf_core::invoke::{Attempt, BoxFuture, CallbackError, Extensions, HandlerError, SubHandlers};
use kopf_core::occasion::{Change, Occasion, Reason, Subject};
use kopf_core::plan::{change_since, move_result, told};
use kopf_core::progress::State;
use kopf_core::retry::Outcome;
use kopf_core::select;
use kopf_model::{FieldPath, Patch, Timestamp};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::attempt::{self, AttemptSubHandlers, Cancelled, Request};
use crate::callbacks::{self, Choosing};
use crate::context::shared::{Served, Shared};

/// One pass over the handlers of a change.
pub(crate) struct Pass {
    pub(crate) shared: Arc<Shared>,
    pub(crate) served: Arc<Served>,
    pub(crate) subject: Subject,
    /// The change since the object was last handled.
    pub(crate) change: Change,
    /// Whether sub-handlers that have finished for an outdated state of the object run again.
    pub(crate) rerun_outdated: bool,
    pub(crate) memo: Arc<Extensions>,
    /// The changes that handlers request on the object.
    pub(crate) patch: Arc<Mutex<Patch>>,
    /// The progress of sub-handlers by parent; written by the running handler's sub-handlers, read
    /// by the cycle; never locked across an await point.
    pub(crate) subs: Mutex<BTreeMap<HandlerId, State>>,
    /// The changes that finished handlers request, for records that are written while others still
    /// run.
    pub(crate) finished_patch: Mutex<Patch>,
    /// Notifies the cycle that a sub-handler has finished.
    pub(crate) progressed: Notify,
}

/// The input of a handler, and then of its sub-handlers.
struct Matter {
    /// The change; of the field, if the handler or its parent has one.
    change: Change,
    /// The fields to which the change was reduced, each within the previous one.
    fields: Vec<FieldPath>,
    /// Whether fields of interest must have changed.
    field_needs_change: bool,
    /// Whether it is about a deletion, for which earlier progress does not count.
    is_deletion: bool,
}

impl Pass {
    /// What a lifecycle chooses handlers for.
    pub(crate) fn choosing(&self) -> Choosing {
        Choosing { subject: self.subject.clone(), change: self.change.clone() }
    }

    /// Records the requested changes between two handlers, while none of them runs.
    pub(crate) fn keep_finished_patch(&self) {
        let finished_patch = self.patch.lock().clone();
        *self.finished_patch.lock() = finished_patch;
    }

    /// Drops the oldest transformations: they are written, and may not be repeatable.
    pub(crate) fn forget_transformations(&self, count: usize) {
        for patch in [&*self.patch, &self.finished_patch] {
            let transformations = &mut patch.lock().transformations;
            transformations.drain(..count.min(transformations.len()));
        }
    }

    /// Since when outcomes of sub-handlers exist only in memory, if they do.
    pub(crate) fn unsaved_since(&self) -> Option<Timestamp> {
        self.subs.lock().values().filter_map(State::unsaved_since).min()
    }

    /// The progress of all sub-handlers, which counts as saved from now on.
    pub(crate) fn begin_saving(&self) -> Vec<State> {
        let mut subs = self.subs.lock();
        let states = subs.values().cloned().collect();
        subs.values_mut().for_each(State::note_saved);
        states
    }

    /// The sub-handlers of a handler, at any depth.
    pub(crate) fn sub_ids(&self, parent: &str) -> Vec<HandlerId> {
        let subs = self.subs.lock();
        let mut found: Vec<HandlerId> = Vec::new();
        let mut parents = vec![parent];
        while let Some(parent) = parents.pop() {
            for child in subs.get(parent).into_iter().flat_map(State::iter) {
                found.push(Arc::clone(&child.id));
                parents.push(&child.id);
            }
        }
        found
    }

    /// Calls one handler once, for its own view of the change.
    pub(crate) async fn attempt(
        self: &Arc<Self>,
        handler: &Arc<Handler>,
        attempt: Attempt,
        change: Change,
    ) -> Result<Outcome, Cancelled> {
        let field_needs_change = handler.kind.field_needs_change();
        let fields = handler.filters.field.iter().cloned().collect();
        let is_deletion = handler.kind.reason() == Some(Reason::Delete);
        let matter = Matter { change, fields, field_needs_change, is_deletion };
        self.attempt_about(handler, attempt, matter).await
    }

    async fn attempt_about(
        self: &Arc<Self>,
        handler: &Arc<Handler>,
        attempt: Attempt,
        matter: Matter,
    ) -> Result<Outcome, Cancelled> {
        let occasion = Occasion::Change(matter.change.clone());
        let sub_handlers = SubInner::new(self, handler, matter);
        let request = Request {
            subject: Some(&self.subject),
            patch: Some(Arc::clone(&self.patch)),
            sub_handlers: Some(sub_handlers),
            family: self.shared.family(&self.subject),
            ..Request::new(handler, attempt, occasion, Arc::clone(&self.memo))
        };
        Ok(attempt::run(&self.shared.runtime, request).await?.outcome)
    }
}

/// The sub-handlers of one attempt of one handler.
struct SubInner {
    /// Itself, for futures that outlive a call.
    this: Weak<Self>,
    pass: Arc<Pass>,
    parent: HandlerId,
    /// Earlier ids of the parent.
    was: Vec<HandlerId>,
    /// The input of the parent.
    matter: Matter,
    registered: Mutex<Vec<Arc<Handler>>>,
    /// The changes for sub-handlers that run again.
    reruns: Mutex<BTreeMap<HandlerId, Change>>,
    executed: AtomicBool,
    /// All ids at any depth.
    seen: Mutex<Vec<HandlerId>>,
}

impl SubInner {
    fn new(pass: &Arc<Pass>, parent: &Arc<Handler>, matter: Matter) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            this: Weak::clone(this),
            pass: Arc::clone(pass),
            parent: Arc::clone(&parent.id),
            was: parent.was.clone(),
            matter,
            registered: Mutex::default(),
            reruns: Mutex::default(),
            executed: AtomicBool::new(false),
            seen: Mutex::default(),
        })
    }
}

impl SubHandlers for SubInner {
    fn register(&self, mut handler: Handler) {
        handler.was = self.former_ids(&handler);
        handler.id = child_id(&self.parent, &handler.id);
        let handler = Arc::new(handler);
        let mut registered = self.registered.lock();
        if registered.iter().any(|known| known.id == handler.id) {
            tracing::warn!(handler = %handler.id, "a sub-handler with this id already exists");
            return;
        }
        self.seen.lock().push(Arc::clone(&handler.id));
        registered.push(handler);
    }

    fn execute(&self) -> BoxFuture<Result<(), HandlerError>> {
        self.executed.store(true, Ordering::Release);
        let this = self.this.upgrade().expect("it exists only in an `Arc`");
        Box::pin(this.execute_all())
    }

    fn ids(&self) -> Vec<HandlerId> {
        self.registered.lock().iter().map(|handler| Arc::clone(&handler.id)).collect()
    }

    fn note(&self, ids: Vec<HandlerId>) {
        let mut seen = self.seen.lock();
        for id in ids {
            if !seen.contains(&id) {
                seen.push(id);
            }
        }
    }
}

impl AttemptSubHandlers for SubInner {
    fn complete(&self) -> Option<BoxFuture<Result<(), HandlerError>>> {
        let is_left = !self.executed.load(Ordering::Acquire);
        (is_left && !self.registered.lock().is_empty()).then(|| self.execute())
    }

    fn seen(&self) -> Vec<HandlerId> {
        self.seen.lock().clone()
    }
}

impl SubInner {
    /// The ids under which a sub-handler may have stored its progress: it, the parent or both may
    /// have been renamed.
    fn former_ids(&self, handler: &Handler) -> Vec<HandlerId> {
        let names = || std::iter::once(&handler.id).chain(&handler.was);
        let parents = std::iter::once(&self.parent).chain(&self.was);
        let ids = parents.flat_map(|parent| names().map(|name| child_id(parent, name)));
        // The first one is the current id.
        ids.skip(1).collect()
    }

    async fn execute_all(self: Arc<Self>) -> Result<(), HandlerError> {
        let registered = self.registered.lock().clone();
        if registered.is_empty() {
            return Ok(());
        }
        let pass = &self.pass;
        let selected = callbacks::decide(|| self.load(&registered)).await?;
        let mut attempted: Vec<HandlerId> = Vec::new();
        loop {
            let now = pass.shared.runtime.clock.now();
            let choose = || {
                let subs = pass.subs.lock();
                let state = subs.get(&self.parent).expect("loaded just now");
                let mut due = state.due(&selected, now);
                // Immediate retries wait for the next pass, as others may too.
                due.retain(|handler| !attempted.contains(&handler.id));
                let lifecycle = &pass.shared.lifecycle;
                let choose = || lifecycle.choose(due, state);
                callbacks::choose(lifecycle, || pass.choosing(), choose)
            };
            let chosen = callbacks::decide(choose).await?;
            if chosen.is_empty() {
                break;
            }
            for handler in chosen {
                attempted.push(Arc::clone(&handler.id));
                self.run(&handler).await?;
            }
        }
        let now = pass.shared.runtime.clock.now();
        let subs = pass.subs.lock();
        let state = subs.get(&self.parent).expect("loaded at the beginning");
        match state.wake_at(now) {
            None => Ok(()),
            Some(moment) => {
                let delay = moment.duration_since(now).try_into().unwrap_or_default();
                Err(HandlerError::SubHandlers { delay: Some(delay) })
            }
        }
    }

    /// Loads the progress of the sub-handlers, and returns those that the change concerns.
    fn load(&self, registered: &[Arc<Handler>]) -> Result<Vec<Arc<Handler>>, HandlerError> {
        let pass = &self.pass;
        let Matter { change, field_needs_change, .. } = &self.matter;
        let mut selected =
            select::for_parent(registered, &pass.subject, change, *field_needs_change)?;
        let now = pass.shared.runtime.clock.now();
        let (object, storage) = (&pass.subject.object, &*pass.served.storages.progress);
        let stored = State::load(storage, object, registered, now).map_err(|error| {
            let message = format!("could not read the progress of sub-handlers: {error}");
            HandlerError::Arbitrary { message, details: None }
        })?;
        let is_deletion = pass.change.reason == Reason::Delete;
        let stored = match pass.rerun_outdated && !is_deletion {
            true => stored.with_handled_states(pass.change.old.as_ref()),
            false => stored,
        };
        let mut state = stored.with_purpose(pass.change.reason).with_handlers(&selected, now);
        if pass.rerun_outdated && self.matter.is_deletion {
            state.restart_others(&selected, now);
        }
        state.repurpose(&selected);
        let mut subs = pass.subs.lock();
        if let Some(remembered) = subs.get(&self.parent) {
            state = state.catch_up(remembered);
        }
        if pass.rerun_outdated && !is_deletion {
            self.recheck(registered, &mut selected, &mut state, now)?;
        }
        subs.insert(Arc::clone(&self.parent), state);
        Ok(selected)
    }

    /// Makes sub-handlers that have finished for an outdated state run again.
    fn recheck(
        &self,
        registered: &[Arc<Handler>],
        selected: &mut Vec<Arc<Handler>>,
        state: &mut State,
        now: Timestamp,
    ) -> Result<(), CallbackError> {
        let Some(new) = &self.pass.change.new else { return Ok(()) };
        for handler in registered {
            let known = state.get(&handler.id);
            let Some(handled) = known.and_then(|known| known.handled.clone()) else { continue };
            let since = change_since(&handled, self.pass.change.initial, new);
            let since = self.matter.fields.iter().fold(since, |since, field| since.reduce(field));
            let needs_change = self.matter.field_needs_change;
            let one = std::slice::from_ref(handler);
            let is_concerned = !handled.is(new)
                && !select::for_parent(one, &self.pass.subject, &since, needs_change)?.is_empty();
            if !is_concerned {
                state.finish(&handler.id);
                continue;
            }
            state.rerun(&handler.id, handled, now);
            self.reruns.lock().insert(Arc::clone(&handler.id), since);
            if !selected.iter().any(|known| known.id == handler.id) {
                selected.push(Arc::clone(handler));
            }
        }
        Ok(())
    }

    async fn run(self: &Arc<Self>, handler: &Arc<Handler>) -> Result<(), HandlerError> {
        let pass = &self.pass;
        let now = pass.shared.runtime.clock.now();
        let attempt = match pass.subs.lock().get(&self.parent) {
            Some(state) => state.attempt(&handler.id, now),
            None => Attempt { retry: 0, started: now, now },
        };
        let running: BoxFuture<Result<Outcome, Cancelled>> = {
            let (pass, handler) = (Arc::clone(pass), Arc::clone(handler));
            let Matter { change, fields, field_needs_change, is_deletion } = &self.matter;
            let own = self.reruns.lock().get(&handler.id).cloned();
            let change = told(own.as_ref().unwrap_or(change), &handler);
            let fields = fields.iter().chain(&handler.filters.field).cloned().collect();
            let (field_needs_change, is_deletion) = (*field_needs_change, *is_deletion);
            let matter = Matter { change, fields, field_needs_change, is_deletion };
            Box::pin(async move { pass.attempt_about(&handler, attempt, matter).await })
        };
        let mut outcome = running.await.map_err(|_| HandlerError::Cancelled)?;
        for subref in &outcome.subrefs {
            self.seen.lock().push(Arc::clone(subref));
        }
        move_result(&handler.id, &mut outcome, &mut pass.patch.lock());
        let now = pass.shared.runtime.clock.now();
        if let Some(state) = pass.subs.lock().get_mut(&self.parent) {
            state.record_outcome(&handler.id, &outcome, now);
            let seen = pass.change.new.as_ref();
            if let Some(seen) = seen.filter(|_| pass.rerun_outdated && outcome.is_final) {
                state.note_handled(&handler.id, seen);
            }
        }
        pass.keep_finished_patch();
        pass.progressed.notify_one();
        Ok(())
    }
}
