//! A world that survives: every acknowledged write is on disk before its answer.
//!
//! One thread writes: it takes every change that waits, commits them in one transaction and then
//! tells how far it got. The store hands over changes in order; requests wait for their version.
//! Refuses to know what objects mean.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc;

use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use serde::de::IgnoredAny;
use serde_json::Value;
use tokio::sync::watch;

use crate::apply::json_text;
use crate::store::{Event, EventKind, ObjectKey, Restored, Store};

const OBJECTS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("objects");
const FACTS: TableDefinition<'_, &str, u64> = TableDefinition::new("facts");
/// The layout of the tables; other numbers are refused.
const FORMAT: u64 = 1;
/// The file in the data directory.
const FILE: &str = "world.redb";
/// How many changes one transaction takes at most.
const GROUP_MAX: usize = 4096;

/// Why a data directory cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataDirError {
    /// The directory cannot be made or entered.
    #[error("could not use the data directory {}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// The file is locked, broken or not ours.
    #[error("could not open {}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: Box<redb::Error>,
    },
    /// The file was written by another version of this server.
    #[error("{} has format {found}, this server reads format {FORMAT}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// The number in the file.
        found: u64,
    },
    /// The secrets in the directory cannot be read or written.
    #[error("could not use the identity in {}", path.display())]
    Identity {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// An object in the file cannot be read.
    #[error("could not read {key} in {}", path.display())]
    Object {
        /// The file.
        path: PathBuf,
        /// The object.
        key: String,
        /// The reason.
        source: serde_json::Error,
    },
}

/// How far the writer got.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Progress {
    /// Every change up to this version is safe.
    Safe(u64),
    /// Nothing more can be written.
    Failed(String),
}

struct Record {
    table: Arc<str>,
    event: Arc<Event>,
}

/// The disk behind one store.
pub(crate) struct Journal {
    progress: watch::Receiver<Progress>,
}

impl Journal {
    /// Resolves when the change with this version is on disk.
    pub(crate) async fn wait_for(&self, version: u64) -> Result<(), String> {
        let mut progress = self.progress.clone();
        let outcome = progress
            .wait_for(|progress| match progress {
                Progress::Safe(safe) => *safe >= version,
                Progress::Failed(_) => true,
            })
            .await
            .map(|progress| progress.clone());
        match outcome {
            Ok(Progress::Safe(_)) => Ok(()),
            Ok(Progress::Failed(reason)) => Err(reason),
            Err(_) => Err("the journal has ended".to_owned()),
        }
    }
}

/// Opens (or makes) the file in a directory and reads what is in it; none if it is new.
pub(crate) fn open(directory: &Path) -> Result<(Database, Option<Restored>), DataDirError> {
    std::fs::create_dir_all(directory)
        .map_err(|source| DataDirError::Directory { path: directory.to_owned(), source })?;
    let path = directory.join(FILE);
    let failed =
        |error: redb::Error| DataDirError::Open { path: path.clone(), source: Box::new(error) };
    make_private(&path)
        .map_err(|source| DataDirError::Directory { path: directory.to_owned(), source })?;
    let database = Database::create(&path).map_err(|error| failed(error.into()))?;
    let restored = read(&database, &path, &failed)?;
    Ok((database, restored))
}

/// Makes an absent file that only its owner can read: it will hold Secrets.
fn make_private(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    let options = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    match options {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

fn read(
    database: &Database,
    path: &Path,
    failed: &dyn Fn(redb::Error) -> DataDirError,
) -> Result<Option<Restored>, DataDirError> {
    let transaction = database.begin_read().map_err(|error| failed(error.into()))?;
    let facts = match transaction.open_table(FACTS) {
        Ok(facts) => facts,
        Err(redb::TableError::TableDoesNotExist(_)) => return Ok(None),
        Err(error) => return Err(failed(error.into())),
    };
    let fact = |name: &str| -> Result<u64, DataDirError> {
        let value = facts.get(name).map_err(|error| failed(error.into()))?;
        Ok(value.map_or(0, |value| value.value()))
    };
    let found = fact("format")?;
    if found != FORMAT {
        return Err(DataDirError::Format { path: path.to_owned(), found });
    }
    let mut restored = Restored { resource_version: fact("resourceVersion")?, objects: Vec::new() };
    let objects = match transaction.open_table(OBJECTS) {
        Ok(objects) => objects,
        Err(redb::TableError::TableDoesNotExist(_)) => return Ok(Some(restored)),
        Err(error) => return Err(failed(error.into())),
    };
    for entry in objects.iter().map_err(|error| failed(error.into()))? {
        let (key, value) = entry.map_err(|error| failed(error.into()))?;
        let key = key.value();
        let object = decode(value.value()).map_err(|source| DataDirError::Object {
            path: path.to_owned(),
            key: key.replace('\0', "/"),
            source,
        })?;
        let mut parts = key.splitn(3, '\0');
        let mut part = || parts.next().unwrap_or_default().to_owned();
        let (table, namespace, name) = (part(), part(), part());
        restored.objects.push((table.into(), ObjectKey::new(&namespace, &name), object));
    }
    Ok(Some(restored))
}

/// The tree of a stored text, however deep: bodies may nest deeper than the general decoder reads.
fn decode(text: &[u8]) -> Result<Value, serde_json::Error> {
    serde_json::from_slice(text).or_else(|_| {
        // Skipping has no such limit, so it fails only for texts that are broken.
        serde_json::from_slice::<IgnoredAny>(text).map(|_| json_text::tree(text))
    })
}

/// Writes every later change of the store, after everything that is in it now.
pub(crate) fn start(database: Database, store: &Store, is_new: bool) -> Journal {
    let (sender, receiver) = mpsc::channel::<Record>();
    let snapshot = store.observe(Box::new(move |table, event| {
        // The receiver is gone only when writing has failed; waiting requests are told so.
        let _ = sender.send(Record { table: Arc::clone(table), event: Arc::clone(event) });
    }));
    let start = if is_new { 0 } else { snapshot.resource_version() };
    let (progress, watcher) = watch::channel(Progress::Safe(start));
    let initial = is_new.then_some(snapshot);
    std::thread::Builder::new()
        .name("kopf-journal".to_owned())
        .spawn(move || {
            if let Err(error) = write_all(&database, initial, &receiver, &progress) {
                tracing::error!(%error, "could not write to the data directory");
                progress.send_replace(Progress::Failed(error.to_string()));
            }
        })
        .expect("the system can start one more thread");
    Journal { progress: watcher }
}

fn write_all(
    database: &Database,
    initial: Option<crate::store::Snapshot>,
    receiver: &mpsc::Receiver<Record>,
    progress: &watch::Sender<Progress>,
) -> Result<(), redb::Error> {
    if let Some(snapshot) = initial {
        write_snapshot(database, &snapshot)?;
        progress.send_replace(Progress::Safe(snapshot.resource_version()));
    }
    while let Ok(first) = receiver.recv() {
        let mut group = vec![first];
        group.extend(receiver.try_iter().take(GROUP_MAX - 1));
        let newest = write_group(database, &group)?;
        progress.send_replace(Progress::Safe(newest));
    }
    Ok(())
}

fn write_snapshot(
    database: &Database,
    snapshot: &crate::store::Snapshot,
) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    {
        let mut objects = transaction.open_table(OBJECTS)?;
        for (table, entries) in snapshot.tables() {
            for (key, stored) in entries.iter() {
                let key = disk_key(table, &key.namespace, &key.name);
                objects.insert(key.as_str(), stored.encoded().as_ref())?;
            }
        }
        let mut facts = transaction.open_table(FACTS)?;
        facts.insert("format", FORMAT)?;
        facts.insert("resourceVersion", snapshot.resource_version())?;
    }
    transaction.commit()?;
    Ok(())
}

/// Writes a group of changes in one transaction; returns the newest version in it.
fn write_group(database: &Database, group: &[Record]) -> Result<u64, redb::Error> {
    let transaction = database.begin_write()?;
    let mut newest = 0;
    {
        let mut objects = transaction.open_table(OBJECTS)?;
        for Record { table, event } in group {
            let object = &event.object;
            let key = disk_key(table, &event.key.namespace, &event.key.name);
            match event.kind {
                EventKind::Deleted => {
                    objects.remove(key.as_str())?;
                }
                EventKind::Added | EventKind::Modified => {
                    objects.insert(key.as_str(), object.encoded().as_ref())?;
                }
            }
            newest = event.resource_version();
        }
        transaction.open_table(FACTS)?.insert("resourceVersion", newest)?;
    }
    transaction.commit()?;
    Ok(newest)
}

fn disk_key(table: &str, namespace: &str, name: &str) -> String {
    format!("{table}\0{namespace}\0{name}")
}

#[cfg(test)]
mod tests;
