//! Settings that change while the operator runs.
//!
//! Most settings are read when they are used. Some of the others are followed here; for the rest, a
//! warning says when the change takes effect. Makes no requests, and changes nothing itself.

use std::time::Duration;

use kopf_client::Policy;
use kopf_core::queue::Limits;
use kopf_core::settings::{
    DiffbaseStorageSetting, Persistence, ProgressStorageSetting, Serving, Settings, Storages,
};
use kopf_model::keys::EmptyPrefix;
use tokio::time::Instant;

/// How often to check for changes.
const INTERVAL: Duration = Duration::from_secs(5);

/// How many objects are handled at the same time by default.
const WORKERS_MAX: usize = 1024;

const WITH_WATCHES: &str = "for watches that are opened from now on";
const WITH_LOGIN: &str = "from the next login on";
const WITH_RESTART: &str = "after a restart of the operator";

/// Where and how state is stored on objects. It does not change while the operator runs: with
/// another finalizer or storage, it would not recognise its own objects.
#[derive(Clone)]
pub(crate) struct Marks {
    pub(crate) storages: Storages,
    pub(crate) finalizer: String,
    /// Whether a storage is code of a user or front end.
    pub(crate) are_storages_custom: bool,
}

impl Marks {
    pub(crate) fn of(settings: &Settings) -> Result<Self, EmptyPrefix> {
        let Persistence { progress_storage, diffbase_storage, finalizer, .. } =
            &settings.persistence;
        let are_storages_custom = matches!(progress_storage, ProgressStorageSetting::Custom(_))
            || matches!(diffbase_storage, DiffbaseStorageSetting::Custom(_));
        let storages = settings.persistence.storages()?;
        Ok(Self { storages, finalizer: finalizer.clone(), are_storages_custom })
    }
}

/// The settings in use that are not read at use time.
pub(crate) struct Tuning {
    limits: Limits,
    policy: Policy,
    workers: usize,
    kept: Vec<Kept>,
    looked_at: Instant,
}

/// A setting whose change is not followed.
struct Kept {
    name: &'static str,
    value: String,
    /// When a change takes effect.
    effect: &'static str,
}

/// The changed settings.
#[derive(Default)]
pub(crate) struct Changes {
    pub(crate) limits: Option<Limits>,
    pub(crate) policy: Option<Policy>,
    pub(crate) workers: Option<usize>,
    pub(crate) warnings: Vec<String>,
}

impl Tuning {
    /// Starts with these settings.
    pub(crate) fn of(settings: &Settings) -> Self {
        Self {
            limits: limits(settings),
            policy: policy(settings),
            workers: settings.execution.max_workers,
            kept: kept(settings),
            looked_at: Instant::now(),
        }
    }

    /// The limits of the queue.
    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Whether it is time to check again.
    pub(crate) fn is_due(&self) -> bool {
        self.looked_at.elapsed() >= INTERVAL
    }

    /// Returns what has changed.
    pub(crate) fn follow(&mut self, settings: &Settings) -> Changes {
        self.looked_at = Instant::now();
        // Watches drop these on arrival or not, and responses to writes must match.
        let managed_fields = self.policy.managed_fields;
        let policy = Policy { managed_fields, ..policy(settings) };
        let mut changes = Changes {
            limits: replaced(&mut self.limits, limits(settings)),
            policy: replaced(&mut self.policy, policy),
            workers: replaced(&mut self.workers, settings.execution.max_workers),
            warnings: Vec::new(),
        };
        let mut are_storages_changed = false;
        for (kept, now) in self.kept.iter_mut().zip(kept(settings)) {
            if replaced(&mut kept.value, now.value).is_some() {
                changes.warnings.push(kept.warning());
                are_storages_changed |= kept.name.ends_with("_storage");
            }
        }
        if are_storages_changed && settings.persistence.storages().is_err() {
            let text = "annotation prefixes in settings.persistence must not be empty: \
                        with such settings the operator does not start";
            changes.warnings.push(text.to_owned());
        }
        changes
    }
}

impl Kept {
    fn warning(&self) -> String {
        let Self { name, effect, .. } = self;
        format!("settings.{name} was changed while the operator runs: it takes effect {effect}")
    }
}

/// Replaces a value; returns the new one if it is different.
fn replaced<T: Clone + PartialEq>(known: &mut T, newer: T) -> Option<T> {
    (*known != newer).then(|| {
        known.clone_from(&newer);
        newer
    })
}

/// The limits of requests.
pub(crate) fn policy(settings: &Settings) -> Policy {
    let networking = &settings.networking;
    Policy {
        request_timeout: networking.request_timeout,
        connect_timeout: networking.connect_timeout,
        watch_connect_timeout: settings.watching.connect_timeout,
        error_backoffs: networking.error_backoffs.clone(),
        enforce_retry_after: networking.enforce_retry_after,
        trust_env: networking.trust_env,
        concurrent_writes_max: networking.concurrent_writes_max,
        managed_fields: settings.watching.managed_fields,
        names_rules: true,
        field_manager: settings.persistence.field_manager.clone(),
    }
}

fn limits(settings: &Settings) -> Limits {
    Limits {
        running_max: settings.queueing.worker_limit.unwrap_or(WORKERS_MAX).max(1),
        error_delays: settings.queueing.error_delays.clone(),
    }
}

/// All settings that are neither followed nor read at use time, always in the same order.
fn kept(settings: &Settings) -> Vec<Kept> {
    let Settings {
        watching,
        networking,
        persistence,
        peering,
        scanning,
        leadership,
        snapshots,
        ..
    } = settings;
    let watches = [
        ("watching.server_timeout", format!("{:?}", watching.server_timeout)),
        ("watching.client_timeout", format!("{:?}", watching.client_timeout)),
        ("watching.reconnect_backoff", format!("{:?}", watching.reconnect_backoff)),
        ("watching.reconnect_backoff_max", format!("{:?}", watching.reconnect_backoff_max)),
        ("watching.inactivity_timeout", format!("{:?}", watching.inactivity_timeout)),
        ("watching.chunk_size", format!("{:?}", watching.chunk_size)),
        ("watching.initial_streaming", format!("{:?}", watching.initial_streaming)),
        ("watching.label_selectors", format!("{:?}", watching.label_selectors)),
        ("watching.field_selectors", format!("{:?}", watching.field_selectors)),
        ("watching.shard_selectors", format!("{:?}", watching.shard_selectors)),
        ("watching.backlog_max", format!("{:?}", watching.backlog_max)),
    ];
    let logins = [
        ("watching.connect_timeout", format!("{:?}", watching.connect_timeout)),
        ("networking.connect_timeout", format!("{:?}", networking.connect_timeout)),
        ("networking.trust_env", format!("{:?}", networking.trust_env)),
    ];
    let restarts = [
        ("watching.managed_fields", format!("{:?}", watching.managed_fields)),
        ("scanning.disabled", format!("{:?}", scanning.disabled)),
        ("leadership", format!("{leadership:?}")),
        ("snapshots", format!("{snapshots:?}")),
        ("peering.standalone", format!("{:?}", peering.standalone)),
        ("peering.mandatory", format!("{:?}", peering.mandatory)),
        ("peering.clusterwide", format!("{:?}", peering.clusterwide)),
        ("persistence.finalizer", format!("{:?}", persistence.finalizer)),
        ("persistence.progress_storage", format!("{:?}", persistence.progress_storage)),
        ("persistence.diffbase_storage", format!("{:?}", persistence.diffbase_storage)),
    ];
    let with = |effect: &'static str| move |(name, value)| Kept { name, value, effect };
    let watches = watches.into_iter().map(with(WITH_WATCHES));
    let logins = logins.into_iter().map(with(WITH_LOGIN));
    let ports = kept_by_ports(&settings.serving);
    let restarts = restarts.into_iter().chain(ports).map(with(WITH_RESTART));
    watches.chain(logins).chain(restarts).collect()
}

/// The limits of the operator's own ports.
fn kept_by_ports(serving: &Serving) -> [(&'static str, String); 11] {
    [
        ("serving.connections_max", format!("{:?}", serving.connections_max)),
        ("serving.reserved_files", format!("{:?}", serving.reserved_files)),
        ("serving.handshake_timeout", format!("{:?}", serving.handshake_timeout)),
        ("serving.head_timeout", format!("{:?}", serving.head_timeout)),
        ("serving.body_timeout", format!("{:?}", serving.body_timeout)),
        ("serving.write_timeout", format!("{:?}", serving.write_timeout)),
        ("serving.idle_timeout", format!("{:?}", serving.idle_timeout)),
        ("serving.head_bytes_max", format!("{:?}", serving.head_bytes_max)),
        ("serving.review_bytes_max", format!("{:?}", serving.review_bytes_max)),
        ("serving.conversion_bytes_max", format!("{:?}", serving.conversion_bytes_max)),
        ("serving.buffered_bytes_max", format!("{:?}", serving.buffered_bytes_max)),
    ]
}
