//! The operator's settings, with Kopf's names and defaults.
//!
//! Plain values, changed by startup handlers and read at use time. Those that are read once are read
//! after the startup handlers; each setting says when a later change applies.

use std::sync::Arc;
use std::time::Duration;

use kopf_model::keys::{EmptyPrefix, KeyMaker};
use kopf_model::storage::{
    AnnotationsDiffBase, AnnotationsProgress, CompactDiffBase, DiffBaseStorage, ProgressStorage,
    SmartProgress, StatusDiffBase, StatusProgress,
};
use kopf_model::{Resource, Selector};

use crate::log_line::Level;

mod leadership;
mod named;
mod names;
mod snapshots;

pub use leadership::{Leadership, LeadershipMode};
pub use named::SettingError;
pub use snapshots::Snapshots;

/// All settings.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The process as a whole.
    pub process: Process,
    /// Kubernetes events.
    pub posting: Posting,
    /// Cooperation with other operators.
    pub peering: Peering,
    /// Replicas of this operator: who leads, or who has which share of the objects.
    pub leadership: Leadership,
    /// The file that lets the operator restart without listing its objects.
    pub snapshots: Snapshots,
    /// Lists and watches.
    pub watching: Watching,
    /// Queues and workers.
    pub queueing: Queueing,
    /// Discovery of resources and namespaces.
    pub scanning: Scanning,
    /// Running handlers.
    pub execution: Execution,
    /// Requests to the cluster.
    pub networking: Networking,
    /// What is stored on objects.
    pub persistence: Persistence,
    /// Daemons and timers.
    pub background: Background,
    /// The configurations of webhooks.
    pub admission: Admission,
    /// The operator's own ports: probes, metrics, debug and webhooks.
    pub serving: Serving,
}

/// The process as a whole.
#[derive(Clone, Debug)]
pub struct Process {
    /// How long a graceful stop may take before the operator ends by force; none disables it.
    /// Changes apply if they are made before the shutdown begins.
    pub ultimate_exiting_timeout: Option<Duration>,
}

/// Kubernetes events.
#[derive(Clone, Debug)]
pub struct Posting {
    /// Whether events are posted at all.
    /// Changes apply to the next event; to events about Leases, after a restart.
    pub enabled: bool,
    /// Whether the framework's log lines about objects become events too.
    /// Changes apply to the next line.
    pub loggers: bool,
    /// The least level of what becomes an event. Changes apply to the next line and event.
    pub level: Level,
    /// The pauses between the attempts to post an event that was asked for.
    /// Changes apply to the next event.
    pub default_backoffs: Vec<Duration>,
    /// The same for log lines that become events. Changes apply to the next event.
    pub logging_backoffs: Vec<Duration>,
    /// Kopf's name, without effect: one task posts all events, and delays nothing else.
    pub worker_limit: Option<usize>,
    /// Kopf's name, without effect: objects have no posting workers here.
    pub idle_timeout: Duration,
    /// Whether the success and failure of handlers become events.
    /// Changes apply to the next attempt that ends.
    pub handlers: bool,
    /// The component named in events. Changes apply to the next event.
    pub reporting_component: String,
    /// The instance named in events. Changes apply to the next event.
    pub reporting_instance: String,
    /// The prefix of event names. Changes apply to the next event.
    pub event_name_prefix: String,
    /// How many events per second may be posted in the long run. Changes apply to the next event.
    pub rate_per_second: f64,
    /// How many events may wait for being posted.
    /// Changes apply as soon as the next event is posted.
    pub queue_max: usize,
    /// Whether an event that is posted again within ten minutes is counted on the first one, as the
    /// components of Kubernetes do. Needs the right to patch events.
    /// Changes apply to the next event.
    pub count_repeated: bool,
}

/// Cooperation with other operators.
#[derive(Clone, Debug)]
pub struct Peering {
    /// The name of the peering object. Changes apply within a few seconds: our record moves to the
    /// other object, whose records decide from then on.
    pub name: String,
    /// Our priority; the highest one works, the others pause.
    /// Changes apply from the next keep-alive on.
    pub priority: i64,
    /// How long our keep-alive record is valid. Changes apply from the next keep-alive on.
    pub lifetime: Duration,
    /// Do not log keep-alives. Changes apply from the next keep-alive on.
    pub stealth: bool,
    /// Do not work without the peering object. Changes apply after a restart.
    pub mandatory: bool,
    /// No peering at all. Changes apply after a restart.
    pub standalone: bool,
    /// Use the peering object of the whole cluster even if the operator serves only some
    /// namespaces; others have one peering object per namespace. Changes apply after a restart.
    pub clusterwide: bool,
}

/// Lists and watches.
#[derive(Clone, Debug)]
pub struct Watching {
    /// How long the server is asked to keep one watch open.
    /// Changes apply to watches that are opened afterwards.
    pub server_timeout: Option<Duration>,
    /// How long one watch connection may last on our side.
    /// Changes apply to watches that are opened afterwards.
    pub client_timeout: Option<Duration>,
    /// How long connecting may take. Changes apply from the next login on.
    pub connect_timeout: Option<Duration>,
    /// The least pause between attempts. Changes apply to watches that are opened afterwards.
    pub reconnect_backoff: Duration,
    /// The longest pause between attempts. Changes apply to watches that are opened afterwards.
    pub reconnect_backoff_max: Duration,
    /// A watch that is silent for this long is reopened.
    /// Changes apply to watches that are opened afterwards.
    pub inactivity_timeout: Duration,
    /// How many objects one page of a list has; `None` for whole lists.
    /// Changes apply to watches that are opened afterwards.
    pub chunk_size: Option<u32>,
    /// Let the server stream existing objects instead of listing them; if it refuses, they are
    /// listed. Changes apply to watches that are opened afterwards.
    pub initial_streaming: bool,
    /// Only objects with these labels, checked by the server.
    /// Changes apply to watches that are opened afterwards.
    pub label_selectors: SelectorMapping,
    /// Only objects with these fields, checked by the server.
    /// Changes apply to watches that are opened afterwards.
    pub field_selectors: SelectorMapping,
    /// Only this share of the objects; the first one that applies is used.
    /// Changes apply to watches that are opened afterwards.
    pub shard_selectors: SelectorMapping,
    /// Lists are slowed down while more objects than this wait for being handled.
    /// Changes apply to watches that are opened afterwards.
    pub backlog_max: usize,
    /// Show `metadata.managedFields` to handlers; otherwise they are dropped on arrival.
    /// Changes apply after a restart.
    pub managed_fields: bool,
}

/// Texts by the resources that they are for.
#[derive(Clone, Debug, Default)]
pub struct SelectorMapping(Vec<(Selector, String)>);

impl SelectorMapping {
    /// Adds a text for all resources that are selected.
    ///
    /// ```
    /// use kopf_core::settings::Settings;
    /// use kopf_model::Selector;
    /// let mut settings = Settings::default();
    /// let selector = Selector::parse(&["kopf.dev", "kopfexamples"])?;
    /// settings.watching.label_selectors.insert(selector, "tier=live");
    /// # Ok::<(), kopf_model::selector::SelectorError>(())
    /// ```
    pub fn insert(&mut self, selector: Selector, text: impl Into<String>) {
        self.0.push((selector, text.into()));
    }

    /// The texts for one resource, in the order in which they were added.
    pub fn collect(&self, resource: &Resource) -> impl Iterator<Item = &str> {
        let applicable = self.0.iter().filter(|(selector, _)| selector.matches(resource));
        applicable.map(|(_, text)| text.as_str())
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Queues and workers.
#[derive(Clone, Debug)]
pub struct Queueing {
    /// How many objects are handled at the same time; `None` means the engine's own bound.
    /// Changes apply within 5 seconds.
    pub worker_limit: Option<usize>,
    /// Kopf's name, without effect: objects at rest have no workers here.
    pub idle_timeout: Duration,
    /// How long running handlers may take to finish at shutdown.
    /// Changes apply if they are made before the shutdown begins.
    pub exit_timeout: Duration,
    /// The pauses after unexpected errors about an object; the last one repeats.
    /// Changes apply within 5 seconds.
    pub error_delays: Vec<Duration>,
}

/// Discovery of resources and namespaces.
#[derive(Clone, Debug, Default)]
pub struct Scanning {
    /// Do not watch for new resources and namespaces. Changes apply after a restart.
    pub disabled: bool,
}

/// Running handlers.
#[derive(Clone, Debug)]
pub struct Execution {
    /// The delay after arbitrary errors. Changes apply to the next attempt that fails.
    pub default_backoff: Duration,
    /// How many blocking handlers run at the same time. Changes apply within 5 seconds.
    pub max_workers: usize,
    /// Run handlers again that have finished for a state of the object that has changed since, while
    /// other handlers were still running. Without it, as in Kopf, they miss that change.
    /// Changes apply from the next turn on.
    pub rerun_outdated: bool,
}

/// Requests to the cluster.
#[derive(Clone, Debug)]
pub struct Networking {
    /// How long one request may take.
    /// Changes apply within 5 seconds; to lists, with watches that are opened afterwards.
    pub request_timeout: Duration,
    /// How long connecting may take. Changes apply from the next login on.
    pub connect_timeout: Option<Duration>,
    /// The pauses between the attempts of one request. Changes apply within 5 seconds.
    pub error_backoffs: Vec<Duration>,
    /// Obey `Retry-After` even if it is shorter than the backoff. Changes apply within 5 seconds.
    pub enforce_retry_after: bool,
    /// Use the proxies that the environment names (`HTTPS_PROXY`, `NO_PROXY`).
    /// Changes apply from the next login on.
    pub trust_env: bool,
    /// How many writes may be under way at the same time. Changes apply within 5 seconds.
    pub concurrent_writes_max: usize,
}

/// What is stored on objects.
#[derive(Clone, Debug)]
pub struct Persistence {
    /// Our finalizer. Changes apply after a restart.
    pub finalizer: String,
    /// How long to wait for our own write to be seen before going on.
    /// Changes apply to the next write.
    pub consistency_timeout: Duration,
    /// Outcomes are written at the latest this long after a handler finished, even while its
    /// slower neighbours are still running. Changes apply to the next attempt.
    pub persist_after: Duration,
    /// Where progress is stored. Changes apply after a restart.
    pub progress_storage: ProgressStorageSetting,
    /// Where the last handled state is stored. Changes apply after a restart.
    pub diffbase_storage: DiffbaseStorageSetting,
    /// Who writes the fields of children, for the server. Changes apply within 5 seconds.
    pub field_manager: String,
}

/// The storages that the settings describe, ready for use.
#[derive(Clone)]
pub struct Storages {
    /// Where progress is stored.
    pub progress: Arc<dyn ProgressStorage>,
    /// Where the last handled state is stored.
    pub diffbase: Arc<dyn DiffBaseStorage>,
}

/// Where progress is stored.
#[derive(Clone)]
pub enum ProgressStorageSetting {
    /// In annotations with this prefix; old records in the status are read and purged.
    Smart {
        /// The prefix of annotations.
        prefix: String,
        /// The name under `status`.
        name: String,
    },
    /// In annotations only.
    Annotations {
        /// The prefix of annotations.
        prefix: String,
    },
    /// In the status only.
    Status {
        /// The name under `status`.
        name: String,
    },
    /// In a storage of the user's own making.
    Custom(Arc<dyn ProgressStorage>),
}

/// Where the last handled state is stored.
#[derive(Clone)]
pub enum DiffbaseStorageSetting {
    /// In one annotation.
    Annotations {
        /// The prefix of annotations.
        prefix: String,
        /// The key after the prefix.
        key: String,
    },
    /// In the status.
    Status {
        /// The name under `status`.
        name: String,
    },
    /// In one annotation, compressed or as a digest when the plain form would not fit.
    Compact {
        /// The prefix of annotations.
        prefix: String,
        /// The key after the prefix.
        key: String,
    },
    /// In a storage of the user's own making.
    Custom(Arc<dyn DiffBaseStorage>),
}

impl Persistence {
    /// Makes the storages.
    ///
    /// # Errors
    /// Fails when a prefix of annotations is empty.
    pub fn storages(&self) -> Result<Storages, EmptyPrefix> {
        let progress: Arc<dyn ProgressStorage> = match &self.progress_storage {
            ProgressStorageSetting::Smart { prefix, name } => Arc::new(SmartProgress {
                annotations: AnnotationsProgress::new(KeyMaker::new(prefix)?),
                status: StatusProgress::named(name),
            }),
            ProgressStorageSetting::Annotations { prefix } => {
                Arc::new(AnnotationsProgress::new(KeyMaker::new(prefix)?))
            }
            ProgressStorageSetting::Status { name } => Arc::new(StatusProgress::named(name)),
            ProgressStorageSetting::Custom(storage) => Arc::clone(storage),
        };
        let annotations =
            |prefix: &str, key: &str| Ok(AnnotationsDiffBase::new(KeyMaker::new(prefix)?, key));
        let diffbase: Arc<dyn DiffBaseStorage> = match &self.diffbase_storage {
            DiffbaseStorageSetting::Annotations { prefix, key } => {
                Arc::new(annotations(prefix, key)?)
            }
            DiffbaseStorageSetting::Compact { prefix, key } => {
                Arc::new(CompactDiffBase::new(annotations(prefix, key)?))
            }
            DiffbaseStorageSetting::Status { name } => Arc::new(StatusDiffBase::named(name)),
            DiffbaseStorageSetting::Custom(storage) => Arc::clone(storage),
        };
        Ok(Storages { progress, diffbase })
    }
}

impl std::fmt::Debug for ProgressStorageSetting {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Smart { prefix, name } => write!(formatter, "Smart({prefix}, {name})"),
            Self::Annotations { prefix } => write!(formatter, "Annotations({prefix})"),
            Self::Status { name } => write!(formatter, "Status({name})"),
            Self::Custom(_) => formatter.write_str("Custom"),
        }
    }
}

impl std::fmt::Debug for DiffbaseStorageSetting {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Annotations { prefix, key } => write!(formatter, "Annotations({prefix}/{key})"),
            Self::Compact { prefix, key } => write!(formatter, "Compact({prefix}/{key})"),
            Self::Status { name } => write!(formatter, "Status({name})"),
            Self::Custom(_) => formatter.write_str("Custom"),
        }
    }
}

/// Daemons and timers.
#[derive(Clone, Debug)]
pub struct Background {
    /// The polling period while waiting for daemons without a cancellation timeout.
    /// Changes apply to daemons that are stopped afterwards.
    pub cancellation_polling: Duration,
    /// How long to wait for daemons that exit at once.
    /// Changes apply to daemons that are stopped afterwards.
    pub instant_exit_timeout: Option<Duration>,
    /// Without that time, how many turns of the scheduler such daemons get.
    /// Changes apply to daemons that are stopped afterwards.
    pub instant_exit_zero_time_cycles: usize,
    /// After a start, the first runs of timers of known objects are spread over this time at most;
    /// zero lets all of them run at once. Changes apply to timers that start afterwards.
    pub timer_spread_max: Duration,
}

/// The configurations of webhooks.
#[derive(Clone, Debug)]
pub struct Admission {
    /// Exclude the operator's own namespace from webhooks for builtin resources, if a service leads
    /// to them: while the operator is down, nobody would respond to the review of its own pods.
    /// Changes apply when the webhooks are configured next.
    pub exempt_own_namespace: bool,
}

/// The operator's own ports: probes, metrics, debug and webhooks.
#[derive(Clone, Debug)]
pub struct Serving {
    /// How many connections one port may have. Beyond that, a new connection closes the one that has
    /// been idle or unfinished for the longest time. Changes apply after a restart.
    pub connections_max: usize,
    /// How many of the file descriptors of the process the ports leave to everything else, above
    /// all to the connections to the API server; half of them if there are fewer than twice as many.
    /// Changes apply after a restart.
    pub reserved_files: usize,
    /// How long a TLS handshake may take. Changes apply after a restart.
    pub handshake_timeout: Duration,
    /// How long the head of a request may take to arrive. Changes apply after a restart.
    pub head_timeout: Duration,
    /// How long the body of a request may take to arrive. Changes apply after a restart.
    pub body_timeout: Duration,
    /// How long a client may take to read a response. Changes apply after a restart.
    pub write_timeout: Duration,
    /// How long a connection may be idle between two requests. Changes apply after a restart.
    pub idle_timeout: Duration,
    /// The largest head of a request, in bytes; at least 8 KiB. Changes apply after a restart.
    pub head_bytes_max: usize,
    /// The largest admission review, in bytes: the old and the new object, 3 MB each.
    /// Changes apply after a restart.
    pub review_bytes_max: usize,
    /// The largest conversion review, in bytes: it has all objects of a list.
    /// Changes apply after a restart.
    pub conversion_bytes_max: usize,
    /// How many bytes of requests and responses all ports together keep in memory.
    /// Changes apply after a restart.
    pub buffered_bytes_max: usize,
    /// The liveness probe fails when a watch or the reactor has made no progress for this long.
    /// Never less than `watching.inactivity_timeout` and half a minute.
    /// Changes apply to the next probe.
    pub liveness_timeout: Duration,
}

impl Serving {
    /// How many connections each of the ports may have in a process with this many file descriptors.
    #[must_use]
    pub fn connections_per_port(&self, ports: usize, files: Option<u64>) -> usize {
        let Some(files) = files.and_then(|files| usize::try_from(files).ok()) else {
            return self.connections_max.max(1);
        };
        let reserved = self.reserved_files.min(files / 2);
        let share = (files - reserved) / ports.max(1);
        self.connections_max.min(share).max(1)
    }
}

const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

impl Default for Process {
    fn default() -> Self {
        Self { ultimate_exiting_timeout: Some(seconds(600)) }
    }
}

impl Default for Posting {
    fn default() -> Self {
        Self {
            enabled: true,
            loggers: false,
            level: Level::Info,
            default_backoffs: [1, 1, 2, 3, 5, 8, 13, 21].map(seconds).to_vec(),
            logging_backoffs: [1, 1, 2, 3, 5].map(seconds).to_vec(),
            worker_limit: None,
            idle_timeout: seconds(1),
            handlers: false,
            reporting_component: "kopf".into(),
            reporting_instance: "dev".into(),
            event_name_prefix: "kopf-event-".into(),
            rate_per_second: 20.0,
            queue_max: 10_000,
            count_repeated: true,
        }
    }
}

impl Default for Peering {
    fn default() -> Self {
        Self {
            name: "default".into(),
            priority: 0,
            lifetime: seconds(60),
            stealth: false,
            mandatory: false,
            standalone: false,
            clusterwide: false,
        }
    }
}

impl Default for Watching {
    fn default() -> Self {
        Self {
            server_timeout: None,
            client_timeout: None,
            connect_timeout: None,
            reconnect_backoff: Duration::from_millis(100),
            reconnect_backoff_max: seconds(10),
            inactivity_timeout: seconds(70),
            chunk_size: Some(500),
            initial_streaming: false,
            label_selectors: SelectorMapping::default(),
            field_selectors: SelectorMapping::default(),
            shard_selectors: SelectorMapping::default(),
            backlog_max: 1000,
            managed_fields: false,
        }
    }
}

impl Default for Queueing {
    fn default() -> Self {
        let fibonacci = [1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610];
        Self {
            worker_limit: None,
            idle_timeout: seconds(5),
            exit_timeout: seconds(2),
            error_delays: fibonacci.map(seconds).to_vec(),
        }
    }
}

impl Default for Execution {
    fn default() -> Self {
        Self { default_backoff: seconds(60), max_workers: 32, rerun_outdated: true }
    }
}

impl Default for Networking {
    fn default() -> Self {
        Self {
            request_timeout: seconds(300),
            connect_timeout: None,
            error_backoffs: [1, 1, 2, 3, 5, 8, 13, 21].map(seconds).to_vec(),
            enforce_retry_after: false,
            trust_env: false,
            concurrent_writes_max: 128,
        }
    }
}

impl Default for Persistence {
    fn default() -> Self {
        let prefix = || "kopf.zalando.org".to_owned();
        Self {
            finalizer: "kopf.zalando.org/KopfFinalizerMarker".into(),
            consistency_timeout: seconds(5),
            persist_after: seconds(1),
            progress_storage: ProgressStorageSetting::Smart {
                prefix: prefix(),
                name: "kopf".into(),
            },
            // Byte by byte as Kopf writes it, as long as it fits into annotations.
            diffbase_storage: DiffbaseStorageSetting::Compact {
                prefix: prefix(),
                key: "last-handled-configuration".into(),
            },
            field_manager: "kopf".into(),
        }
    }
}

impl Default for Background {
    fn default() -> Self {
        Self {
            cancellation_polling: seconds(60),
            instant_exit_timeout: None,
            instant_exit_zero_time_cycles: 10,
            timer_spread_max: seconds(10),
        }
    }
}

impl Default for Admission {
    fn default() -> Self {
        Self { exempt_own_namespace: true }
    }
}

impl Default for Serving {
    fn default() -> Self {
        Self {
            connections_max: 1024,
            reserved_files: 256,
            handshake_timeout: seconds(10),
            head_timeout: seconds(10),
            body_timeout: seconds(30),
            write_timeout: seconds(30),
            // Longer than API servers keep theirs, which is 90 s: they are the ones to close.
            idle_timeout: seconds(120),
            head_bytes_max: 32 << 10,
            review_bytes_max: 8 << 20,
            conversion_bytes_max: 64 << 20,
            buffered_bytes_max: 64 << 20,
            liveness_timeout: seconds(110),
        }
    }
}

#[cfg(test)]
mod tests;
