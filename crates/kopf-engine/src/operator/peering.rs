//! Cooperation with other operators: the one with the highest priority works, the others pause.
//!
//! Every operator maintains a record about itself on a shared peering object and watches the
//! records of the others. Tells the reactor to pause and to resume; knows nothing about handlers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kopf_client::{
    Batch, ChangeKind, Collection, Failure, Observation, PatchContent, RequestError, Target,
    Urgency, WatchLimits, Watcher,
};
use kopf_core::peering::{Verdict, judge};
use kopf_core::settings::Peering as Settings;
use kopf_model::peering::{self, GROUPS, Peer, VERSION};
use kopf_model::{Object, Resource, Timestamp};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::cluster_view::{ClusterSnapshot, Scope};
use crate::context::notice::Notice;
use crate::context::shared::Shared;
use crate::reporting::status::{Board, Purpose, WatchStatus};

/// How often to look for the peering resource while it does not exist.
const PATIENCE: Duration = Duration::from_secs(30);
/// How soon to look for the peering resource again after an error.
const OUTAGE_PATIENCE: Duration = Duration::from_secs(5);
/// How often to check whether the name of the peering object was changed.
const RENAMING_INTERVAL: Duration = Duration::from_secs(5);

/// Whether we are paused, by peering object; any of them is enough.
#[derive(Default)]
struct Pauses(Mutex<BTreeMap<String, bool>>);

/// A peering object with our record.
struct Place {
    shared: Arc<Shared>,
    resource: Arc<Resource>,
    namespace: Option<Arc<str>>,
    /// The name of the peering object.
    object: String,
    identity: String,
    pauses: Arc<Pauses>,
}

/// A peering object with its tasks, which end when this is dropped.
type Joined = (Arc<Place>, JoinSet<()>);

/// What the watch of a peering object knows.
struct Watched {
    board: Arc<Board>,
    /// The id of the watch on the board, until this is dropped.
    id: u32,
    name: String,
    newest: Option<Object>,
    is_in_list: bool,
    is_failing: bool,
}

/// Our identity: the name of the pod, or user, host, time and a random suffix.
pub(crate) fn identity(now: Timestamp) -> String {
    if let Ok(id) = std::env::var("POD_ID") {
        return id;
    }
    let moment = now.strftime("%Y%m%d%H%M%S");
    let letters: String = (0..3).map(|_| fastrand::alphanumeric().to_ascii_lowercase()).collect();
    format!("{}/{moment}/{letters}", person())
}

/// The person at this machine, as `user@host`: the default owner of pause records.
#[must_use]
pub fn person() -> String {
    let user = ["USER", "LOGNAME"].iter().find_map(|name| std::env::var(name).ok());
    let host = std::env::var("HOSTNAME")
        .ok()
        .or_else(|| std::fs::read_to_string("/etc/hostname").ok())
        .map(|host| host.trim().to_owned());
    let (user, host) = (user.as_deref().unwrap_or("root"), host.as_deref().unwrap_or("host"));
    format!("{user}@{host}")
}

/// Whether to do nothing until the peers are known; a standalone operator has none.
pub(crate) fn begins_paused(settings: &Settings) -> bool {
    settings.mandatory && !settings.standalone
}

/// Maintains our records and watches those of others until it is dropped.
pub(crate) async fn run(shared: Arc<Shared>, scope: Scope, identity: String) {
    let settings = shared.runtime.context.settings.read().peering.clone();
    if settings.standalone {
        return;
    }
    let pauses = Arc::new(Pauses::default());
    if settings.mandatory {
        pauses.set(&shared, "the peering resource", true);
    }
    let scope = scope_of(&scope, &settings);
    let plural = peering::plural(scope == Scope::Cluster);
    let resources = find(&shared, plural, settings.mandatory).await;
    if resources.is_empty() {
        return;
    }
    let mut snapshots = shared.snapshots.subscribe();
    if scope != Scope::Cluster {
        // The namespaces are unknown before the first discovery.
        let _gone = snapshots.wait_for(|known| *known != ClusterSnapshot::default()).await;
    }
    let mut places: BTreeMap<(String, Option<Arc<str>>), Joined> = BTreeMap::new();
    loop {
        let namespaces = served_namespaces(&scope, &snapshots.borrow_and_update());
        let object = shared.runtime.context.settings.read().peering.name.clone();
        for (place, mut tasks) in take_renamed(&mut places, &object) {
            tasks.shutdown().await;
            place.write(&Peer::removal([&*place.identity])).await;
            pauses.remove(&shared, &place.name());
        }
        places.retain(|(_, namespace), (place, _)| {
            let is_served = namespaces.contains(namespace);
            if !is_served {
                pauses.remove(&shared, &place.name());
            }
            is_served
        });
        for (resource, namespace) in resources
            .iter()
            .flat_map(|resource| namespaces.iter().map(move |namespace| (resource, namespace)))
        {
            places.entry((resource.to_string(), namespace.clone())).or_insert_with(|| {
                let place = Arc::new(Place {
                    shared: Arc::clone(&shared),
                    resource: Arc::clone(resource),
                    namespace: namespace.clone(),
                    object: object.clone(),
                    identity: identity.clone(),
                    pauses: Arc::clone(&pauses),
                });
                place.join(settings.mandatory)
            });
        }
        pauses.remove(&shared, "the peering resource");
        let changed = tokio::time::timeout(RENAMING_INTERVAL, snapshots.changed());
        if let Ok(Err(_)) = changed.await {
            return;
        }
    }
}

/// The scope of the peering objects: operators of namespaces can use that of the cluster.
fn scope_of(scope: &Scope, settings: &Settings) -> Scope {
    if settings.clusterwide { Scope::Cluster } else { scope.clone() }
}

/// Removes and returns the peering objects whose name is not the current one any more.
fn take_renamed<K: Ord + Clone>(places: &mut BTreeMap<K, Joined>, object: &str) -> Vec<Joined> {
    let is_renamed = |(_, (place, _)): &(&K, &Joined)| place.object != object;
    let keys: Vec<K> = places.iter().filter(is_renamed).map(|(key, _)| key.clone()).collect();
    keys.iter().filter_map(|key| places.remove(key)).collect()
}

/// The namespaces, each with a peering object; `None` means the whole cluster.
fn served_namespaces(scope: &Scope, snapshot: &ClusterSnapshot) -> BTreeSet<Option<Arc<str>>> {
    match scope {
        Scope::Cluster => BTreeSet::from([None]),
        Scope::Namespaces(_) => snapshot.namespaces.iter().cloned().map(Some).collect(),
    }
}

/// Removes our record at shutdown.
pub(crate) async fn leave(shared: &Shared, scope: &Scope, identity: &str) {
    let settings = shared.runtime.context.settings.read().peering.clone();
    if settings.standalone {
        return;
    }
    let scope = scope_of(scope, &settings);
    let plural = peering::plural(scope == Scope::Cluster);
    let namespaces = served_namespaces(&scope, &shared.snapshots.borrow());
    let resources = match discover(shared, plural).await {
        Ok(resources) => resources,
        Err(error) => {
            tracing::warn!(error, "could not remove our peering record; it will expire");
            return;
        }
    };
    for resource in resources {
        for namespace in &namespaces {
            let removal = Peer::removal([identity]);
            write(shared, &resource, namespace.as_deref(), &settings.name, &removal).await;
        }
    }
}

/// The peering resources; an outage says nothing about them, so this waits until it is over.
async fn find(shared: &Shared, plural: &str, mandatory: bool) -> Vec<Arc<Resource>> {
    let mut is_told = false;
    loop {
        match discover(shared, plural).await {
            Ok(found) if !found.is_empty() || !mandatory => return found,
            Ok(_) => {
                let resource = plural;
                tracing::warn!(resource, "the peering resource does not exist; waiting for it");
                tokio::time::sleep(PATIENCE).await;
            }
            Err(error) => {
                if !std::mem::replace(&mut is_told, true) {
                    let resource = plural;
                    tracing::warn!(
                        resource,
                        error,
                        "could not look for the peering resource; retrying"
                    );
                }
                tokio::time::sleep(OUTAGE_PATIENCE).await;
            }
        }
    }
}

/// The existing peering resources; an error if that is unknown.
async fn discover(shared: &Shared, plural: &str) -> Result<Vec<Arc<Resource>>, String> {
    let version = |group: &str| (group.to_owned(), VERSION.to_owned());
    let discovered = shared.cluster.discover_versions(&GROUPS.map(version).into()).await;
    let discovered = discovered.map_err(|error| error.report())?;
    if let Some(unavailable) = discovered.unavailable.first() {
        return Err(format!("{unavailable} is unavailable"));
    }
    let is_it = |it: &Resource| it.plural == plural && it.version == VERSION;
    Ok(discovered.resources.into_iter().filter(is_it).map(Arc::new).collect())
}

/// Writes records. Returns whether the peering object exists.
async fn write(
    shared: &Shared,
    resource: &Resource,
    namespace: Option<&str>,
    name: &str,
    patch: &Value,
) -> bool {
    let subresource = resource.subresources.contains("status").then_some("status");
    let target = Target { resource, namespace, name, subresource };
    let content = PatchContent::Merge(patch.to_string().into());
    match shared.cluster.unfenced().patch(target, content, Urgency::Urgent).await {
        Ok(_) => true,
        Err(error) => {
            if error.failure != Failure::NotFound && !error.is_unreached() {
                tracing::warn!(%error, "could not write the peering record");
            }
            false
        }
    }
}

impl Pauses {
    fn set(&self, shared: &Shared, who: &str, is_paused: bool) {
        let mut pauses = self.0.lock();
        pauses.insert(who.to_owned(), is_paused);
        let is_any = pauses.values().any(|is_paused| *is_paused);
        shared.notices.send(Notice::Paused(is_any));
    }

    fn remove(&self, shared: &Shared, who: &str) {
        let mut pauses = self.0.lock();
        pauses.remove(who);
        let is_any = pauses.values().any(|is_paused| *is_paused);
        shared.notices.send(Notice::Paused(is_any));
    }

    fn get(&self, who: &str) -> bool {
        self.0.lock().get(who).copied().unwrap_or(false)
    }
}

impl Place {
    /// Starts to maintain our record and to watch those of others; initially paused if required.
    fn join(self: Arc<Self>, is_mandatory: bool) -> Joined {
        if is_mandatory {
            self.pauses.set(&self.shared, &self.name(), true);
        }
        let mut tasks = JoinSet::new();
        tasks.spawn(Arc::clone(&self).keep_alive());
        tasks.spawn(Arc::clone(&self).watch());
        (self, tasks)
    }

    fn name(&self) -> String {
        format!("{}@{}", self.resource, self.namespace.as_deref().unwrap_or("cluster"))
    }

    fn settings(&self) -> Settings {
        self.shared.runtime.context.settings.read().peering.clone()
    }

    async fn keep_alive(self: Arc<Self>) {
        loop {
            let settings = self.settings();
            let lifetime = settings.lifetime.as_secs().max(1);
            let peer = Peer {
                identity: self.identity.clone(),
                priority: settings.priority,
                lifetime: Duration::from_secs(lifetime),
                lastseen: self.shared.runtime.clock.now(),
            };
            let exists = self.write(&peer.announcement()).await;
            if !exists || !settings.stealth {
                let word = if exists { "ok" } else { "not found" };
                tracing::debug!(place = self.name(), "Keep-alive in '{}': {word}.", self.object);
            }
            let rest = lifetime.saturating_sub(fastrand::u64(5..=10)).max(1);
            tokio::time::sleep(Duration::from_secs(rest)).await;
        }
    }

    async fn write(&self, patch: &Value) -> bool {
        let namespace = self.namespace.as_deref();
        write(&self.shared, &self.resource, namespace, &self.object, patch).await
    }

    async fn watch(self: Arc<Self>) {
        let name = self.object.clone();
        let collection = Collection {
            resource: Arc::clone(&self.resource),
            namespace: self.namespace.clone(),
            label_selector: None,
            field_selector: Some(format!("metadata.name={name}")),
            shard_selector: None,
            part: None,
            limits: WatchLimits::default(),
            managed_fields: false,
            backlog: None,
        };
        let (sink, mut observations) = mpsc::channel(4);
        let watcher = Watcher::new(self.shared.cluster.clone(), collection, (), sink);
        let following = tokio::spawn(watcher.run());
        let _guard = tokio_util::task::AbortOnDropHandle::new(following);
        let mut watched = Watched::begin(&self, name);
        loop {
            let until = match &watched.newest {
                Some(object) => self.judge(object).await,
                None => None,
            };
            let wait = until.map(|until| {
                let rest = until.duration_since(self.shared.runtime.clock.now());
                Duration::try_from(rest).unwrap_or_default()
            });
            tokio::select! {
                batch = observations.recv() => {
                    let Some(((), batch)) = batch else { return };
                    let was_there = watched.newest.is_some();
                    watched.take_in(batch);
                    if was_there && watched.newest.is_none() {
                        self.go_on_alone();
                    }
                }
                () = sleep_or_wait(wait) => {}
            }
        }
    }

    /// Without the peering object there are no peers; only mandatory peering waits for it.
    fn go_on_alone(&self) {
        if self.settings().mandatory {
            return;
        }
        if self.pauses.get(&self.name()) {
            tracing::info!("Resuming operations, since the peering object is gone.");
        }
        self.pauses.set(&self.shared, &self.name(), false);
    }

    /// Pauses or resumes according to the records; returns when to check again.
    async fn judge(&self, object: &Object) -> Option<Timestamp> {
        let settings = self.settings();
        let now = self.shared.runtime.clock.now();
        let peers = Peer::read_all(object.value(), now);
        let standing = judge(&peers, &self.identity, settings.priority, now);
        let was_paused = self.pauses.get(&self.name());
        // Replicas that share the objects work side by side.
        let is_shared =
            !self.shared.runtime.context.settings.read().watching.shard_selectors.is_empty();
        let is_paused = match &standing.verdict {
            Verdict::Work => false,
            Verdict::Yield { .. } => true,
            Verdict::Conflict { .. } => !is_shared,
        };
        match &standing.verdict {
            Verdict::Yield { to } if !was_paused => {
                tracing::info!("Pausing operations in favour of {to:?}.");
            }
            Verdict::Conflict { with } if !is_shared => {
                tracing::warn!("Possibly conflicting operators with the same priority: {with:?}.");
                if !was_paused {
                    let peers: Vec<&str> = peers.iter().map(|peer| &*peer.identity).collect();
                    tracing::warn!("Pausing all operators, including self: {peers:?}");
                }
            }
            _ if was_paused && !is_paused => {
                tracing::info!("Resuming operations after the pause.");
            }
            _ => {}
        }
        self.pauses.set(&self.shared, &self.name(), is_paused);
        if !standing.dead.is_empty() {
            self.write(&Peer::removal(standing.dead.iter().map(String::as_str))).await;
        }
        standing.recheck_at
    }
}

impl Watched {
    fn begin(place: &Place, name: String) -> Self {
        let board = Arc::clone(&place.shared.runtime.board);
        let status = WatchStatus {
            resource: place.resource.to_string(),
            namespace: place.namespace.as_deref().map(str::to_owned),
            ..WatchStatus::default()
        };
        let id = board.add_watch(Purpose::Peering, status);
        Self { board, id, name, newest: None, is_in_list: false, is_failing: false }
    }

    fn take_in(&mut self, batch: Batch) {
        self.board.listen(self.id, &batch);
        for observation in batch {
            self.is_failing &= matches!(
                observation,
                Observation::ListBegun { .. } | Observation::Disturbed { .. }
            );
            match observation {
                Observation::ListBegun { .. } => self.is_in_list = false,
                Observation::Listed(object) if object.name() == self.name => {
                    self.newest = Some(object);
                    self.is_in_list = true;
                }
                Observation::ListEnded { .. } if !self.is_in_list => self.newest = None,
                Observation::Changed(kind, object) if object.name() == self.name => {
                    self.newest = (kind != ChangeKind::Deleted).then_some(object);
                }
                Observation::Disturbed { error, .. } => self.log_failure(&error),
                _ => {}
            }
        }
    }

    /// Failures in a row are logged once.
    fn log_failure(&mut self, error: &RequestError) {
        if error.is_unreached() || std::mem::replace(&mut self.is_failing, true) {
            return;
        }
        let error = error.report();
        tracing::warn!(
            error,
            "the watch of peers failed; other operators are not seen until it works"
        );
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.board.remove_watch(self.id);
    }
}

async fn sleep_or_wait(wait: Option<Duration>) {
    match wait {
        Some(wait) => tokio::time::sleep(wait).await,
        None => std::future::pending().await,
    }
}
