//! The one task that owns all records: takes in observations, hands out work, takes it back.
//!
//! No lock, task or channel per object. Watches feed it through one bounded channel, workers and
//! daemons report through another. It never waits for handlers or for the cluster.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use kopf_client::{Observation, Watcher};
use kopf_core::finalizer::is_held;
use kopf_core::handler::Handler;
use kopf_core::invoke::StopReason;
use kopf_core::logtext;
use kopf_core::occasion::EventKind;
use kopf_core::queue::{Moment, Next, Queue, Ticket, Urgency};
use kopf_core::write::Version;
use kopf_model::{Object, Timestamp};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use crate::cycle::{self, Done, Job, Mode};
use crate::insights::{Desired, Insights, Scope};
use crate::leadership::Share;
use crate::lost::LostEvents;
use crate::memory::Memory;
use crate::message::{Key, Message};
use crate::shared::{Served, Shared, object_span};
use crate::store::Store;
use crate::tuning::Tuning;

mod children;
mod closing;
mod orchestration;
mod patchability;
mod readiness;
mod restoring;
mod scouting;
mod standby;

use children::ChildWatch;
use orchestration::{Rediscovery, stop_daemons};
use readiness::{FirstList, Trouble};
use scouting::Scout;
use standby::HandOver;

/// How many batches of observations may wait; watches stop reading beyond that.
const BATCHES_MAX: usize = 8;

/// No further object is begun while this many writes wait for the cluster.
const WAITING_WRITES_MAX: usize = 16;
/// How many objects are begun before their cycles get a turn.
const BEGUN_AT_ONCE_MAX: usize = 16;
/// How soon is looked again whether the writes have gone.
const CONGESTED_TURN: Duration = Duration::from_millis(10);

/// How often the size of the stores is measured.
const MEASURING: Duration = Duration::from_secs(30);

/// How often the age of the queue is looked up.
const QUEUE_AGING: Duration = Duration::from_secs(1);

/// Where an observation comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tag {
    Served(u32),
    Children(u32),
    Definitions,
    Namespaces,
}

pub(crate) struct Reactor {
    shared: Arc<Shared>,
    scope: Scope,
    handlers: Vec<Arc<Handler>>,
    /// The same and those of reviews: whose resources are to be discovered.
    interests: Vec<Arc<Handler>>,
    insights: Insights,
    watches: BTreeMap<u32, Watch>,
    /// The watches of children, and the keys of objects that may have some, by uid.
    child_watches: BTreeMap<u32, ChildWatch>,
    owners: HashMap<String, Key>,
    /// What was due while the children that its handlers look at were not listed.
    held: HashSet<Key>,
    queue: Queue<Key>,
    /// How many objects wait, for lists to slow down.
    backlog: watch::Sender<usize>,
    cycles: JoinSet<()>,
    sink: mpsc::Sender<(Tag, Vec<Observation>)>,
    observations: mpsc::Receiver<(Tag, Vec<Observation>)>,
    messages: mpsc::UnboundedReceiver<Message>,
    origin: Instant,
    /// Up until all indexes are filled; only indexing is done before.
    barrier: bool,
    unindexed: HashSet<Key>,
    rediscovery: Rediscovery,
    /// The watches of namespaces and of CRDs, if they are followed.
    namespaces: Option<Scout>,
    definitions: Option<Scout>,
    listed_namespaces: Option<BTreeSet<Arc<str>>>,
    is_paused: bool,
    /// Which objects are ours; the others are only watched and indexed.
    share: Share,
    handing_over: HandOver,
    is_discovered: bool,
    /// Resources that are looked for may be among what discovery could not tell.
    gap: Option<Trouble>,
    /// Whether it was decided whether CRDs are followed.
    are_definitions_considered: bool,
    /// Whether every watch has listed, or has failed for longer than handlers wait for it.
    is_settled: bool,
    /// Whether every watch has listed.
    is_ready: bool,
    measured_at: Instant,
    /// When the age of the queue was looked up, and what it was.
    queue_age: (Instant, Duration),
    lost_events: LostEvents,
    tuning: Tuning,
}

struct Watch {
    desired: Desired,
    served: Arc<Served>,
    store: Store,
    task: AbortOnDropHandle<()>,
    first_list: FirstList,
    is_listing: bool,
    is_failing: bool,
    /// The version of the last list, or of an event since.
    newest: Version,
}

impl Reactor {
    pub(crate) fn new(
        shared: Arc<Shared>,
        scope: Scope,
        messages: mpsc::UnboundedReceiver<Message>,
        tuning: Tuning,
    ) -> Self {
        let handlers: Vec<Arc<Handler>> = shared.registry.watched().cloned().collect();
        let interests = shared.registry.about_resources().cloned().collect();
        let (sink, observations) = mpsc::channel(BATCHES_MAX);
        let limits = tuning.limits().clone();
        Self {
            scope,
            handlers,
            interests,
            insights: Insights::default(),
            watches: BTreeMap::new(),
            child_watches: BTreeMap::new(),
            owners: HashMap::new(),
            held: HashSet::new(),
            queue: Queue::new(limits),
            backlog: watch::Sender::new(0),
            cycles: JoinSet::new(),
            sink,
            observations,
            messages,
            origin: Instant::now(),
            barrier: true,
            unindexed: HashSet::new(),
            rediscovery: Rediscovery::default(),
            namespaces: None,
            definitions: None,
            listed_namespaces: None,
            is_paused: false,
            share: shared.tenure.share(),
            handing_over: HandOver::default(),
            is_discovered: false,
            gap: None,
            are_definitions_considered: false,
            is_settled: false,
            is_ready: false,
            measured_at: Instant::now(),
            queue_age: (Instant::now(), Duration::ZERO),
            lost_events: LostEvents::default(),
            tuning,
            shared,
        }
    }

    /// Paused from the beginning, until the peers say otherwise.
    pub(crate) fn starting_paused(mut self, is_paused: bool) -> Self {
        self.is_paused = is_paused;
        self
    }

    /// Runs until the shutdown is asked for; to be closed afterwards.
    pub(crate) async fn run(mut self, shutdown: impl Future<Output = ()>) -> Self {
        tokio::pin!(shutdown);
        self.begin();
        loop {
            let has_more = self.dispatch();
            self.publish();
            if has_more {
                // Those that were begun come to their writes before others are begun.
                tokio::task::yield_now().await;
            }
            let wake = self.next_wake();
            tokio::select! {
                biased;
                () = &mut shutdown => break,
                Some(message) = self.messages.recv() => self.receive(message),
                Some((tag, batch)) = self.observations.recv() => self.observe(tag, batch),
                () = std::future::ready(()), if has_more => {}
                () = self.shared.cluster.writes_widened() => {}
                () = tokio::time::sleep_until(wake) => {
                    self.rediscover_if_due();
                    self.check_readiness();
                    self.release_held();
                    self.finish_hand_over();
                    self.measure();
                }
            }
            // What is there already is taken without going through the scheduler again.
            while let Ok(message) = self.messages.try_recv() {
                self.receive(message);
            }
            while self.cycles.try_join_next().is_some() {}
            self.follow_settings();
        }
        self
    }

    /// Takes up what was changed in the settings.
    fn follow_settings(&mut self) {
        if !self.tuning.is_due() {
            return;
        }
        let changes = self.tuning.follow(&self.shared.runtime.context.settings.read());
        if let Some(limits) = changes.limits {
            self.queue.set_limits(limits);
        }
        if let Some(policy) = changes.policy {
            self.shared.cluster.set_policy(policy);
        }
        if let Some(workers) = changes.workers {
            self.shared.runtime.pool.resize(workers);
        }
        for warning in changes.warnings {
            tracing::warn!("{warning}");
        }
    }

    fn next_wake(&mut self) -> Instant {
        const TURN_MAX: Duration = Duration::from_secs(5);
        let is_congested = self.is_congested();
        // Daemons write, too, and tell nobody when they are done.
        let turn_max = if is_congested { CONGESTED_TURN } else { TURN_MAX };
        let turn = Instant::now() + turn_max;
        // Nothing is handed out in a pause or a jam: what is due would leave us no rest.
        let is_stopped = self.is_paused || is_congested;
        let queue = self.queue.next_wake().filter(|_| !is_stopped);
        let queue = queue.and_then(|moment| self.origin.checked_add(moment));
        [queue, self.rediscovery.wake_at()].into_iter().flatten().fold(turn, Instant::min)
    }

    fn moment(&self) -> Moment {
        self.origin.elapsed()
    }

    /// The moment of a wall-clock time; what is over is now.
    fn moment_at(&self, at: Timestamp) -> Moment {
        let wait = at.duration_since(self.shared.runtime.clock.now());
        self.moment() + Duration::try_from(wait).unwrap_or_default()
    }

    fn observe(&mut self, tag: Tag, batch: Vec<Observation>) {
        match tag {
            Tag::Served(id) => self.observe_served(id, batch),
            Tag::Children(id) => self.observe_children(id, batch),
            Tag::Definitions => self.observe_definitions(batch),
            Tag::Namespaces => self.observe_namespaces(batch),
        }
    }

    fn observe_served(&mut self, id: u32, batch: Vec<Observation>) {
        let mut is_heard = false;
        for observation in batch {
            // A list that only begins says nothing about the server.
            is_heard |= !matches!(
                observation,
                Observation::ListBegun { .. } | Observation::Disturbed { .. }
            );
            // The watch may be stopped while its last observations are still on the way.
            let Some(watch) = self.watches.get_mut(&id) else { return };
            match observation {
                Observation::ListBegun { version } => {
                    watch.store.begin_list();
                    watch.is_listing = true;
                    if watch.is_back(&version) {
                        self.doubt(id);
                    }
                }
                Observation::Listed(object) => self.see(id, None, object),
                Observation::ListEnded { version } => {
                    watch.is_listing = false;
                    if watch.is_back(&version) {
                        self.begin_anew(id);
                        continue;
                    }
                    watch.first_list.complete();
                    for uid in watch.store.missing() {
                        self.vanish(id, uid);
                    }
                    self.shared.runtime.board.update_watch(id, |status| status.listed = true);
                }
                Observation::Changed(kind, object) => {
                    let kind = match kind {
                        kopf_client::ChangeKind::Added => EventKind::Added,
                        kopf_client::ChangeKind::Modified => EventKind::Modified,
                        kopf_client::ChangeKind::Deleted => EventKind::Deleted,
                    };
                    self.see(id, Some(kind), object);
                }
                Observation::Disturbed { error, retry_in } => {
                    self.disturbed(id, &error, retry_in);
                }
                _ => {}
            }
        }
        if let (true, Some(watch)) = (is_heard, self.watches.get_mut(&id)) {
            watch.is_failing = false;
            self.shared.runtime.board.heard(id, watch.store.len());
        }
        self.check_readiness();
    }

    /// Takes in one state of one object.
    fn see(&mut self, id: u32, kind: Option<EventKind>, object: Object) {
        let now = self.moment();
        let Some(watch) = self.watches.get_mut(&id) else { return };
        let served = Arc::clone(&watch.served);
        let key = Key { watch: id, group: group_of(&object), uid: watch.store.uid(&object) };
        if !served.handlers.desiring.is_empty() {
            self.owners.insert(object.uid().to_owned(), key);
        }
        let gone = kind == Some(EventKind::Deleted);
        let version = Version::of(&object);
        if kind.is_some() {
            watch.newest = watch.newest.max(version);
        }
        let urgency = if watch.is_listing { Urgency::Backlog } else { Urgency::Fresh };
        let (record, is_new) = watch.store.enter(key.uid);
        let is_ours = self.share.has(&object);
        if is_new {
            // Whoever takes over finds all objects at once, as after a start.
            record.flags.noticed_by_listing = kind.is_none() || !is_ours;
        }
        if !gone {
            record.doubt_list();
        }
        let waiting = record.inbox.as_ref().and_then(|inbox| inbox.object.as_ref());
        let newest = waiting.map_or(record.version, Version::of).max(record.version);
        // Whatever is heard of an object that was taken for gone has to be looked at afterwards.
        let is_new = is_new || record.flags.leaving;
        let is_known = !is_new && !gone && version.is_covered_by(newest);
        // Event handlers hear everything, also what a further list repeats, as they do in Kopf.
        if !served.handlers.watching.is_empty() {
            if !is_ours {
                record.put_newest(object.clone());
            } else if record.put_event(kind, object.clone()) {
                self.lost_events.note(&self.shared.runtime.board, &object);
            }
        } else if is_known {
            return;
        }
        if !is_known {
            let is_idle = record.inbox.is_none() && !record.flags.busy && !gone && !is_new;
            if is_idle && served.essence_decides && is_unchanged(record, &served, &object) {
                record.refresh(&object);
                return;
            }
            record.put(object, gone);
        }
        let is_indexed = !served.handlers.indexing.is_empty();
        if self.barrier && is_indexed {
            self.unindexed.insert(key);
        }
        let is_begun = !self.barrier && is_ours;
        if is_begun || is_indexed || (gone && !is_ours) {
            self.queue.offer(key, urgency, now);
        }
    }

    /// An object that was not in the last list does not exist any more.
    fn vanish(&mut self, id: u32, uid: crate::store::Uid) {
        let Some(watch) = self.watches.get_mut(&id) else { return };
        let Some(record) = watch.store.get(uid) else { return };
        let body = record.body.clone();
        let waiting = record.inbox.as_ref().and_then(|inbox| inbox.object.clone());
        let Some(object) = waiting.or(body) else {
            if !record.flags.busy {
                watch.store.remove(uid);
            }
            return;
        };
        let key = Key { watch: id, group: group_of(&object), uid };
        self.vanish_as(key, object);
    }

    fn vanish_as(&mut self, key: Key, object: Object) {
        let now = self.moment();
        let Some(watch) = self.watches.get_mut(&key.watch) else { return };
        if let Some(record) = watch.store.get(key.uid) {
            record.put_missing(object);
            if self.barrier && !watch.served.handlers.indexing.is_empty() {
                self.unindexed.insert(key);
            }
            self.queue.offer(key, Urgency::Fresh, now);
        }
    }

    fn receive(&mut self, message: Message) {
        match message {
            Message::Done(done) => {
                self.take_back(*done);
                self.finish_hand_over();
            }
            Message::BackgroundEnded { key, handler } => {
                tracing::trace!(%handler, "looking again at an object whose daemon has ended");
                let now = self.moment();
                let is_known = self
                    .watches
                    .get_mut(&key.watch)
                    .is_some_and(|watch| watch.store.get(key.uid).is_some());
                if is_known {
                    self.queue.offer(key, Urgency::Fresh, now);
                }
                self.finish_hand_over();
            }
            Message::Discovered { groups, result } => self.discovered(groups, result),
            Message::Paused(is_paused) => self.pause(is_paused),
            Message::Share(share) => self.take_share(share),
        }
    }

    /// Hands out as much work as the limits allow; tells whether there may be more right now.
    ///
    /// Only a little at once: what is begun takes memory, and its writes are to be counted first.
    fn dispatch(&mut self) -> bool {
        for _ in 0..BEGUN_AT_ONCE_MAX {
            if self.is_paused || self.is_congested() {
                return false;
            }
            let now = self.moment();
            let Some(ticket) = self.queue.take(now) else { return false };
            match self.prepare(ticket) {
                Ok(job) => {
                    let shared = Arc::clone(&self.shared);
                    self.cycles.spawn(async move {
                        let messages = shared.messages.clone();
                        // On the heap at once: it is large, and spawning moves a task several times.
                        let done = Box::pin(cycle::run(shared, job)).await;
                        // The reactor is gone only when nobody cares any more.
                        let _ = messages.send(Message::Done(Box::new(done)));
                    });
                }
                Err(ticket) => {
                    self.queue.done(ticket, Next::Rest, now);
                }
            }
        }
        true
    }

    /// Whether enough writes wait for the cluster: more objects would only wait in memory.
    fn is_congested(&self) -> bool {
        self.shared.cluster.writes_waiting() >= WAITING_WRITES_MAX
    }

    fn prepare(&mut self, ticket: Ticket<Key>) -> Result<Job, Ticket<Key>> {
        let key = ticket.key;
        let Some(watch) = self.watches.get_mut(&key.watch) else { return Err(ticket) };
        let served = Arc::clone(&watch.served);
        let Some(record) = watch.store.get(key.uid) else { return Err(ticket) };
        let waiting = record.inbox.as_ref().and_then(|inbox| inbox.newest());
        let is_ours = waiting.or(record.body.as_ref()).is_none_or(|it| self.share.has(it));
        if !is_ours && served.handlers.indexing.is_empty() {
            // It stays where it is, for the one who takes over; unless it is gone.
            if record.inbox.as_ref().is_some_and(|inbox| inbox.gone) {
                watch.store.remove(key.uid);
            }
            return Err(ticket);
        }
        let mut mode = if self.barrier || !is_ours { Mode::IndexOnly } else { Mode::Full };
        if mode == Mode::Full && children::are_awaited(&self.child_watches, &served) {
            self.held.insert(key);
            if served.handlers.indexing.is_empty() {
                return Err(ticket);
            }
            mode = Mode::IndexOnly;
        }
        let kept = record.body.clone();
        if mode == Mode::IndexOnly {
            let waiting = record.inbox.as_ref().and_then(|inbox| inbox.object.clone());
            let Some(object) = waiting.or(kept) else { return Err(ticket) };
            let gone = record.inbox.as_ref().is_some_and(|inbox| inbox.gone);
            record.flags.busy = true;
            return Ok(job(ticket, served, object, gone, Vec::new(), record, mode));
        }
        let inbox = record.inbox.take().unwrap_or_default();
        let (object, mode) = match (inbox.object, inbox.events.last()) {
            (Some(object), _) => (object, mode),
            (None, Some((_, object))) => {
                let known = kept.unwrap_or_else(|| object.clone());
                (Version::newest(object.clone(), known), Mode::EventsOnly)
            }
            (None, None) => match kept {
                // Kept for what event handlers want, which could not be written yet.
                Some(object) if Version::of(&object) < record.version => (object, Mode::EventsOnly),
                Some(object) => (object, mode),
                None => return Err(ticket),
            },
        };
        if record.body.is_none() && served.is_shared {
            // Whoever hands objects over has to know which ones are busy.
            record.body = Some(object.at_rest());
        }
        record.flags.busy = true;
        record.flags.leaving = inbox.is_guess;
        Ok(job(ticket, served, object, inbox.gone, inbox.events, record, mode))
    }

    /// Takes an object back from its worker.
    fn take_back(&mut self, mut done: Done) {
        let now = self.moment();
        let key = done.ticket.key;
        if self.is_paused || !self.share.has(&done.subject.object) {
            // Started by a cycle that was under way when the pause began.
            stop_daemons(&self.shared, &mut done.memory, StopReason::OPERATOR_PAUSING);
        }
        self.unindexed.remove(&key);
        let next = match (&done.error, done.wake_at) {
            (Some(_), _) if !done.gone => Next::Failed,
            (_, Some(at)) => Next::WakeAt(self.moment_at(at)),
            // Only event handlers were called; retries and wakes of the others are still to come.
            _ if done.mode == Mode::EventsOnly => Next::AsBefore,
            _ => Next::Rest,
        };
        let pause = self.queue.done(done.ticket, next, now);
        if let (Some(error), Some(pause)) = (&done.error, pause) {
            let _entered = object_span(&done.subject).entered();
            self.shared.log(&done.subject, &logtext::throttling(pause, error));
        }
        let known = self.watches.get_mut(&key.watch);
        if known.is_none_or(|watch| watch.store.get(key.uid).is_none()) {
            stop_daemons(&self.shared, &mut done.memory, StopReason::RESOURCE_DELETED);
            self.queue.forget(&key);
            self.forget_indexed(key, &done.subject.object);
        }
        let Some(watch) = self.watches.get_mut(&key.watch) else { return };
        let Some(record) = watch.store.get(key.uid) else { return };
        record.flags = done.flags;
        record.flags.busy = false;
        record.memory =
            Some(done.memory).filter(|it| !it.is_trivial(self.shared.runtime.memos.operator()));
        let is_newest = |body: &Object| Version::of(body) >= record.version;
        if done.mode != Mode::EventsOnly || !record.body.as_ref().is_some_and(is_newest) {
            record.body = done.body;
        }
        if done.mode == Mode::IndexOnly {
            let is_gone = record.inbox.as_ref().is_some_and(|inbox| inbox.gone);
            if done.gone && is_gone && !self.share.has(&done.subject.object) {
                watch.store.remove(key.uid);
                self.owners.remove(done.subject.object.uid());
            }
            self.take_indexed(key, done.subject.object);
            return;
        }
        record.come_to(done.version, done.settled);
        if record.inbox.is_some() {
            self.queue.offer(key, Urgency::Fresh, now);
            return;
        }
        if done.gone {
            watch.store.remove(key.uid);
            self.queue.forget(&key);
            self.owners.remove(done.subject.object.uid());
            self.shared.runtime.memos.forget(done.subject.object.uid());
        } else if !watch.is_listing && watch.store.is_missing(key.uid) {
            // A list without it has ended while a worker was at it.
            self.vanish_as(key, done.subject.object);
        }
    }

    /// The watch of an object has ended while a worker was at it, which may have indexed it since.
    fn forget_indexed(&mut self, key: Key, object: &Object) {
        // Another version of its resource may be served instead.
        if self.watches.values_mut().any(|watch| watch.store.get(key.uid).is_some()) {
            return;
        }
        for index in self.shared.stores.values() {
            index.discard(&object.key());
        }
    }

    /// Counts what is too expensive to be counted at every turn.
    fn measure(&mut self) {
        if self.measured_at.elapsed() >= MEASURING {
            self.measured_at = Instant::now();
            let mut all = 0;
            for (id, watch) in &self.watches {
                let bytes = watch.store.bytes();
                all += bytes;
                self.shared.runtime.board.update_watch(*id, |status| status.store_bytes = bytes);
            }
            self.shared.runtime.board.update(|status| status.store_bytes = all);
        }
    }

    /// How long the first of the queue has been waiting; looked up now and then, since it costs.
    fn queue_age(&mut self, ready: usize) -> Duration {
        if ready == 0 {
            self.queue_age = (Instant::now(), Duration::ZERO);
        } else if self.queue_age.0.elapsed() >= QUEUE_AGING {
            let now = self.moment();
            let oldest = self.queue.oldest_ready().unwrap_or(now);
            self.queue_age = (Instant::now(), now.saturating_sub(oldest));
        }
        self.queue_age.1
    }

    fn publish(&mut self) {
        let (objects, running) =
            (self.watches.values().map(|watch| watch.store.len()).sum(), self.queue.running());
        let ready = self.queue.ready();
        let delayed = self.queue.len().saturating_sub(running + ready);
        let age = self.queue_age(ready);
        self.backlog.send_if_modified(|known| std::mem::replace(known, ready) != ready);
        let background = self.shared.background.load(Ordering::Relaxed);
        let (pool, is_paused) = (&self.shared.runtime.pool, self.is_paused);
        let (blocking, blocking_waiting) = (pool.busy(), pool.waiting());
        self.shared.runtime.board.update(|status| {
            status.objects = objects;
            status.running = running;
            status.queued = ready;
            status.queue_age = age;
            status.delayed = delayed;
            status.background = background;
            status.blocking = blocking;
            status.blocking_waiting = blocking_waiting;
            status.paused = is_paused;
        });
    }
}

fn job(
    ticket: Ticket<Key>,
    served: Arc<Served>,
    object: Object,
    gone: bool,
    events: Vec<(Option<EventKind>, Object)>,
    record: &mut crate::store::Record,
    mode: Mode,
) -> Job {
    Job {
        ticket,
        served,
        object,
        gone,
        events,
        memory: record.memory.take().unwrap_or_else(|| Box::new(Memory::default())),
        flags: record.flags,
        mode,
        version: record.version,
        settled: record.settled,
    }
}

/// Whether nothing has changed that could concern any handler.
fn is_unchanged(record: &crate::store::Record, served: &Served, object: &Object) -> bool {
    let Some(settled) = record.settled else { return false };
    record.flags.deleting == object.is_deleting()
        && record.flags.held == is_held(object, &served.finalizer)
        && served.scanner.scan(object).is_ok_and(|hashes| hashes.noted == settled)
}

/// The namespace of an object as a number.
fn group_of(object: &Object) -> u32 {
    let mut hasher = DefaultHasher::new();
    object.namespace().hash(&mut hasher);
    (hasher.finish() & u64::from(u32::MAX)) as u32
}

/// Starts a task that follows a collection until the reactor or the handle is gone.
fn follow(
    shared: &Shared,
    collection: kopf_client::Collection,
    tag: Tag,
    sink: &mpsc::Sender<(Tag, Vec<Observation>)>,
) -> AbortOnDropHandle<()> {
    let watcher = Watcher::new(shared.cluster.clone(), collection, tag, sink.clone());
    AbortOnDropHandle::new(tokio::spawn(watcher.run()))
}
