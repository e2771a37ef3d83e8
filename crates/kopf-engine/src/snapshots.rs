//! The file with the knowledge about objects, read at the start and written periodically.
//!
//! `kopf-core` decides about its content. A file that cannot be used is ignored with one log line;
//! a file that cannot be written is reported, and the operator works without it.

use std::collections::{BTreeMap, HashMap};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kopf_client::{Cluster, Collection};
use kopf_core::settings::{LeadershipMode, Settings};
use kopf_core::snapshot::{Section, SectionKey, Snapshot, decode, encode};
use kopf_model::Resource;
use parking_lot::Mutex;
use tokio::time::Instant;

/// The file with the knowledge about objects.
pub(crate) struct Snapshots {
    file: PathBuf,
    interval: Duration,
    /// The settings at the start: how state is stored on objects does not change while the operator
    /// runs.
    settings: Settings,
    server: String,
    /// The schemas of group versions before any object was seen.
    schemas: BTreeMap<String, String>,
    /// What was read and is not used yet.
    read: Mutex<HashMap<SectionKey, Section>>,
    saved_at: Mutex<Instant>,
    is_writing: AtomicBool,
    is_failing: AtomicBool,
}

impl Snapshots {
    /// Reads the file from the settings; `None` if the operator does not use it.
    pub(crate) async fn open(settings: &Settings, cluster: &Cluster) -> Option<Arc<Self>> {
        let file = settings.snapshots.file.clone()?;
        if settings.leadership.mode != LeadershipMode::Alone {
            let why = "other replicas may have acted on the objects";
            tracing::info!(file = %file.display(), "snapshots are not used with replicas: {why}");
            return None;
        }
        let schemas = match kopf_client::schema_hashes(cluster).await {
            Ok(schemas) => schemas,
            Err(error) => {
                let error = error.report();
                tracing::warn!(
                    error,
                    "snapshots are not used: the server does not list its schemas"
                );
                return None;
            }
        };
        // Without an address, the objects identify the server.
        let server = cluster.address().await.ok().flatten().unwrap_or_default();
        let path = file.clone();
        let read = tokio::task::spawn_blocking(move || read(&path)).await;
        let read = read.unwrap_or(Ok(Snapshot::default())).unwrap_or_else(|error| {
            tracing::warn!(file = %file.display(), %error, "the snapshot is ignored");
            Snapshot::default()
        });
        let read = read.sections.into_iter().map(|section| (section.key.clone(), section));
        Some(Arc::new(Self {
            interval: settings.snapshots.interval,
            settings: settings.clone(),
            server,
            schemas,
            read: Mutex::new(read.collect()),
            saved_at: Mutex::new(Instant::now()),
            is_writing: AtomicBool::new(false),
            is_failing: AtomicBool::new(false),
            file,
        }))
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The key under which a watch is remembered; `None` if the schema of its resource was not
    /// known in time.
    pub(crate) fn key(&self, collection: &Collection, basis: &str) -> Option<SectionKey> {
        let text = |selector: &Option<String>| selector.clone().unwrap_or_default();
        Some(SectionKey {
            server: self.server.clone(),
            schema: self.schemas.get(&group_version(&collection.resource))?.clone(),
            resource: collection.resource.to_string(),
            namespace: collection.namespace.as_deref().unwrap_or_default().to_owned(),
            selectors: [
                text(&collection.label_selector),
                text(&collection.field_selector),
                text(&collection.shard_selector),
            ],
            basis: basis.to_owned(),
        })
    }

    /// The remembered data of a watch; returned only once.
    pub(crate) fn take(&self, key: &SectionKey) -> Option<Section> {
        let section = self.read.lock().remove(key)?;
        section.is_cheaper_than_list().then_some(section)
    }

    /// Whether it is time to write, and no write is running.
    pub(crate) fn is_due(&self) -> bool {
        self.saved_at.lock().elapsed() >= self.interval && !self.is_writing.load(Ordering::Acquire)
    }

    /// Writes in the background.
    pub(crate) fn save(self: &Arc<Self>, snapshot: Snapshot) {
        *self.saved_at.lock() = Instant::now();
        self.is_writing.store(true, Ordering::Release);
        let this = Arc::clone(self);
        tokio::task::spawn_blocking(move || {
            this.write(&snapshot);
            this.is_writing.store(false, Ordering::Release);
        });
    }

    /// Writes, and waits until it is done.
    pub(crate) async fn save_last(self: Arc<Self>, snapshot: Snapshot) {
        // It ends early only if the runtime does.
        let _ = tokio::task::spawn_blocking(move || self.write(&snapshot)).await;
    }

    fn write(&self, snapshot: &Snapshot) {
        let file = self.file.display();
        match replace(&self.file, &encode(snapshot)) {
            Ok(()) => {
                self.is_failing.store(false, Ordering::Relaxed);
                let sections = snapshot.sections.len();
                tracing::debug!(%file, sections, "wrote the snapshot");
            }
            Err(error) if !self.is_failing.swap(true, Ordering::Relaxed) => {
                tracing::warn!(%file, %error, "the snapshot cannot be written");
            }
            Err(_) => {}
        }
    }
}

/// The name in the index of schemas.
fn group_version(resource: &Resource) -> String {
    match resource.group.as_str() {
        "" => format!("api/{}", resource.version),
        group => format!("apis/{group}/{}", resource.version),
    }
}

/// The content of the file; empty if it does not exist.
fn read(file: &Path) -> std::io::Result<Snapshot> {
    match std::fs::read(file) {
        Ok(bytes) => decode(&bytes).map_err(std::io::Error::other),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Snapshot::default()),
        Err(error) => Err(error),
    }
}

/// Replaces a file atomically: nobody ever reads a part of it, not even after a crash.
fn replace(file: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut temporary = file.as_os_str().to_owned();
    temporary.push(".new");
    let temporary = PathBuf::from(temporary);
    let mut written = std::fs::File::create(&temporary)?;
    written.write_all(bytes)?;
    written.sync_all()?;
    drop(written);
    std::fs::rename(&temporary, file)
}

#[cfg(test)]
mod tests;
