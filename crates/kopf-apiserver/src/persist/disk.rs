//! The file of a data directory, as the database sees it.
//!
//! The file is opened and locked once, and stays so while the server lives: after a failure, the
//! database is opened again on the same file. Tests put other disks in its place.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;

use redb::StorageBackend;
use redb::backends::{FileBackend, InMemoryBackend};

/// Readable and writable by the owner alone: the file holds Secrets.
const PRIVATE: u32 = 0o600;
/// How much is read or written at once; small, so that holes are found.
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
            // Only now: another server may be about to fill it.
            file.set_len(0)?;
        }
        Ok(Self(Arc::new(FileBackend::new(file)?)))
    }

    /// Whether there is nothing on it.
    pub(super) fn is_empty(&self) -> io::Result<bool> {
        Ok(self.0.len()? == 0)
    }

    /// A copy of all that is on it.
    pub(super) fn copy(&self) -> io::Result<InMemoryBackend> {
        let length = self.0.len()?;
        let copy = InMemoryBackend::new();
        copy.set_len(length)?;
        self.each_chunk(|offset, chunk| copy.write(offset, chunk))?;
        Ok(copy)
    }

    /// Writes again what can be read, and makes it durable.
    ///
    /// After a failed sync, a system may take pages for clean that never reached the disk. What is
    /// read back is judged by the checksums of the database afterwards.
    pub(super) fn write_back(&self) -> io::Result<()> {
        self.each_chunk(|offset, chunk| self.0.write(offset, chunk))?;
        self.0.sync_data()
    }

    /// Calls `each` with everything that is not zero: holes stay holes, as a disk may be full.
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

/// Locks and the end of the file's use are not for the database to decide.
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
