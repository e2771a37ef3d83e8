//! The task that owns all records: processes observations, hands out work, and takes it back.
//!
//! No lock, task or channel per object. Watches send to it through one bounded channel, workers and
//! daemons through another. It never waits for handlers or for the cluster. Its parts own their
//! state (`watching`, `dispatch`, `readiness`); here they are connected.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use kopf_client::Batch;
use kopf_core::invoke::StopReason;
use kopf_core::queue::{Next, Urgency};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::cluster_view::{Revision, Scope};
use crate::context::notice::Notice;
use crate::context::shared::Shared;
use crate::context::tuning::Tuning;
use crate::key::Key;
use crate::watching::{ChildWatches, Discovery, Feed, Observations, Tag, Watch, Watches};

mod closing;
mod dispatch;
mod intake;
mod jobs;
mod lost_events;
mod message;
mod readiness;
mod standby;

use dispatch::Dispatch;
use intake::group_of;
use lost_events::LostEvents;
pub(crate) use message::Mailbox;
use message::Message;
use readiness::Readiness;

/// How many objects are started before their cycles get a turn.
const BEGUN_AT_ONCE_MAX: usize = 16;
/// How soon to check again whether writes have completed.
const CONGESTED_TURN: Duration = Duration::from_millis(10);
/// How often to check what sends no messages.
const TURN_MAX: Duration = Duration::from_secs(5);

/// How often the size of the stores is measured.
const MEASURING: Duration = Duration::from_secs(30);

pub(crate) struct Reactor {
    shared: Arc<Shared>,
    feed: Arc<Feed>,
    discovery: Discovery,
    watches: Watches,
    children: ChildWatches,
    dispatch: Dispatch,
    readiness: Readiness,
    observations: Observations,
    messages: mpsc::UnboundedReceiver<Message>,
    measured_at: Instant,
    lost_events: LostEvents,
    tuning: Tuning,
}

impl Reactor {
    pub(crate) fn new(shared: Arc<Shared>, scope: Scope, mailbox: Mailbox, tuning: Tuning) -> Self {
        let Mailbox { sender, messages } = mailbox;
        let (feed, observations) = Feed::new(Arc::clone(&shared));
        Self {
            discovery: Discovery::new(Arc::clone(&shared), Arc::clone(&feed), scope),
            watches: Watches::new(Arc::clone(&shared), Arc::clone(&feed)),
            children: ChildWatches::new(Arc::clone(&shared), Arc::clone(&feed)),
            dispatch: Dispatch::new(Arc::clone(&shared), sender, tuning.limits().clone()),
            readiness: Readiness::new(),
            observations,
            messages,
            measured_at: Instant::now(),
            lost_events: LostEvents::default(),
            tuning,
            feed,
            shared,
        }
    }

    /// Starts paused, until the peers allow it to work.
    pub(crate) fn starting_paused(mut self, is_paused: bool) -> Self {
        self.dispatch.is_paused = is_paused;
        self
    }

    /// Runs until `shutdown` resolves; must be closed afterwards.
    pub(crate) async fn run(mut self, shutdown: impl Future<Output = ()>) -> Self {
        tokio::pin!(shutdown);
        tokio::select! {
            () = &mut shutdown => return self,
            () = self.watches.open_snapshots() => {}
        }
        self.discovery.begin();
        self.check_readiness();
        loop {
            let has_more = self.hand_out();
            self.publish();
            if has_more {
                // Started cycles get to their writes before others are started.
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
                    self.discovery.rediscover_if_due();
                    self.check_readiness();
                    self.release_held();
                    standby::finish_hand_over(&mut self);
                    self.measure();
                }
            }
            // Waiting messages are processed without going through the scheduler again.
            while let Ok(message) = self.messages.try_recv() {
                self.receive(message);
            }
            while self.dispatch.cycles.try_join_next().is_some() {}
            self.follow_settings();
            self.save_if_due();
        }
        self
    }

    /// Writes the snapshot of what is known about the objects, from time to time.
    fn save_if_due(&mut self) {
        if let Some(snapshots) = self.watches.snapshots().filter(|it| it.is_due()) {
            snapshots.save(self.watches.snapshot());
        }
    }

    /// Applies changed settings.
    fn follow_settings(&mut self) {
        if !self.tuning.is_due() {
            return;
        }
        let changes = self.tuning.follow(&self.shared.runtime.context.settings.read());
        if let Some(limits) = changes.limits {
            self.dispatch.set_limits(limits);
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
        // Daemons write too, and send no message when they are done.
        let turn_max = if self.dispatch.is_congested() { CONGESTED_TURN } else { TURN_MAX };
        let turn = Instant::now() + turn_max;
        let wakes = [self.dispatch.next_wake(), self.discovery.wake_at()];
        wakes.into_iter().flatten().fold(turn, Instant::min)
    }

    fn observe(&mut self, tag: Tag, batch: Batch) {
        match tag {
            Tag::Served(id) => self.observe_served(id, batch),
            Tag::Children(id) => self.observe_children(id, batch),
            Tag::Definitions | Tag::Namespaces => {
                if self.discovery.observe(tag, batch) && self.discovery.is_discovered() {
                    let revision = self.discovery.revise();
                    self.follow_revision(revision);
                }
                self.check_readiness();
            }
        }
    }

    fn observe_children(&mut self, id: u32, batch: Batch) {
        let concerned = self.children.observe(id, batch);
        if !self.readiness.is_barred() {
            for key in concerned.owners {
                self.dispatch.offer(key, Urgency::Fresh);
            }
            for key in self.children.owners().filter(|_| concerned.is_everybody) {
                self.dispatch.offer(key, Urgency::Backlog);
            }
        }
        self.check_readiness();
        self.release_held();
    }

    fn receive(&mut self, message: Message) {
        match message {
            Message::Done(done) => {
                self.take_back(done);
                standby::finish_hand_over(self);
            }
            Message::Notice(notice) => self.take_notice(notice),
        }
    }

    fn take_notice(&mut self, notice: Notice) {
        match notice {
            Notice::BackgroundEnded { key, handler } => {
                tracing::trace!(%handler, "looking again at an object whose daemon has ended");
                if self.watches.record(key).is_some() {
                    self.dispatch.offer(key, Urgency::Fresh);
                }
                standby::finish_hand_over(self);
            }
            Notice::Discovered { groups, result } => {
                if let Some(revision) = self.discovery.take_in(groups, result) {
                    self.follow_revision(revision);
                    self.check_readiness();
                }
            }
            Notice::Paused(is_paused) => self.pause(is_paused),
            Notice::Share(share) => standby::take_share(self, share),
        }
    }

    /// Starts missing watches and stops those that are no longer wanted, with all daemons and
    /// timers of their objects.
    fn follow_revision(&mut self, revision: Revision) {
        let stopped = self.watches.revise(revision.watches, self.dispatch.is_paused);
        self.forget_watches(stopped, StopReason::RESOURCE_DELETED);
        self.children.revise(self.discovery.wanted_children());
        self.release_held();
    }

    /// Stops all daemons and timers of the objects of stopped watches.
    fn forget_watches(&mut self, stopped: Vec<(u32, Watch)>, reason: StopReason) {
        for (id, watch) in stopped {
            self.readiness.forget_watch(id, |_| false);
            self.children.forget_watch(id);
            self.dispatch.forget_watch(id);
            forget_objects(&self.shared, watch, reason);
        }
    }

    /// Continues with what was due while children were not listed, unless it still must wait.
    fn release_held(&mut self) {
        for key in self.children.release(&self.watches) {
            self.dispatch.offer(key, Urgency::Backlog);
        }
    }

    /// Lets handlers start when all indexes are filled, and reports when everything is ready.
    fn check_readiness(&mut self) {
        // Nothing is watched before the discovery and during a pause, so nothing is known to be
        // filled.
        if self.dispatch.is_paused || !self.discovery.is_discovered() {
            return;
        }
        let (shared, discovery) = (&self.shared, &self.discovery);
        if self.readiness.check(shared, discovery, &self.watches, &self.children) {
            self.offer_waiting();
        }
    }

    /// Offers all objects with waiting work.
    fn offer_waiting(&mut self) {
        for (id, watch) in self.watches.iter_mut() {
            for (uid, record) in watch.store.iter_mut() {
                let Some(inbox) = &record.inbox else { continue };
                let Some(object) = inbox.newest() else { continue };
                let key = Key { watch: id, group: group_of(object), uid };
                self.dispatch.offer(key, Urgency::Backlog);
            }
        }
    }

    /// Stops or resumes the work on all objects in favour of another operator.
    ///
    /// The knowledge about the objects is kept, so that they are not resumed as if they were new.
    fn pause(&mut self, is_paused: bool) {
        if self.dispatch.is_paused == is_paused {
            return;
        }
        self.dispatch.is_paused = is_paused;
        if !is_paused {
            self.resume();
            return;
        }
        self.watches.pause();
        for (_, watch) in self.watches.iter_mut() {
            for (_, record) in watch.store.iter_mut() {
                let Some(memory) = &mut record.memory else { continue };
                memory.background.stop_detached(&self.shared, StopReason::OPERATOR_PAUSING);
            }
        }
    }

    fn resume(&mut self) {
        self.watches.resume();
        for (id, watch) in self.watches.iter_mut() {
            for (uid, record) in watch.store.iter_mut() {
                // The next cycle of their objects starts daemons and timers again.
                let Some(body) = &record.body else { continue };
                let key = Key { watch: id, group: group_of(body), uid };
                self.dispatch.offer(key, Urgency::Backlog);
            }
        }
        if self.discovery.is_discovered() {
            let revision = self.discovery.revise();
            self.follow_revision(revision);
        }
        self.check_readiness();
    }

    /// Hands out as much work as the limits allow; returns whether there may be more right now.
    ///
    /// Only a little at once: started work takes memory, and its writes must be counted first.
    fn hand_out(&mut self) -> bool {
        for _ in 0..BEGUN_AT_ONCE_MAX {
            if self.dispatch.is_stopped() {
                return false;
            }
            let Some(ticket) = self.dispatch.take() else { return false };
            let is_barred = self.readiness.is_barred();
            let (sharing, watches) = (&self.dispatch.sharing, &mut self.watches);
            match jobs::prepare(watches, &mut self.children, sharing, is_barred, ticket) {
                Ok(job) => self.dispatch.spawn(job),
                Err(ticket) => {
                    self.dispatch.done(ticket, Next::Rest);
                }
            }
        }
        true
    }

    /// Measures what is too expensive to be measured at every turn.
    fn measure(&mut self) {
        if self.measured_at.elapsed() >= MEASURING {
            self.measured_at = Instant::now();
            let board = &self.shared.runtime.board;
            let mut all = 0;
            for (id, watch) in self.watches.iter() {
                let bytes = watch.store.bytes();
                all += bytes;
                board.update_watch(id, |status| status.store_bytes = bytes);
            }
            board.update(|status| status.store_bytes = all);
        }
    }

    fn publish(&mut self) {
        let (objects, load) = (self.watches.objects(), self.dispatch.load());
        self.feed.set_backlog(load.ready);
        let background = self.shared.background.count.load(Ordering::Relaxed);
        let (pool, is_paused) = (&self.shared.runtime.pool, self.dispatch.is_paused);
        let (blocking, blocking_waiting) = (pool.busy(), pool.waiting());
        self.shared.runtime.board.update(|status| {
            let work = &mut status.work;
            work.running = load.running;
            work.queued = load.ready;
            work.queue_age = load.age;
            work.queue_waits = load.waits;
            work.delayed = load.delayed;
            work.background = background;
            work.blocking = blocking;
            work.blocking_waiting = blocking_waiting;
            (status.objects, status.paused) = (objects, is_paused);
        });
    }
}

/// Stops all daemons and timers of the objects of a stopped watch.
fn forget_objects(shared: &Shared, mut watch: Watch, reason: StopReason) {
    for (_, record) in watch.store.iter_mut() {
        if let Some(body) = &record.body {
            for handler in &watch.served.handlers.indexing {
                if let Some(index) = shared.stores.get(&handler.id) {
                    index.discard(&body.key());
                }
            }
        }
        if let Some(memory) = &mut record.memory {
            memory.background.stop_detached(shared, reason);
        }
    }
}
