//! The gate in front of all work: open while this replica has the right to act.
//!
//! Written by the task that keeps the Lease, asked before every attempt of a handler and before
//! every write. It closes by the clock, no matter what that task does.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use kopf_core::shards::Ranges;
use kopf_model::Object;
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

/// The gate.
pub(crate) struct Tenure {
    /// Written by the keeper of the Lease and by [`Tenure::watch`]; read by everybody. News for the
    /// reactor are sent under the lock, so that they come in the right order.
    grant: Mutex<Grant>,
    /// Which objects are ours, as published last; for tasks that wait for a change.
    share: watch::Sender<Share>,
    /// How often everything was lost; written under the lock of the grant.
    losses: AtomicU64,
    /// When the gate closes by itself.
    deadline: watch::Sender<Option<Instant>>,
    listener: OnceLock<Listener>,
    /// The ranges on which nothing is done any more, with the share by which they were handed over;
    /// written by the reactor, taken by the keeper of the table.
    drained: Mutex<Vec<(u32, u64)>>,
    drained_news: Notify,
    /// Whether there may be other replicas.
    is_shared: AtomicBool,
}

/// Gets every new share.
type Listener = Box<dyn Fn(Share) + Send + Sync>;

/// What we may do.
enum Grant {
    /// Everything, without a limit: there are no other replicas.
    Unlimited,
    Nothing,
    /// Some things, until a moment. By the wall clock as well: the monotonic one may stand still while
    /// the machine is suspended.
    Term {
        number: u64,
        until: Instant,
        wall_until: SystemTime,
        share: Share,
    },
}

/// Which objects are ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Share {
    All,
    Nothing,
    /// Those in some ranges: the ones on which work may begin.
    Ranges {
        ranges: Ranges,
        held: Arc<BTreeSet<u32>>,
        /// Grows with every change.
        revision: u64,
    },
}

/// The right of this replica to act, for handlers that do things outside of the cluster.
#[derive(Clone)]
pub struct Leadership(pub(super) Arc<Tenure>);

impl Leadership {
    pub(crate) fn of(tenure: &Arc<Tenure>) -> Self {
        Self(Arc::clone(tenure))
    }

    /// The number of the term, which grows with every change of the leader; to be sent along with
    /// everything that a former leader must not do. `None` without replicas, and while
    /// another replica leads.
    #[must_use]
    pub fn term(&self) -> Option<u64> {
        match &*self.0.grant.lock() {
            grant @ Grant::Term { number, .. } if grant.is_open() => Some(*number),
            _ => None,
        }
    }

    /// Whether this replica may act at this very moment, by its own clock.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.0.is_open()
    }
}

impl Grant {
    fn is_open(&self) -> bool {
        match self {
            Self::Unlimited => true,
            Self::Nothing => false,
            Self::Term { until, wall_until, .. } => {
                Instant::now() < *until && SystemTime::now() < *wall_until
            }
        }
    }

    fn share(&self) -> Share {
        match self {
            Self::Unlimited => Share::All,
            Self::Term { share, .. } if self.is_open() => share.clone(),
            Self::Nothing | Self::Term { .. } => Share::Nothing,
        }
    }
}

impl Tenure {
    /// A gate that stays open until it is closed.
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            grant: Mutex::new(Grant::Unlimited),
            share: watch::Sender::new(Share::All),
            losses: AtomicU64::new(0),
            drained: Mutex::default(),
            drained_news: Notify::new(),
            deadline: watch::Sender::new(None),
            listener: OnceLock::new(),
            is_shared: AtomicBool::new(false),
        })
    }

    /// Closes the gate until this replica is elected: there may be others.
    pub(crate) fn share_with_others(&self) {
        self.is_shared.store(true, Ordering::Relaxed);
        self.close();
    }

    /// Whether there may be other replicas.
    pub(crate) fn is_shared(&self) -> bool {
        self.is_shared.load(Ordering::Relaxed)
    }

    /// Reports every new share from now on.
    pub(crate) fn report_to(&self, listener: impl Fn(Share) + Send + Sync + 'static) {
        // Engines are started once.
        let _ = self.listener.set(Box::new(listener));
    }

    /// Whether anything may be done at this moment.
    pub(crate) fn is_open(&self) -> bool {
        self.grant.lock().is_open()
    }

    /// The number of our right to act, if we have one at this moment. What was begun by one right
    /// must not be written by another one: others may have acted in between.
    pub(crate) fn right(&self) -> Option<u64> {
        let grant = self.grant.lock();
        grant.is_open().then(|| self.losses.load(Ordering::Relaxed))
    }

    /// Which objects are ours at this moment.
    pub(crate) fn share(&self) -> Share {
        self.grant.lock().share()
    }

    /// Waits until nothing may be done.
    pub(crate) async fn closed(&self) {
        // The sender is ours, and lives as long as we do.
        let _ = self.share.subscribe().wait_for(|share| *share == Share::Nothing).await;
    }

    /// Whether what concerns the whole cluster is ours.
    pub(crate) fn is_chief(&self) -> bool {
        self.share().is_chief()
    }

    /// Waits until what concerns the whole cluster is ours.
    pub(crate) async fn appointed(&self) {
        let _ = self.share.subscribe().wait_for(Share::is_chief).await;
    }

    /// Nothing is done any more on a range that was handed over with this share.
    pub(crate) fn report_drained(&self, range: u32, revision: u64) {
        self.drained.lock().push((range, revision));
        self.drained_news.notify_one();
    }

    /// Waits for such a report.
    pub(crate) async fn drained(&self) {
        self.drained_news.notified().await;
    }

    /// All such reports.
    pub(crate) fn take_drained(&self) -> Vec<(u32, u64)> {
        std::mem::take(&mut self.drained.lock())
    }

    /// Opens the gate, or keeps it open, until a moment by either clock.
    pub(crate) fn open(&self, number: u64, until: Instant, wall_until: SystemTime, share: Share) {
        self.set(Grant::Term { number, until, wall_until, share });
        self.deadline.send_replace(Some(until));
    }

    /// Closes it.
    pub(crate) fn close(&self) {
        self.set(Grant::Nothing);
    }

    fn set(&self, grant: Grant) {
        let mut current = self.grant.lock();
        // It may have ended by the clock without a notice, because the process was frozen.
        if current.share() == Share::Nothing {
            self.tell(&Share::Nothing);
        }
        *current = grant;
        self.tell(&current.share());
    }

    /// Tells everybody what has changed; under the lock.
    fn tell(&self, share: &Share) {
        let is_news = self.share.send_if_modified(|known| {
            let is_news = *known != *share;
            known.clone_from(share);
            is_news
        });
        if !is_news {
            return;
        }
        if *share == Share::Nothing {
            self.losses.fetch_add(1, Ordering::Relaxed);
        }
        if let Some(report) = self.listener.get() {
            report(share.clone());
        }
    }

    /// Closes the gate in time, until it is dropped.
    pub(crate) async fn watch(self: Arc<Self>) {
        let mut deadline = self.deadline.subscribe();
        loop {
            let until = *deadline.borrow_and_update();
            let expiry = async {
                match until {
                    Some(until) => tokio::time::sleep_until(until).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                changed = deadline.changed() => if changed.is_err() { return },
                () = expiry => {
                    let mut grant = self.grant.lock();
                    let Grant::Term { until: kept, .. } = &*grant else {
                        drop(grant);
                        self.deadline.send_replace(None);
                        continue;
                    };
                    // It may have been prolonged at the last moment.
                    if Instant::now() >= *kept {
                        *grant = Grant::Nothing;
                        tracing::warn!("the Lease was not renewed in time; standing by");
                        self.tell(&Share::Nothing);
                        self.deadline.send_replace(None);
                    }
                }
            }
        }
    }
}

impl Share {
    /// Whether it includes what concerns the whole cluster: that goes with the first range.
    fn is_chief(&self) -> bool {
        match self {
            Self::All => true,
            Self::Nothing => false,
            Self::Ranges { held, .. } => held.contains(&0),
        }
    }

    /// Whether work on an object may begin.
    pub(crate) fn has(&self, object: &Object) -> bool {
        match self {
            Self::All => true,
            Self::Nothing => false,
            Self::Ranges { ranges, held, .. } => {
                held.contains(&ranges.of(object.uid(), object.namespace()))
            }
        }
    }
}

#[cfg(test)]
mod tests;
