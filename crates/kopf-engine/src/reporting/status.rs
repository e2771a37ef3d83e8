//! The status of the engine: per watch, per handler, per request; for probes, metrics and users.
//!
//! The engine writes, others take snapshots and render them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kopf_client::{Cluster, Observation, RequestError};
use parking_lot::Mutex;
use tokio::time::Instant;

/// The upper bounds of the latency buckets, in seconds; one more bucket is for the rest.
pub const LATENCY_BOUNDS: [f64; 8] = [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0, 60.0];

/// How many handlers are counted individually: sub-handlers can have any number of names.
const HANDLERS_MAX: usize = 1000;

/// A view of a running engine; cheap to clone.
#[derive(Clone)]
pub struct StatusHandle {
    pub(crate) board: Arc<Board>,
    pub(crate) cluster: Cluster,
}

/// The status at one moment.
#[derive(Clone, Debug, Default)]
pub struct Status {
    /// Whether the startup handlers are done, all watches have listed and all indexes are filled.
    /// Once true, it stays true.
    pub ready: bool,
    /// The same, without the watches that have failed for so long that handlers no longer wait for
    /// them, such as those of forbidden resources.
    pub settled: bool,
    /// Whether another operator has precedence now.
    pub paused: bool,
    /// The leader, or the shares of the objects; `None` without replicas.
    pub leadership: Option<LeadershipStatus>,
    /// Selectors for which the cluster has no resource yet.
    pub waiting_for: Vec<String>,
    /// All watches of objects that have handlers.
    pub watches: Vec<WatchStatus>,
    /// The watches that the engine itself needs.
    pub engine_watches: EngineWatches,
    /// The current and the waiting work.
    pub work: WorkStatus,
    /// Objects known to the stores.
    pub objects: usize,
    /// The approximate size of the stores.
    pub store_bytes: usize,
    /// All handlers that were called. If there are very many, later ones of the same function are
    /// counted together, as `function/*`.
    pub handlers: BTreeMap<String, HandlerStatus>,
    /// Responses of the API server, by method and code; code 0 counts requests without a response.
    pub requests: BTreeMap<(String, u16), u64>,
}

/// The watches that the engine itself needs.
#[derive(Clone, Debug, Default)]
pub struct EngineWatches {
    /// Those of namespaces and definitions, which determine the others.
    pub discovery: Vec<WatchStatus>,
    /// Those of the children of objects.
    pub children: Vec<WatchStatus>,
    /// Those of the peering objects.
    pub peering: Vec<WatchStatus>,
}

/// The upper bounds of the buckets of waits in the queue, in seconds.
pub const WAIT_BOUNDS: [f64; 8] = [0.001, 0.01, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0];

/// How long objects have waited in the queue before they were handled.
#[derive(Clone, Copy, Debug, Default)]
pub struct Waits {
    /// How many waits fell into each bucket of [`WAIT_BOUNDS`], and above.
    pub buckets: [u64; WAIT_BOUNDS.len() + 1],
    /// The number of waits.
    pub count: u64,
    /// Their sum.
    pub seconds: f64,
}

impl Waits {
    /// Counts one wait.
    pub(crate) fn note(&mut self, wait: Duration) {
        let seconds = wait.as_secs_f64();
        let bucket = WAIT_BOUNDS.iter().position(|bound| seconds <= *bound);
        self.buckets[bucket.unwrap_or(WAIT_BOUNDS.len())] += 1;
        self.count += 1;
        self.seconds += seconds;
    }
}

/// The current and the waiting work.
#[derive(Clone, Debug, Default)]
pub struct WorkStatus {
    /// Objects that are waiting to be handled now.
    pub queued: usize,
    /// How long the first of them has been waiting, as of a second ago.
    pub queue_age: Duration,
    /// How long objects have waited.
    pub queue_waits: Waits,
    /// Objects that are waiting for a later time.
    pub delayed: usize,
    /// Objects that are being handled.
    pub running: usize,
    /// Daemons and timers that exist.
    pub background: usize,
    /// Blocking handlers that currently occupy a thread.
    pub blocking: usize,
    /// Blocking handlers that are waiting for a free thread.
    pub blocking_waiting: usize,
    /// Events that event handlers never saw, since they were slower than the events of an object.
    pub events_lost: u64,
    /// The number of writes in flight, and the allowed number.
    pub write_load: (usize, usize),
    /// How long ago the reactor made its last turn.
    pub reactor_age: Duration,
}

/// The role of this replica among the others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeadershipStatus {
    /// Our identity.
    pub identity: String,
    /// Whether we lead, or have a share of the objects.
    pub leads: bool,
    /// The number of our term, if we have one.
    pub term: Option<u64>,
    /// The leader, if known.
    pub holder: Option<String>,
    /// Our ranges, and the total number; `None` if one replica leads.
    pub ranges: Option<(Vec<u32>, u32)>,
    /// How many members share the objects; 0 if one replica leads.
    pub members: usize,
    /// How long the last hand-over of ranges took.
    pub handover: Option<Duration>,
}

/// One watch.
#[derive(Clone, Debug, Default)]
pub struct WatchStatus {
    /// The watched resource: `plural.version.group`.
    pub resource: String,
    /// The namespace, or `None` for the whole cluster.
    pub namespace: Option<String>,
    /// The label selector, if only some objects can be relevant for any handler.
    pub labels: Option<String>,
    /// The field selector, likewise.
    pub fields: Option<String>,
    /// Whether there was a complete list.
    pub listed: bool,
    /// Whether the operator is not ready before that.
    pub awaited: bool,
    /// How long ago the server last sent anything on this watch, including a rejection.
    pub age: Duration,
    /// How often it was restarted.
    pub restarts: u64,
    /// How many objects it has.
    pub objects: usize,
    /// The approximate size of what is stored of them.
    pub store_bytes: usize,
    /// The current error, if any.
    pub failing: Option<String>,
}

/// One handler.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HandlerStatus {
    /// How often it was called.
    pub calls: u64,
    /// How often it succeeded.
    pub successes: u64,
    /// How often it failed and is retried.
    pub retries: u64,
    /// How often it failed permanently.
    pub failures: u64,
    /// The time spent in all calls.
    pub seconds: f64,
    /// How many calls fell into each bucket of [`LATENCY_BOUNDS`], and above.
    pub buckets: [u64; LATENCY_BOUNDS.len() + 1],
    /// How often it failed, by class of the failure.
    pub errors: BTreeMap<&'static str, u64>,
}

/// The purpose of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Handlers,
    Discovery,
    Children,
    Peering,
}

/// How a call ended, for the counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Success,
    Retry,
    Failure,
}

/// Where the engine writes; the reactor is the main writer, cycles count their handlers.
pub(crate) struct Board(Mutex<Inner>);

struct Inner {
    status: Status,
    watches: BTreeMap<u32, Noted>,
    next_watch: u32,
    turned: Instant,
}

struct Noted {
    purpose: Purpose,
    status: WatchStatus,
    heard_at: Instant,
}

impl StatusHandle {
    /// The current status.
    #[must_use]
    pub fn snapshot(&self) -> Status {
        let mut status = self.board.snapshot();
        status.requests = self.cluster.request_counts();
        status.work.write_load = self.cluster.write_load();
        status
    }
}

impl Status {
    /// Whether every watch receives data from its server: the basis of the liveness response.
    #[must_use]
    pub fn is_alive(&self, silence_max: Duration) -> bool {
        self.stuck(silence_max).is_none()
    }

    /// What has made no progress for longer than this, and why, if known.
    pub(crate) fn stuck(&self, silence_max: Duration) -> Option<String> {
        if self.work.reactor_age > silence_max {
            return Some(format!("the reactor is stuck for {} s", self.work.reactor_age.as_secs()));
        }
        // During a pause no objects are watched, which is not an error.
        let watches = self.watches.iter().filter(|_| !self.paused);
        let silent = watches.chain(self.own_watches()).find(|it| it.age > silence_max)?;
        let (resource, seconds) = (&silent.resource, silent.age.as_secs());
        let why = silent.failing.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        Some(format!("the watch of {resource} is silent for {seconds} s{why}"))
    }

    /// The watches that the engine itself needs.
    pub(crate) fn own_watches(&self) -> impl Iterator<Item = &WatchStatus> {
        let EngineWatches { discovery, children, peering } = &self.engine_watches;
        discovery.iter().chain(children).chain(peering)
    }
}

impl Board {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(Inner {
            status: Status::default(),
            watches: BTreeMap::new(),
            next_watch: 0,
            turned: Instant::now(),
        })))
    }

    /// Changes the plain values.
    pub(crate) fn update(&self, change: impl FnOnce(&mut Status)) {
        let mut inner = self.0.lock();
        inner.turned = Instant::now();
        change(&mut inner.status);
    }

    /// Adds a watch; returns its id here and elsewhere.
    pub(crate) fn add_watch(&self, purpose: Purpose, status: WatchStatus) -> u32 {
        let mut inner = self.0.lock();
        let id = inner.next_watch;
        inner.next_watch += 1;
        inner.watches.insert(id, Noted { purpose, status, heard_at: Instant::now() });
        id
    }

    /// Changes one watch.
    pub(crate) fn update_watch(&self, id: u32, change: impl FnOnce(&mut WatchStatus)) {
        if let Some(watch) = self.0.lock().watches.get_mut(&id) {
            change(&mut watch.status);
        }
    }

    /// Records that the server sent something on a watch.
    pub(crate) fn heard(&self, id: u32, objects: usize) {
        if let Some(watch) = self.0.lock().watches.get_mut(&id) {
            watch.heard_at = Instant::now();
            watch.status.objects = objects;
            watch.status.failing = None;
        }
    }

    /// Records what a batch says about its watch, if objects are not counted.
    pub(crate) fn listen(&self, id: u32, batch: &[Observation]) {
        // A list that has only started says nothing about the server.
        let says_nothing = |it: &Observation| {
            matches!(it, Observation::ListBegun { .. } | Observation::Disturbed { .. })
        };
        // A failure is the last item of its batch.
        if !batch.iter().all(says_nothing) {
            self.heard(id, 0);
        }
        for observation in batch {
            match observation {
                Observation::ListEnded { .. } => {
                    self.update_watch(id, |status| status.listed = true);
                }
                Observation::Disturbed { error, .. } => self.disturbed(id, error),
                _ => {}
            }
        }
    }

    /// Records that a watch failed. A server that rejects it is alive, and restarting the operator
    /// would not help.
    pub(crate) fn disturbed(&self, id: u32, error: &RequestError) {
        if let Some(watch) = self.0.lock().watches.get_mut(&id) {
            watch.status.restarts += 1;
            watch.status.failing = Some(error.report());
            if error.failure.is_refusal() {
                watch.heard_at = Instant::now();
            }
        }
    }

    pub(crate) fn remove_watch(&self, id: u32) {
        self.0.lock().watches.remove(&id);
    }

    /// Counts one call of a handler.
    pub(crate) fn called(&self, id: &str, took: Duration, ending: Ending) {
        let mut inner = self.0.lock();
        let handler = inner.handler(id);
        handler.calls += 1;
        match ending {
            Ending::Success => handler.successes += 1,
            Ending::Retry => handler.retries += 1,
            Ending::Failure => handler.failures += 1,
        }
        let seconds = took.as_secs_f64();
        handler.seconds += seconds;
        let bucket = LATENCY_BOUNDS.iter().position(|bound| seconds <= *bound);
        handler.buckets[bucket.unwrap_or(LATENCY_BOUNDS.len())] += 1;
    }

    /// Counts a failed call of a handler, by the class of its failure.
    pub(crate) fn failed(&self, id: &str, class: &'static str) {
        *self.0.lock().handler(id).errors.entry(class).or_default() += 1;
    }

    fn snapshot(&self) -> Status {
        let inner = self.0.lock();
        let mut status = inner.status.clone();
        status.work.reactor_age = inner.turned.elapsed();
        for Noted { purpose, status: watch, heard_at } in inner.watches.values() {
            let watch = WatchStatus { age: heard_at.elapsed(), ..watch.clone() };
            match purpose {
                Purpose::Handlers => status.watches.push(watch),
                Purpose::Discovery => status.engine_watches.discovery.push(watch),
                Purpose::Children => status.engine_watches.children.push(watch),
                Purpose::Peering => status.engine_watches.peering.push(watch),
            }
        }
        status
    }
}

impl Inner {
    /// Where the calls of a handler are counted.
    fn handler(&mut self, id: &str) -> &mut HandlerStatus {
        let handlers = &mut self.status.handlers;
        if handlers.contains_key(id) {
            return handlers.get_mut(id).expect("it was found just now");
        }
        if handlers.len() < HANDLERS_MAX {
            return handlers.entry(id.to_owned()).or_default();
        }
        let function = id.split('/').next().unwrap_or_default();
        handlers.entry(format!("{function}/*")).or_default()
    }
}

#[cfg(test)]
mod tests;
