//! The gate in front of all work: open while this replica has the right to act.
//!
//! Controlled by the task that maintains the Lease; checked before every attempt of a handler and
//! before every write. It closes by the clock, whatever that task does.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use kopf_client::Fence;
use kopf_core::shards::Ranges;
use kopf_model::Object;
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

/// The gate.
pub(crate) struct Tenure {
    /// Written by the task that maintains the Lease and by [`Tenure::watch`]; read by all. Notices
    /// for the reactor are sent under the lock, so that they arrive in the right order.
    grant: Mutex<Grant>,
    /// The objects that are ours, as last published; for tasks that wait for a change.
    share: watch::Sender<Share>,
    /// How often everything was lost; written under the lock of the grant.
    losses: AtomicU64,
    /// When the gate closes by itself.
    deadline: watch::Sender<Option<Instant>>,
    listener: OnceLock<Listener>,
    /// The ranges without remaining work, with the share by which they were handed over; written by
    /// the reactor, taken by the task that maintains the table.
    drained: Mutex<Vec<(u32, u64)>>,
    drained_news: Notify,
    /// Whether there may be other replicas.
    is_shared: AtomicBool,
}

/// Receives every new share.
type Listener = Box<dyn Fn(Share) + Send + Sync>;

/// What this replica may do.
enum Grant {
    /// Everything, without a limit: there are no other replicas.
    Unlimited,
    Nothing,
    /// Some work, until a time. Also by the wall clock: the monotonic one may stand still while the
    /// machine is suspended.
    Term {
        number: u64,
        until: Instant,
        wall_until: SystemTime,
        share: Share,
    },
}

/// The objects that are ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Share {
    All,
    Nothing,
    /// Those in some ranges, on which work may start.
    Ranges {
        ranges: Ranges,
        held: Arc<BTreeSet<u32>>,
        /// Incremented with every change.
        revision: u64,
    },
}

/// The right of this replica to act, for handlers with effects outside the cluster.
#[derive(Clone)]
pub struct Leadership(pub(super) Arc<Tenure>);

impl Leadership {
    pub(crate) fn of(tenure: &Arc<Tenure>) -> Self {
        Self(Arc::clone(tenure))
    }

    /// The number of the term, which increases with every change of the leader. Send it along with
    /// everything that a previous leader must not do. `None` without replicas, and while another
    /// replica leads.
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
    /// Creates a gate that stays open until it is closed.
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

    /// Whether any work is allowed at this moment.
    pub(crate) fn is_open(&self) -> bool {
        self.grant.lock().is_open()
    }

    /// The number of our right to act, if we have one at this moment. Work started under one right
    /// must not be written under another: other replicas may have acted in between.
    pub(crate) fn right(&self) -> Option<u64> {
        let grant = self.grant.lock();
        grant.is_open().then(|| self.losses.load(Ordering::Relaxed))
    }

    /// A fence that is open while we have a right.
    pub(crate) fn fence(self: &Arc<Self>) -> Fence {
        let tenure = Arc::clone(self);
        Arc::new(move || tenure.right())
    }

    /// The objects that are ours at this moment.
    pub(crate) fn share(&self) -> Share {
        self.grant.lock().share()
    }

    /// Waits until no work is allowed.
    pub(crate) async fn closed(&self) {
        // The sender is ours, and lives as long as we do.
        let _ = self.share.subscribe().wait_for(|share| *share == Share::Nothing).await;
    }

    /// Whether cluster-wide work is ours.
    pub(crate) fn is_chief(&self) -> bool {
        self.share().is_chief()
    }

    /// Waits until cluster-wide work is ours.
    pub(crate) async fn appointed(&self) {
        let _ = self.share.subscribe().wait_for(Share::is_chief).await;
    }

    /// Reports that no work is left on a range that was handed over with this share.
    pub(crate) fn report_drained(&self, range: u32, revision: u64) {
        self.drained.lock().push((range, revision));
        self.drained_news.notify_one();
    }

    /// Waits for such a report.
    pub(crate) async fn drained(&self) {
        self.drained_news.notified().await;
    }

    /// Takes all such reports.
    pub(crate) fn take_drained(&self) -> Vec<(u32, u64)> {
        std::mem::take(&mut self.drained.lock())
    }

    /// Opens the gate, or keeps it open, until a time by either clock.
    pub(crate) fn open(&self, number: u64, until: Instant, wall_until: SystemTime, share: Share) {
        self.set(Grant::Term { number, until, wall_until, share });
        self.deadline.send_replace(Some(until));
    }

    /// Closes the gate.
    pub(crate) fn close(&self) {
        self.set(Grant::Nothing);
    }

    fn set(&self, grant: Grant) {
        let mut current = self.grant.lock();
        // It may have ended by the clock without a notice, because the process was frozen.
        if current.share() == Share::Nothing {
            self.publish(&Share::Nothing);
        }
        *current = grant;
        self.publish(&current.share());
    }

    /// Publishes a change; called under the lock.
    fn publish(&self, share: &Share) {
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
                    // It may have been extended at the last moment.
                    if Instant::now() >= *kept {
                        *grant = Grant::Nothing;
                        tracing::warn!("the Lease was not renewed in time; standing by");
                        self.publish(&Share::Nothing);
                        self.deadline.send_replace(None);
                    }
                }
            }
        }
    }
}

impl Share {
    /// Whether it includes cluster-wide work, which belongs to the owner of the first range.
    fn is_chief(&self) -> bool {
        match self {
            Self::All => true,
            Self::Nothing => false,
            Self::Ranges { held, .. } => held.contains(&0),
        }
    }

    /// Whether work on an object may start.
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
