//! Persistence: every change is on disk before it becomes visible.
//!
//! Responsible for the store file in a data directory: creating it, opening it, and the errors of
//! both. `archive` manages the database in it, `journal` writes to it. Does not know what objects
//! mean.

mod archive;
#[cfg(test)]
mod crash_tests;
mod disk;
#[cfg(test)]
mod history;
mod journal;
#[cfg(test)]
mod simulation;

use std::fs::File;
use std::path::{Path, PathBuf};

pub(crate) use archive::Archive;
use archive::{FORMAT, ReadError};
pub(crate) use disk::Disk;
pub(crate) use journal::Journal;

use crate::store::{Restored, Snapshot};

/// The file in the data directory.
const FILE: &str = "world.redb";
/// Its name until it is complete.
const NEW_FILE: &str = "world.redb.new";

/// Why a data directory cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataDirError {
    /// The directory cannot be created or accessed.
    #[error("could not use the data directory {}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// The file is locked, damaged or not a store file.
    #[error("could not open {}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: Box<redb::Error>,
    },
    /// The file is empty, or missing while the rest of the directory exists.
    #[error("{} is {problem}: restore it, or remove the whole data directory to start again", path.display())]
    Lost {
        /// The file.
        path: PathBuf,
        /// The problem with the file.
        problem: &'static str,
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

/// Reads the store in a directory; `None` if there is none yet.
///
/// `is_used` is whether other files show that there was a store.
pub(crate) fn open(
    directory: &Path,
    is_used: bool,
) -> Result<Option<(Archive, Restored)>, DataDirError> {
    std::fs::create_dir_all(directory).map_err(|source| unusable(directory, source))?;
    let path = directory.join(FILE);
    match std::fs::symlink_metadata(&path) {
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return if is_used {
                Err(DataDirError::Lost { path, problem: "missing" })
            } else {
                Ok(None)
            };
        }
        Err(error) => return Err(unusable(directory, error)),
    }
    let disk = Disk::open(&path, false).map_err(|error| broken(&path, error))?;
    Archive::open(disk).map(Some).map_err(|error| unreadable(path, error))
}

/// Creates the file from a snapshot, atomically.
pub(crate) fn create(directory: &Path, snapshot: &Snapshot) -> Result<Archive, DataDirError> {
    let (path, new) = (directory.join(FILE), directory.join(NEW_FILE));
    let disk = Disk::open(&new, true).map_err(|error| broken(&new, error))?;
    let archive = Archive::create(disk, snapshot).map_err(|error| broken(&new, error))?;
    std::fs::rename(&new, &path)
        .and_then(|()| File::open(directory)?.sync_all())
        .map_err(|source| unusable(directory, source))?;
    Ok(archive)
}

/// Creates a store on a disk that is not a file.
#[cfg(test)]
pub(crate) fn create_on(disk: Disk, snapshot: &Snapshot) -> Result<Archive, DataDirError> {
    Archive::create(disk, snapshot).map_err(|error| broken(Path::new(FILE), error))
}

/// Reads the store on a disk that is not a file.
#[cfg(test)]
pub(crate) fn open_on(disk: Disk) -> Result<(Archive, Restored), DataDirError> {
    Archive::open(disk).map_err(|error| unreadable(FILE.into(), error))
}

fn unusable(directory: &Path, source: std::io::Error) -> DataDirError {
    DataDirError::Directory { path: directory.to_owned(), source }
}

fn broken(path: &Path, error: redb::Error) -> DataDirError {
    DataDirError::Open { path: path.to_owned(), source: Box::new(error) }
}

fn unreadable(path: PathBuf, error: ReadError) -> DataDirError {
    match error {
        ReadError::Database(error) => broken(&path, error),
        ReadError::Empty => DataDirError::Lost { path, problem: "empty" },
        ReadError::Format(found) => DataDirError::Format { path, found },
        ReadError::Object { key, source } => DataDirError::Object { path, key, source },
    }
}

#[cfg(test)]
mod tests;
