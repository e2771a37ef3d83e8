//! The database on a disk: reading it, adding batches to it, and repairing it after failures.
//!
//! After a failed write, the content of the disk is unknown. Before the next write, the database is
//! opened again, its checksums are verified, and the objects of the failed batch are restored to
//! their previous states. Does not know what objects mean.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use redb::backends::InMemoryBackend;
use redb::{Builder, Database, ReadTransaction, ReadableDatabase, ReadableTable, TableDefinition};
use serde::de::IgnoredAny;
use serde_json::Value;

use super::Disk;
use crate::apply::json_text;
use crate::store::pending::Accepted;
use crate::store::{EventKind, ObjectKey, Restored, Snapshot};
use crate::stored::Packed;

const OBJECTS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("objects");
const FACTS: TableDefinition<'_, &str, u64> = TableDefinition::new("facts");
/// The version of the table layout; others are rejected.
pub(super) const FORMAT: u64 = 1;

/// Why a store cannot be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReadError {
    /// The database is damaged.
    #[error(transparent)]
    Database(#[from] redb::Error),
    /// The database is empty.
    #[error("it is empty")]
    Empty,
    /// The store was written by another version of this server.
    #[error("it has format {0}")]
    Format(u64),
    /// An object cannot be read.
    #[error("{key} is broken")]
    Object { key: String, source: serde_json::Error },
}

/// A database that survives failures of its disk.
pub(crate) struct Archive {
    disk: Disk,
    // `None` after a failure.
    database: Option<Database>,
    // The version of the last batch that is known to be durable.
    saved: u64,
    // The batch to undo before anything else is written.
    suspect: Option<Suspect>,
}

/// A batch that may or may not be on the disk.
struct Suspect {
    /// The last version of the batch.
    newest: u64,
    /// The previous states of its objects.
    objects: Vec<(String, Option<Arc<Packed>>)>,
}

impl Archive {
    /// Creates a database on an empty disk.
    pub(super) fn create(disk: Disk, snapshot: &Snapshot) -> Result<Self, redb::Error> {
        let database = open_database(&disk)?;
        write_snapshot(&database, snapshot)?;
        let saved = snapshot.resource_version();
        Ok(Self { disk, database: Some(database), saved, suspect: None })
    }

    /// Opens the database on a disk and reads the store in it.
    pub(super) fn open(disk: Disk) -> Result<(Self, Restored), ReadError> {
        if disk.is_empty().map_err(redb::Error::from)? {
            return Err(ReadError::Empty);
        }
        // On a copy, since opening a damaged file changes it.
        let copy = disk.copy().map_err(redb::Error::from)?;
        let restored = guarded(move || verify_and_read(copy))?;
        let database = open_database(&disk)?;
        let saved = restored.resource_version;
        Ok((Self { disk, database: Some(database), saved, suspect: None }, restored))
    }

    /// Whether the last write failed.
    pub(crate) fn is_broken(&self) -> bool {
        self.database.is_none()
    }

    /// Makes a batch durable, after repairing the effects of an earlier failure.
    pub(crate) fn save(&mut self, changes: &[Accepted]) -> Result<(), redb::Error> {
        self.repair()?;
        let Some(database) = &self.database else { return Err(redb::Error::PreviousIo) };
        match guarded(|| write_changes(database, changes)) {
            Ok(newest) => {
                self.saved = newest;
                Ok(())
            }
            Err(error) => {
                self.suspect = suspect(changes);
                self.database = None;
                Err(error)
            }
        }
    }

    /// Opens the database again after a failure, and undoes the failed batch.
    pub(crate) fn repair(&mut self) -> Result<(), redb::Error> {
        if self.database.is_some() {
            return Ok(());
        }
        self.disk.write_back()?;
        let database = open_database(&self.disk)?;
        guarded(|| undo(&database, self.saved, self.suspect.as_ref()))?;
        self.database = Some(database);
        self.suspect = None;
        Ok(())
    }
}

/// Opens the database on a disk; damage that makes the library panic is also an error.
fn open_database(disk: &Disk) -> Result<Database, redb::Error> {
    guarded(|| Ok(Builder::new().create_with_backend(disk.clone())?))
}

fn verify_and_read(copy: InMemoryBackend) -> Result<Restored, ReadError> {
    let mut database = Builder::new().create_with_backend(copy).map_err(redb::Error::from)?;
    if !database.check_integrity().map_err(redb::Error::from)? {
        let problem = "checksums do not match".to_owned();
        return Err(redb::Error::Corrupted(problem).into());
    }
    read(&database)
}

fn guarded<T, E: From<redb::Error>>(action: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    catch_unwind(AssertUnwindSafe(action)).unwrap_or_else(|_| {
        let problem = "the library could not make sense of the file".to_owned();
        Err(redb::Error::Corrupted(problem).into())
    })
}

/// The batch to undo if these changes fail.
fn suspect(changes: &[Accepted]) -> Option<Suspect> {
    let mut seen = HashSet::new();
    let mut objects = Vec::new();
    for Accepted { table, event, .. } in changes {
        let key = disk_key(table, &event.key.namespace, &event.key.name);
        // Only the first change of an object has its state from before the batch.
        if seen.insert(key.clone()) {
            objects.push((key, event.previous.clone()));
        }
    }
    Some(Suspect { newest: changes.last()?.event.resource_version(), objects })
}

/// Restores a reopened database to the version `saved`.
fn undo(database: &Database, saved: u64, suspect: Option<&Suspect>) -> Result<(), redb::Error> {
    let found = facts(&database.begin_read()?)?.map_or(0, |facts| facts.resource_version);
    let newest = suspect.map_or(saved, |suspect| suspect.newest);
    if found != saved && found != newest {
        return Err(redb::Error::Corrupted(format!(
            "it has version {found} instead of {saved}; stop the server and restore the file"
        )));
    }
    let transaction = database.begin_write()?;
    {
        let mut objects = transaction.open_table(OBJECTS)?;
        for (key, state) in suspect.iter().flat_map(|suspect| &suspect.objects) {
            match state {
                Some(packed) => objects.insert(key.as_str(), packed.encoded().as_ref())?,
                None => objects.remove(key.as_str())?,
            };
        }
        transaction.open_table(FACTS)?.insert("resourceVersion", saved)?;
    }
    transaction.commit()?;
    Ok(())
}

struct Facts {
    format: u64,
    resource_version: u64,
}

fn facts(transaction: &ReadTransaction) -> Result<Option<Facts>, redb::Error> {
    let facts = match transaction.open_table(FACTS) {
        Ok(facts) => facts,
        Err(redb::TableError::TableDoesNotExist(_)) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let fact = |name: &str| -> Result<u64, redb::Error> {
        Ok(facts.get(name)?.map_or(0, |value| value.value()))
    };
    Ok(Some(Facts { format: fact("format")?, resource_version: fact("resourceVersion")? }))
}

fn read(database: &Database) -> Result<Restored, ReadError> {
    let transaction = database.begin_read().map_err(redb::Error::from)?;
    let facts = facts(&transaction)?.ok_or(ReadError::Empty)?;
    if facts.format != FORMAT {
        return Err(ReadError::Format(facts.format));
    }
    let mut restored = Restored { resource_version: facts.resource_version, objects: Vec::new() };
    let objects = match transaction.open_table(OBJECTS) {
        Ok(objects) => objects,
        Err(redb::TableError::TableDoesNotExist(_)) => return Err(ReadError::Empty),
        Err(error) => return Err(redb::Error::from(error).into()),
    };
    for entry in objects.iter().map_err(redb::Error::from)? {
        let (key, value) = entry.map_err(redb::Error::from)?;
        let key = key.value();
        let object = decode(value.value())
            .map_err(|source| ReadError::Object { key: key.replace('\0', "/"), source })?;
        let mut parts = key.splitn(3, '\0');
        let mut part = || parts.next().unwrap_or_default().to_owned();
        let (table, namespace, name) = (part(), part(), part());
        restored.objects.push((table.into(), ObjectKey::new(&namespace, &name), object));
    }
    Ok(restored)
}

/// Decodes a stored text of any depth: bodies may be deeper than the general decoder allows.
pub(super) fn decode(text: &[u8]) -> Result<Value, serde_json::Error> {
    serde_json::from_slice(text).or_else(|_| {
        // Skipping has no depth limit, so it fails only for invalid texts.
        serde_json::from_slice::<IgnoredAny>(text).map(|_| json_text::tree(text))
    })
}

fn write_snapshot(database: &Database, snapshot: &Snapshot) -> Result<(), redb::Error> {
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

/// Writes changes in one transaction; returns the newest version among them.
fn write_changes(database: &Database, changes: &[Accepted]) -> Result<u64, redb::Error> {
    let transaction = database.begin_write()?;
    let mut newest = 0;
    {
        let mut objects = transaction.open_table(OBJECTS)?;
        for Accepted { table, event, .. } in changes {
            let key = disk_key(table, &event.key.namespace, &event.key.name);
            match event.kind {
                EventKind::Deleted => {
                    objects.remove(key.as_str())?;
                }
                EventKind::Added | EventKind::Modified => {
                    objects.insert(key.as_str(), event.object.encoded().as_ref())?;
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
