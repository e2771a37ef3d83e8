//! One cycle of one object: from its newest state to at most one write, and on from the response.
//!
//! The decisions are in `kopf-core`; this file executes them. Gets a [`Job`] from the reactor and
//! returns a [`Done`]. Continues from the responses to its own writes instead of waiting for their
//! events.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use kopf_client::{RequestError, Urgency};
use kopf_core::cause::{self, Seen, Snapshot};
use kopf_core::finalizer::Step;
use kopf_core::invoke::{CallbackError, StopReason, panic_text};
use kopf_core::logtext::{self, Line};
use kopf_core::occasion::{EventKind, Reason, Subject};
use kopf_core::plan::{Agenda, Closing, Inputs, Plan, PlanError};
use kopf_core::progress::State;
use kopf_core::queue::Ticket;
use kopf_core::write::Version;
use kopf_model::storage::StorageError;
use kopf_model::{Essence, EssenceHash, Fingerprints, Object, Patch, Timestamp};
use parking_lot::Mutex;
use tracing::Instrument as _;

use crate::background::{BackgroundState, Situation};
use crate::callbacks::{self, CallbackContext};
use crate::context::shared::{Served, Shared, cause_span, object_span};
use crate::error_chain::chain;
use crate::key::Key;
use crate::store::Flags;
use crate::store::memory::{Memory, Progress};
use crate::write::{Applied, limit};

mod apply;
mod conflicts;
mod desired;
mod dry_run;
mod execution;
mod history;
mod observers;
mod own_changes;
mod paused;
mod sub_handlers;

use desired::DesiredChildren;
use own_changes::Wanted;
pub use paused::PAUSED_ANNOTATION;

/// The input of a worker.
pub(crate) struct Job {
    pub(crate) ticket: Ticket<Key>,
    pub(crate) served: Arc<Served>,
    pub(crate) object: Object,
    pub(crate) gone: bool,
    pub(crate) events: Vec<(Option<EventKind>, Object)>,
    pub(crate) memory: Box<Memory>,
    pub(crate) flags: Flags,
    pub(crate) mode: Mode,
    /// The known version of the object besides this job, for [`Mode::EventsOnly`].
    pub(crate) version: Version,
    pub(crate) settled: Option<EssenceHash>,
}

/// Which parts of a cycle run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Everything.
    Full,
    /// Only the indexes: other indexes of the operator are not filled yet.
    IndexOnly,
    /// Only the event handlers: the states are older than those already handled.
    EventsOnly,
    /// Everything, and progress is written even if it could wait: the process is ending.
    Closing,
}

/// The result of a worker.
pub(crate) struct Done {
    pub(crate) ticket: Ticket<Key>,
    pub(crate) memory: Box<Memory>,
    /// The newest body, if it must be kept.
    pub(crate) body: Option<Object>,
    pub(crate) flags: Flags,
    /// The newest version that was considered.
    pub(crate) version: Version,
    /// The fingerprint, if nothing is left to do.
    pub(crate) settled: Option<EssenceHash>,
    pub(crate) wake_at: Option<Timestamp>,
    /// The error, if any.
    pub(crate) error: Option<String>,
    /// What to log below the error.
    pub(crate) details: Option<String>,
    pub(crate) subject: Subject,
    pub(crate) gone: bool,
    pub(crate) mode: Mode,
}

/// Why a cycle could not be completed; the object is throttled.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CycleError {
    #[error("the state stored on the object cannot be read")]
    Storage(#[source] StorageError),
    #[error("the object could not be patched")]
    Write(#[from] RequestError),
    #[error("the server does not find the object, but has not reported its deletion")]
    Missing,
    #[error("the server accepted our finalizer but did not store it")]
    Unheld,
    #[error("a filter or another callback panicked: {0}")]
    Panic(String),
    #[error(transparent)]
    Callback(#[from] CallbackError),
}

impl CycleError {
    /// What to log below the error.
    fn into_details(self) -> Option<String> {
        match self {
            Self::Callback(error) => error.details,
            _ => None,
        }
    }
}

impl From<StorageError> for CycleError {
    fn from(error: StorageError) -> Self {
        PlanError::from(error).into()
    }
}

impl From<PlanError> for CycleError {
    fn from(error: PlanError) -> Self {
        match error {
            PlanError::Storage(error) => Self::Storage(error),
            PlanError::Callback(error) => Self::Callback(error),
        }
    }
}

pub(crate) struct Cycle {
    shared: Arc<Shared>,
    served: Arc<Served>,
    origin: Origin,
    object: Object,
    gone: bool,
    memory: Box<Memory>,
    flags: Flags,
    mode: Mode,
    /// The changes of event handlers, until they are written.
    patch: Arc<Mutex<Patch>>,
    rest: Rest,
    /// The essence of the last turn, with its fingerprint.
    essence: Option<(EssenceHash, Essence)>,
    /// The changes that handlers requested in this turn.
    wanted: Wanted,
}

/// What the reactor knows about the object besides the job.
struct Origin {
    ticket: Ticket<Key>,
    version: Version,
    settled: Option<EssenceHash>,
}

/// What is known at the end of a turn.
#[derive(Default)]
struct Rest {
    /// When to handle the object again.
    wake_at: Option<Timestamp>,
    /// Whether nothing is left to do.
    is_settled: bool,
    /// The fingerprints of the newest state.
    fingerprints: Option<Fingerprints>,
}

/// A running cycle. If it is aborted because the engine ends, the memory of its object is lost, but
/// the daemons in it still get their grace period.
struct AbortGuard(Option<Cycle>);

/// What the children of an object mean for its cycle.
struct ChildrenState {
    /// Whether they wait for our finalizer.
    must_wait: bool,
    /// When to check again.
    wake_at: Option<Timestamp>,
}

/// Whether the cycle continues with the response to its write.
enum Next {
    Again,
    Finish,
}

/// Runs one cycle; errors and panics of callbacks lead to throttling, never to a lost object.
pub(crate) async fn run(shared: Arc<Shared>, job: Job) -> Done {
    let subject =
        Subject { resource: Arc::clone(&job.served.resource), object: job.object.clone() };
    let span = object_span(&subject);
    let events = job.events;
    let mut guard = AbortGuard(Some(Cycle {
        shared,
        served: job.served,
        origin: Origin { ticket: job.ticket, version: job.version, settled: job.settled },
        object: job.object,
        gone: job.gone,
        memory: job.memory,
        flags: job.flags,
        mode: job.mode,
        patch: Arc::default(),
        rest: Rest::default(),
        essence: None,
        wanted: Wanted::default(),
    }));
    // Futures are pinned where they are created, so that they are not moved through every caller.
    let working = pin!(async move {
        let cycle = guard.0.as_mut().expect("it was put there above");
        let context = cycle.callback_context();
        let caught = {
            let processing = std::panic::AssertUnwindSafe(pin!(cycle.process(events)));
            let processing = futures::FutureExt::catch_unwind(processing);
            match context {
                Some(context) => Box::pin(callbacks::within(context, processing)).await,
                None => processing.await,
            }
        };
        let result = match caught {
            Ok(result) => result,
            Err(panic) => Err(CycleError::Panic(panic_text(panic.as_ref()))),
        };
        let cycle = guard.0.take().expect("it is taken only here");
        cycle.finish(result)
    });
    working.instrument(span).await
}

impl Drop for AbortGuard {
    fn drop(&mut self) {
        // Without a runtime they get no grace period, and end with the memory.
        if let Some(cycle) = &mut self.0
            && tokio::runtime::Handle::try_current().is_ok()
        {
            let Cycle { shared, memory, .. } = cycle;
            memory.background.stop_detached(shared, StopReason::OPERATOR_EXITING);
        }
    }
}

impl Cycle {
    async fn process(
        &mut self,
        events: Vec<(Option<EventKind>, Object)>,
    ) -> Result<(), CycleError> {
        // States older than the known one must be seen only by event handlers.
        if self.mode == Mode::EventsOnly {
            return Box::pin(self.only_deliver(events)).await;
        }
        if let Some(live) = &self.memory.background.live {
            live.set(self.object.clone());
        }
        // Parts that few operators use are boxed, so that the others do not carry their size.
        let is_indexed = !self.served.handlers.indexing.is_empty();
        let indexed = match is_indexed && (self.gone || !self.flags.indexed) {
            true => Box::pin(self.index()).await,
            false => Ok(()),
        };
        if self.mode == Mode::IndexOnly {
            return indexed;
        }
        // Events come first: neither a server that rejects writes nor a condition that panics must
        // block their delivery, since they are not sent again.
        let delivered = match events.is_empty() {
            true => Ok(()),
            false => Box::pin(observers::deliver_events(self, events)).await,
        };
        indexed?;
        self.work(is_indexed).await.and(delivered)
    }

    /// Everything after the events.
    async fn work(&mut self, is_indexed: bool) -> Result<(), CycleError> {
        if paused::is_paused(self) {
            Box::pin(paused::stop_background(self)).await;
            return Ok(());
        }
        let was_gone = self.gone;
        if !self.memory.unsent.is_empty() && !Box::pin(self.resend()).await? {
            return Ok(());
        }
        let seen = (Version::of(&self.object), was_gone);
        while let Next::Again = self.turn().await? {}
        if is_indexed && (Version::of(&self.object), self.gone) != seen {
            // The event of our own write brings nothing new, so the indexes skip it.
            Box::pin(self.index()).await?;
        }
        Ok(())
    }

    /// Updates the indexes, and notes whether they need this state again.
    async fn index(&mut self) -> Result<(), CycleError> {
        self.flags.indexed = false;
        caught(observers::index(self)).await?;
        // An index handler that has failed may be due again later.
        self.flags.indexed = !self.gone && self.memory.indexing.is_empty();
        Ok(())
    }

    async fn only_deliver(
        &mut self,
        events: Vec<(Option<EventKind>, Object)>,
    ) -> Result<(), CycleError> {
        let delivered = observers::deliver_events(self, events).await;
        conflicts::report(&mut self.patch.lock(), &mut self.memory.reported);
        let patch = Arc::clone(&self.patch);
        own_changes::note_wanted(self, &patch.lock());
        let before = self.object.clone();
        if !self.memory.unsent.is_empty() && Version::of(&before) == self.origin.version {
            // A full cycle for this very state will follow, and must continue from the response.
            let patch = std::mem::take(&mut *self.patch.lock());
            self.memory.unsent.absorb(patch);
            return delivered;
        }
        if self.resend().await? && Version::of(&self.object) != Version::of(&before) {
            let after = self.object.clone();
            own_changes::watch_for_loops(self, &before, &after).await;
        }
        delivered
    }

    /// One turn. The numbers are those of the path of a change in `ARCHITECTURE.md`.
    async fn turn(&mut self) -> Result<Next, CycleError> {
        // 4. Collect everything that the decision needs.
        let fingerprint = self.scan().map(|it| it.essence);
        let snapshot = self.snapshot(fingerprint).await?;
        let served = Arc::clone(&self.served);
        // 5. Detect what happened, before any user code runs.
        let change = cause::detect(&snapshot, &served.finalizer);
        let background = self.revise_background(&snapshot).await?;
        if change.reason == Reason::Free && self.is_known_as_released() {
            self.rest.fingerprints = self.scan();
            self.rest.is_settled = self.origin.settled.is_some();
            return Ok(Next::Finish);
        }
        let Some(desired) = self.desired_children(&snapshot, change.reason).await? else {
            return Ok(Next::Finish);
        };
        // Kept until there is a newer one: a filter that panics must not lose it.
        let remembered = self.memory.progress.clone().unwrap_or_default();
        let inputs = Inputs {
            snapshot: &snapshot,
            changing: &served.handlers.changing,
            has_background: background.is_needed || desired.is_needed,
            storages: &served.storages,
            finalizer: &served.finalizer,
            remembered: remembered.main.as_ref(),
            remembered_subs: Some(&remembered.subs),
            rerun_outdated: self.shared.runtime.context.settings.read().execution.rerun_outdated,
            now: self.shared.runtime.clock.now(),
        };
        // 6-7. Select the handlers, and those that are due.
        let mut agenda = callbacks::decide(|| Agenda::make(inputs, change.clone())).await?;
        self.log_agenda(&agenda);
        history::note_cause(self, &agenda, &snapshot);
        let (step, cause) = (agenda.step, cause_span(&agenda));
        // 8. Run the handlers.
        let mut subs = remembered.subs.clone();
        if let Some(change) = agenda.change.clone().filter(|change| change.reason.has_handlers()) {
            let pass = self.pass(&snapshot, change, subs);
            pin!(self.execute(&mut agenda, inputs, &pass)).instrument(cause.clone()).await?;
            subs = std::mem::take(&mut *pass.subs.lock());
        }
        let view = desired.view;
        if let Some(rehearsal) = self.shared.runtime.rehearsal.clone() {
            if view.is_some() || !desired.is_empty() {
                let proposals = Box::pin(desired::propose(self, desired)).await;
                rehearsal.end(&self.object, proposals);
            }
            return Ok(Next::Finish);
        }
        let children = self.revise_children(desired, &snapshot, step).await?;
        // 9. Decide what to write. Written progress is on the newer state; records to remove must
        //    be seen there.
        let mut newest = snapshot.clone();
        newest.subject.object = self.object.clone();
        let inputs = Inputs { snapshot: &newest, ..inputs };
        conflicts::report(&mut self.patch.lock(), &mut self.memory.reported);
        let patch = std::mem::take(&mut *self.patch.lock());
        own_changes::note_wanted(self, &patch);
        let closing = self.closing(&background, children.wake_at);
        let may_ask = self.may_ask();
        let (mut plan, subs) =
            callbacks::decide_from(may_ask, (agenda, patch, subs), |(agenda, patch, mut subs)| {
                agenda.conclude_with(inputs, patch, closing, &mut subs).map(|plan| (plan, subs))
            })
            .await?;
        plan.is_continued |= children.must_wait;
        let remember = plan.remember.take();
        self.memory.progress = remember.map(|main| Progress { main: Some(main), subs });
        // 10-11. Write, and continue from the response.
        let next = {
            let writing = pin!(self.write_plan(plan, step, &snapshot, fingerprint));
            writing.instrument(cause).await?
        };
        Ok(desired::reconsider(self, next, view))
    }

    /// Whether an earlier cycle has released the object in this very state: this one is about the
    /// end of a daemon or timer.
    fn is_known_as_released(&self) -> bool {
        let is_known = Version::of(&self.object) == self.origin.version;
        let is_released = self.flags.deleting && !self.flags.held;
        is_known && is_released && self.memory.unsent.is_empty()
    }

    /// Starts and stops daemons and timers, if there are any.
    async fn revise_background(
        &mut self,
        snapshot: &Snapshot,
    ) -> Result<BackgroundState, CallbackError> {
        let Memory { background, memo, .. } = &mut *self.memory;
        if self.served.handlers.spawning.is_empty() && background.is_idle() {
            return Ok(BackgroundState::default());
        }
        let situation = Situation {
            shared: &self.shared,
            served: &self.served,
            key: self.origin.ticket.key,
            snapshot,
            is_listed: self.flags.noticed_by_listing,
            may_start: self.mode == Mode::Full,
        };
        let (memos, uid) = (&self.shared.runtime.memos, self.object.uid());
        let memo = || Arc::clone(memo.get_or_insert_with(|| memos.of(uid)));
        Box::pin(background.revise(&situation, memo)).await
    }

    /// The children that the object should have; `None` if it must wait until others are deleted.
    async fn desired_children(
        &mut self,
        snapshot: &Snapshot,
        reason: Reason,
    ) -> Result<Option<DesiredChildren>, CallbackError> {
        if self.served.handlers.desired.is_empty() {
            return Ok(Some(DesiredChildren::default()));
        }
        if Box::pin(desired::delete_outliving(self, snapshot, reason)).await {
            return Ok(None);
        }
        Box::pin(desired::ask_all(self, snapshot, reason)).await.map(Some)
    }

    /// Applies and deletes children as desired, and calls their observers.
    async fn revise_children(
        &mut self,
        desired: DesiredChildren,
        snapshot: &Snapshot,
        step: Step,
    ) -> Result<ChildrenState, CallbackError> {
        let view = desired.view;
        // Children that only we can delete must not exist before the finalizer. All others wait for
        // it too: their condition is written together with the results of the handlers.
        let has_children = desired.is_needed || view.is_some() || !desired.is_empty();
        if step == Step::Add && has_children {
            return Ok(ChildrenState { must_wait: true, wake_at: None });
        }
        let mut wake_at = match desired.is_empty() {
            true => None,
            false => Box::pin(desired::reconcile_all(self, desired)).await,
        };
        if let Some(view) = view {
            let observed = Box::pin(desired::observe(self, snapshot, view)).await?;
            wake_at = wake_at.into_iter().chain(observed).min();
        }
        Ok(ChildrenState { must_wait: false, wake_at })
    }

    async fn snapshot(&mut self, fingerprint: Option<EssenceHash>) -> Result<Snapshot, CycleError> {
        let subject = self.subject();
        let event = self.gone.then_some(EventKind::Deleted);
        let memory = Seen {
            noticed_by_listing: self.flags.noticed_by_listing,
            fully_handled_once: self.flags.handled_once,
        };
        let extra = &self.served.handlers.extra_fields;
        // The response to our finalizer has the same essence as the object had before.
        let is_exact = !self.served.storages.diffbase.adds_fields();
        let known = self.essence.take();
        let known = known.filter(|(known, _)| is_exact && Some(*known) == fingerprint);
        let known = known.map(|(_, essence)| essence);
        let storages = &self.served.storages;
        let input = (subject, known);
        let snapshot = callbacks::decide_from(self.may_ask(), input, |(subject, known)| {
            Snapshot::take(subject, event, memory, storages, extra, known)
        })
        .await?;
        self.essence = fingerprint.map(|it| (it, snapshot.new.clone()));
        if snapshot.new.is_partial() && !std::mem::replace(&mut self.flags.unread, true) {
            let (namespace, name) = (self.object.namespace(), self.object.name());
            tracing::warn!(
                namespace,
                name,
                kind = self.object.kind(),
                "the object is nested too deeply to be read: its changes will not be handled"
            );
        }
        Ok(snapshot)
    }

    fn closing(
        &self,
        background: &BackgroundState,
        children_wake_at: Option<Timestamp>,
    ) -> Closing {
        Closing {
            now: self.shared.runtime.clock.now(),
            background_wake_at: [background.wake_at, children_wake_at].into_iter().flatten().min(),
            persist_after: self.shared.runtime.context.settings.read().persistence.persist_after,
            persist_now: self.mode == Mode::Closing,
        }
    }

    /// Writes the plan and decides how to continue.
    async fn write_plan(
        &mut self,
        plan: Plan,
        step: Step,
        snapshot: &Snapshot,
        fingerprint: Option<EssenceHash>,
    ) -> Result<Next, CycleError> {
        let subject = &snapshot.subject;
        for line in &plan.lines {
            self.shared.log(subject, line);
        }
        if let Some(form) = plan.stored_form.filter(|form| *form != kopf_model::StoredForm::Plain) {
            tracing::info!("the last handled state is stored {form}");
        }
        self.flags.handled_once |= plan.is_handled;
        let is_urgent = step != Step::Keep || self.object.is_deleting();
        let urgency = if is_urgent { Urgency::Urgent } else { Urgency::Normal };
        let mut has_old_progress = false;
        match self.apply(plan.patch, urgency).await? {
            Applied::Unchanged => {}
            Applied::Changed(object) => {
                let before = std::mem::replace(&mut self.object, object.clone());
                has_old_progress = plan.is_handled && self.has_old_progress().await?;
                own_changes::watch_for_loops(self, &before, &object).await;
                if step == Step::Add && !self.is_held(&object) && !object.is_deleting() {
                    // Continuing would request it again, endlessly.
                    return Err(CycleError::Unheld);
                }
            }
            Applied::Outdated(outdated) => {
                self.memory.unsent = outdated.patch;
                self.wait_for_newer();
                return Ok(Next::Finish);
            }
            Applied::NotFound => {
                // Either the deletion of the object is reported soon, or the server was wrong.
                self.wait_for_newer();
                return Ok(Next::Finish);
            }
            Applied::Replaced => {
                self.lose();
                return Ok(Next::Again);
            }
        }
        if (plan.is_continued || has_old_progress) && self.mode != Mode::Closing {
            return Ok(Next::Again);
        }
        self.rest.wake_at = plan.wake_at.map(|at| own_changes::paced(self, at));
        if plan.is_release || self.gone {
            return Ok(Next::Finish);
        }
        if self.has_unhandled_changes(snapshot) && self.mode != Mode::Closing {
            return Ok(Next::Again);
        }
        self.rest.fingerprints = self.scan();
        let is_changed = self.rest.fingerprints.map(|it| it.essence) != fingerprint;
        if !is_changed {
            self.memory.own_changes = 0;
            self.rest.is_settled = plan.wake_at.is_none() && self.memory.progress.is_none();
            self.log_end(plan.is_handled, snapshot);
            return Ok(Next::Finish);
        }
        // Changed by us or by others, even along with a result or a retry: the response covers the
        // events about it, so nothing else handles them.
        if self.mode != Mode::Closing {
            return Ok(own_changes::after_own_change(self, snapshot));
        }
        Ok(Next::Finish)
    }

    /// Whether the response to our write has changes that were not handled yet.
    ///
    /// Others write too. Their events may have arrived before our response, which covers them.
    fn has_unhandled_changes(&self, snapshot: &Snapshot) -> bool {
        let seen = snapshot.object();
        let is_deletion = self.object.is_deleting() && !seen.is_deleting();
        let is_newer = self.object.resource_version() != seen.resource_version();
        is_deletion || (self.served.looks_beyond_essence && is_newer)
    }

    /// Whether the response to our write has progress from before a restart that we had not seen.
    ///
    /// A list may be older than the last write before a crash, and its events may be late. If the
    /// progress stayed there, it would make handlers skip a later change.
    async fn has_old_progress(&self) -> Result<bool, CallbackError> {
        let (progress, handlers) =
            (&*self.served.storages.progress, &self.served.handlers.changing);
        let now = self.shared.runtime.clock.now();
        let load = || State::load(progress, &self.object, handlers, now);
        match callbacks::decide(load).await {
            Ok(state) => Ok(state.iter().next().is_some()),
            Err(StorageError::Callback(error)) => Err(error),
            Err(_) => Ok(false),
        }
    }

    fn finish(mut self, result: Result<(), CycleError>) -> Done {
        let (error, details) = match result {
            Ok(()) => (None, None),
            Err(error) => (Some(chain(&error)), error.into_details()),
        };
        if error.is_some() {
            (self.rest.is_settled, self.flags.indexed) = (false, false);
            self.memory.errors = self.memory.errors.saturating_add(1);
            // Events are sent once, so nothing would request these changes again.
            self.memory.unsent.absorb(std::mem::take(&mut *self.patch.lock()));
            limit(&mut self.memory.unsent);
        } else if self.memory.errors > 0 && self.mode != Mode::EventsOnly {
            self.memory.errors = 0;
            let line = Line::info(logtext::THROTTLING_OVER);
            self.shared.runtime.log_about(Some(&self.subject()), &line);
        }
        history::note_end(&self, error.as_deref());
        // An object that will be handled again needs its body then.
        let keeps_body = self.served.keeps_bodies()
            || self.rest.wake_at.is_some()
            || error.is_some()
            || (self.served.is_saved && !self.rest.is_settled);
        let body = (keeps_body && !self.gone).then(|| self.object.at_rest());
        let (version, settled);
        if self.mode == Mode::EventsOnly {
            (version, settled) = (self.origin.version, self.origin.settled);
        } else {
            version = Version::of(&self.object);
            self.flags.held = self.is_held(&self.object);
            self.flags.deleting = self.object.is_deleting();
            settled = self.rest.fingerprints.filter(|_| self.rest.is_settled).map(|it| it.noted);
        }
        Done {
            subject: self.subject(),
            ticket: self.origin.ticket,
            version,
            memory: self.memory,
            body,
            flags: self.flags,
            settled,
            wake_at: self.rest.wake_at,
            error,
            details,
            gone: self.gone,
            mode: self.mode,
        }
    }

    /// The context for callbacks, if there are any: most operators do not need it.
    fn callback_context(&mut self) -> Option<Arc<CallbackContext>> {
        self.served.has_callbacks.then(|| {
            let memo = self.memory.memo(&self.shared.runtime.memos, self.object.uid());
            Arc::new(CallbackContext { memo, patch: Arc::clone(&self.patch) })
        })
    }

    /// Whether filters or storages of users take part in the decisions.
    fn may_ask(&self) -> bool {
        self.served.has_callbacks || self.shared.marks.are_storages_custom
    }

    fn scan(&self) -> Option<Fingerprints> {
        self.served.scanner.scan(&self.object).ok()
    }

    fn subject(&self) -> Subject {
        Subject { resource: Arc::clone(&self.served.resource), object: self.object.clone() }
    }

    fn after(&self, delay: Duration) -> Timestamp {
        kopf_core::progress::later(self.shared.runtime.clock.now(), delay)
    }
}

/// Catches panics of a part of a cycle, which must not prevent the other parts.
async fn caught(part: impl Future<Output = Result<(), CallbackError>>) -> Result<(), CycleError> {
    let caught = futures::FutureExt::catch_unwind(std::panic::AssertUnwindSafe(part)).await;
    caught.map_err(|panic| CycleError::Panic(panic_text(panic.as_ref())))?.map_err(CycleError::from)
}
