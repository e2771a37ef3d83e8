//! Posts Kubernetes events about objects: queued, bounded, rate-limited, repetitions counted.
//!
//! Handlers and the engine pass events to [`Recorder`]; one task sends them. Losing an event is
//! better than delaying a handler, so nothing here ever blocks or fails.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use kopf_client::{Cluster, Failure, PatchContent, Target, Urgency};
use kopf_core::invoke::{OperatorContext, Record};
use kopf_core::logtext::Level;
use kopf_core::occasion::Subject;
use kopf_model::{Object, Resource, record::format_time};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::clock::Clock;

/// The reason of events from log lines; their level is checked before.
pub(crate) const LOGGING: &str = "Logging";
/// The same event within this time is counted instead of posted again.
const REPETITION: Duration = Duration::from_secs(600);
/// A namespace that rejects events because it is being deleted is tried again after this time.
const NAMESPACE_PAUSE: Duration = Duration::from_secs(1);
/// How many such namespaces are remembered.
const NAMESPACES_MAX: usize = 256;
/// How many posted events are remembered for counting.
const REMEMBERED_MAX: usize = 4096;
/// The server's limit for the message, in characters.
const MESSAGE_MAX: usize = 1024;

/// Accepts events.
pub(crate) struct Recorder {
    sender: mpsc::UnboundedSender<Entry>,
    room: Arc<Room>,
    lost: AtomicU64,
}

/// How many events are waiting, and how many may; the setting is known only after the startup
/// handlers.
struct Room {
    waiting: AtomicUsize,
    max: AtomicUsize,
}

impl Room {
    /// Takes a place, if there is one.
    fn enter(&self) -> bool {
        let max = self.max.load(Ordering::Relaxed);
        let next = |waiting: usize| (waiting < max).then_some(waiting + 1);
        self.waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).is_ok()
    }

    fn leave(&self) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Sends what was recorded.
pub(crate) struct Poster {
    receiver: mpsc::UnboundedReceiver<Entry>,
    room: Arc<Room>,
    cluster: Cluster,
    clock: Clock,
    events: Resource,
    posted: HashMap<(String, String, String, String), Posted>,
    /// Namespaces that are being deleted, and when the server reported it.
    leaving: HashMap<String, Instant>,
    tokens: f64,
    refilled: Instant,
}

struct Entry {
    about: Object,
    kind: String,
    reason: String,
    message: String,
}

struct Posted {
    name: String,
    namespace: String,
    first: String,
    count: u64,
    at: Instant,
}

impl Recorder {
    /// A recorder and its poster, with room for this many waiting events.
    pub(crate) fn new(cluster: Cluster, clock: Clock, queue_max: usize) -> (Arc<Self>, Poster) {
        let (sender, receiver) = mpsc::unbounded_channel();
        let (waiting, max) = (AtomicUsize::new(0), AtomicUsize::new(queue_max.max(1)));
        let room = Arc::new(Room { waiting, max });
        let lost = AtomicU64::new(0);
        let recorder = Arc::new(Self { sender, room: Arc::clone(&room), lost });
        let poster = Poster {
            receiver,
            room,
            cluster,
            clock,
            events: core_events(),
            posted: HashMap::new(),
            leaving: HashMap::new(),
            tokens: 1.0,
            refilled: Instant::now(),
        };
        (recorder, poster)
    }
}

impl Record for Recorder {
    fn record(&self, about: &Subject, kind: &str, reason: &str, message: &str) {
        let object = &about.object;
        if is_event(object) {
            return;
        }
        let entry = Entry {
            about: object.clone(),
            kind: kind.to_owned(),
            reason: reason.to_owned(),
            message: shortened(message),
        };
        // Without a receiver they are never processed.
        if !self.room.enter() || self.sender.send(entry).is_err() {
            let lost = self.lost.fetch_add(1, Ordering::Relaxed) + 1;
            if lost.is_power_of_two() {
                tracing::warn!(lost, "too many events are waiting; dropping some");
            }
        }
    }
}

impl Poster {
    /// Changes how many events may wait.
    pub(crate) fn set_queue_max(&self, queue_max: usize) {
        self.room.max.store(queue_max.max(1), Ordering::Relaxed);
    }

    /// Sends events until it is closed, and then those still waiting.
    pub(crate) async fn run(
        mut self,
        context: Arc<OperatorContext>,
        closing: oneshot::Receiver<()>,
    ) {
        tokio::pin!(closing);
        let mut is_closing = false;
        loop {
            let entry = tokio::select! {
                biased;
                Some(entry) = self.receiver.recv() => entry,
                _ = &mut closing, if !is_closing => {
                    is_closing = true;
                    self.receiver.close();
                    continue;
                }
                else => return,
            };
            self.room.leave();
            let posting = context.settings.read().posting.clone();
            self.set_queue_max(posting.queue_max);
            let is_too_low = match entry.kind.as_str() {
                "Normal" => posting.level > Level::Info && entry.reason != LOGGING,
                "Warning" => posting.level > Level::Warning && entry.reason != LOGGING,
                _ => false,
            };
            if !posting.enabled || is_too_low || self.is_leaving(&entry.about) {
                continue;
            }
            self.wait_for_token(posting.rate_per_second).await;
            let key = (
                identity(&entry.about),
                entry.kind.clone(),
                entry.reason.clone(),
                entry.message.clone(),
            );
            let fresh = self.posted.get(&key).is_some_and(|it| it.at.elapsed() < REPETITION);
            if fresh && posting.count_repeated {
                self.count(&key).await;
            } else {
                self.post(key, &entry, &posting).await;
            }
        }
    }

    async fn wait_for_token(&mut self, rate: f64) {
        let rate = if rate > 0.0 { rate } else { return };
        let burst = rate.max(1.0) * 5.0;
        let passed = self.refilled.elapsed().as_secs_f64();
        self.tokens = (self.tokens + passed * rate).min(burst);
        self.refilled = Instant::now();
        if self.tokens < 1.0 {
            // A rate near zero means never, which exceeds any duration.
            let pause = Duration::try_from_secs_f64((1.0 - self.tokens) / rate);
            tokio::time::sleep(pause.unwrap_or(Duration::MAX)).await;
            self.tokens = 1.0;
            self.refilled = Instant::now();
        }
        self.tokens -= 1.0;
    }

    async fn post(
        &mut self,
        key: (String, String, String, String),
        entry: &Entry,
        posting: &kopf_core::settings::Posting,
    ) {
        let object = &entry.about;
        let namespace = match object.namespace() {
            Some(namespace) => namespace.to_owned(),
            // Operators are often restricted to one namespace, that of their login.
            None => self.cluster.connect().await.unwrap_or_else(|_| "default".to_owned()),
        };
        let now = format_time(self.clock.now());
        let body = json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"namespace": namespace, "generateName": posting.event_name_prefix},
            "action": "Action?",
            "type": entry.kind,
            "reason": entry.reason,
            "message": entry.message,
            "reportingComponent": posting.reporting_component,
            "reportingInstance": posting.reporting_instance,
            "source": {"component": posting.reporting_component},
            "involvedObject": reference(object, &namespace),
            "firstTimestamp": whole_seconds(&now),
            "lastTimestamp": whole_seconds(&now),
            "eventTime": now,
            "count": 1,
        });
        let backoffs = match entry.reason.as_str() {
            LOGGING => &posting.logging_backoffs,
            _ => &posting.default_backoffs,
        };
        let (namespaced, body) = (Some(namespace.as_str()), body.to_string().into());
        let created = self.cluster.create_patiently(&self.events, namespaced, body, backoffs).await;
        match created {
            Ok(event) => {
                if self.posted.len() >= REMEMBERED_MAX {
                    self.posted.retain(|_, it| it.at.elapsed() < REPETITION);
                }
                if self.posted.len() < REMEMBERED_MAX {
                    let name = event.name().to_owned();
                    let at = Instant::now();
                    let posted = Posted { name, namespace, first: now, count: 1, at };
                    self.posted.insert(key, posted);
                }
            }
            // Nobody is left to read it.
            Err(error) if error.lacks_namespace => {
                let object = object.key();
                tracing::debug!(%error, %object, "dropping an event: its namespace is being deleted");
                self.note_leaving(namespace);
            }
            Err(error) => {
                let object = object.key();
                tracing::warn!(%error, %object, "could not post an event; dropping it");
            }
        }
    }

    /// Whether the namespace of an object recently rejected events because it is being deleted.
    fn is_leaving(&self, object: &Object) -> bool {
        let noted = object.namespace().and_then(|namespace| self.leaving.get(namespace));
        noted.is_some_and(|at| at.elapsed() < NAMESPACE_PAUSE)
    }

    fn note_leaving(&mut self, namespace: String) {
        self.leaving.retain(|_, at| at.elapsed() < NAMESPACE_PAUSE);
        if self.leaving.len() < NAMESPACES_MAX {
            self.leaving.insert(namespace, Instant::now());
        }
    }

    /// Counts a repetition on the existing event.
    async fn count(&mut self, key: &(String, String, String, String)) {
        let now = format_time(self.clock.now());
        let Some(posted) = self.posted.get_mut(key) else { return };
        posted.count += 1;
        let patch = json!({
            "count": posted.count,
            "lastTimestamp": whole_seconds(&now),
            "series": {"count": posted.count.max(2), "lastObservedTime": now},
        });
        let target = Target {
            resource: &self.events,
            namespace: Some(&posted.namespace),
            name: &posted.name,
            subresource: None,
        };
        let content = PatchContent::Merge(patch.to_string().into());
        match self.cluster.patch(target, content, Urgency::Normal).await {
            Ok(_) => {}
            Err(error) if error.failure == Failure::NotFound => {
                self.posted.remove(key);
            }
            // Operators usually may only create events; then a repetition is just not counted.
            Err(error) => {
                tracing::debug!(%error, first = posted.first, "could not count the repetition of an event")
            }
        }
    }
}

/// The resource of core events, without discovery.
fn core_events() -> Resource {
    Resource {
        group: String::new(),
        version: "v1".into(),
        plural: "events".into(),
        kind: "Event".into(),
        singular: "event".into(),
        shortcuts: Default::default(),
        categories: Default::default(),
        subresources: Default::default(),
        namespaced: true,
        preferred: true,
        verbs: Default::default(),
    }
}

/// Identifies an object; those without a uid are identified by name.
fn identity(object: &Object) -> String {
    match object.uid() {
        "" => format!("{} {} {}", object.api_version(), object.kind(), object.key()),
        uid => uid.to_owned(),
    }
}

/// Whether this is itself an event, not an object of another group with the same name.
fn is_event(object: &Object) -> bool {
    let version = object.api_version();
    object.kind() == "Event" && (version == "v1" || version.starts_with("events.k8s.io/"))
}

fn reference(object: &Object, namespace: &str) -> Value {
    let mut reference = json!({
        "apiVersion": object.api_version(),
        "kind": object.kind(),
        "name": object.name(),
        "uid": object.uid(),
        "namespace": namespace,
    });
    let parts = reference.as_object_mut().expect("just made as a map");
    parts.retain(|_, value| value.as_str().is_some_and(|text| !text.is_empty()));
    reference
}

/// These two fields have no fractions of seconds; servers reject an offset other than Z.
fn whole_seconds(time: &str) -> String {
    match time.split_once('.') {
        Some((seconds, _)) => format!("{seconds}Z"),
        None => time.to_owned(),
    }
}

fn shortened(message: &str) -> String {
    let count = message.chars().count();
    if count <= MESSAGE_MAX {
        return message.to_owned();
    }
    let head: String = message.chars().take(MESSAGE_MAX / 2 - 1).collect();
    let tail: String = message.chars().skip(count - (MESSAGE_MAX / 2 - 2)).collect();
    format!("{head}...{tail}")
}

#[cfg(test)]
mod tests;
