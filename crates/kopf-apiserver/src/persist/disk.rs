//! The file of a data directory, as the database sees it.
//!
//! The file is opened and locked once for the lifetime of the server: after a failure, the database
//! is opened again on the same file. Tests use other disks.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;

use redb::StorageBackend;
use redb::backends::{FileBackend, InMemoryBackend};

/// Only the owner can read and write: the file contains Secrets.
const PRIVATE: u32 = 0o600;
/// How much is read or written at once; small, so that holes are detected.
const CHUNK: usize = 4096;

/// A disk that outlives the database on it.
#[derive(Debug, Clone)]
pub(crate) struct Disk(Arc<dyn StorageBackend>);

impl Disk {
    /// A disk for tests.
    #[cfg(test)]
    pub(crate) fn of(backend: impl StorageBackend) -> Self {
        Self(Arc::new(backend))
    }

    /// Opens a file and locks it; with `create`, an empty one that only the owner can read.
    pub(super) fn open(path: &Path, create: bool) -> Result<Self, redb::Error> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(create).truncate(false).mode(PRIVATE);
        let file = options.open(path)?;
        lock(&file)?;
        if create {
            // Only after locking: another server may be filling it.
            file.set_len(0)?;
        }
        Ok(Self(Arc::new(FileBackend::new(file)?)))
    }

    /// Whether it is empty.
    pub(super) fn is_empty(&self) -> io::Result<bool> {
        Ok(self.0.len()? == 0)
    }

    /// A copy of its content.
    pub(super) fn copy(&self) -> io::Result<InMemoryBackend> {
        let length = self.0.len()?;
        let copy = InMemoryBackend::new();
        copy.set_len(length)?;
        self.each_chunk(|offset, chunk| copy.write(offset, chunk))?;
        Ok(copy)
    }

    /// Rewrites everything that can be read, and makes it durable.
    ///
    /// After a failed sync, the system may mark pages as clean that never reached the disk. The
    /// database's checksums verify the content afterwards.
    pub(super) fn write_back(&self) -> io::Result<()> {
        self.each_chunk(|offset, chunk| self.0.write(offset, chunk))?;
        self.0.sync_data()
    }

    /// Calls `each` with every chunk that is not all zeros: holes stay holes, as the disk may be
    /// full.
    fn each_chunk(&self, each: impl Fn(u64, &[u8]) -> io::Result<()>) -> io::Result<()> {
        let length = self.0.len()?;
        let mut buffer = vec![0; CHUNK];
        let mut offset = 0;
        while offset < length {
            let size = CHUNK.min(usize::try_from(length - offset).unwrap_or(CHUNK));
            let chunk = &mut buffer[..size];
            self.0.read(offset, chunk)?;
            if chunk.iter().any(|byte| *byte != 0) {
                each(offset, chunk)?;
            }
            offset += size as u64;
        }
        Ok(())
    }
}

fn lock(file: &File) -> Result<(), redb::Error> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(std::fs::TryLockError::WouldBlock) => Err(redb::Error::DatabaseAlreadyOpen),
        Err(std::fs::TryLockError::Error(error)) => Err(error.into()),
    }
}

/// The database does not control the lock and the lifetime of the file.
impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write(offset, data)
    }
}
