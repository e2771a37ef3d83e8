//! A simulated disk for tests that fails only in the ways in which real disks fail.
//!
//! Writes are visible to reads at once, but are guaranteed to survive a crash only after a sync.
//! After a crash, an arbitrary part of the unsynced writes remains, some of it torn. A failed sync
//! loses writes that reads still show.

use std::io;
use std::sync::Arc;

use parking_lot::Mutex;
use redb::StorageBackend;

const PAGE: u64 = 4096;

/// The current fault of the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trouble {
    /// Pages that were never written cannot be written.
    Full,
    /// Nothing can be written.
    ReadOnly,
    /// Every second write fails half done.
    Torn,
    /// Nothing becomes durable.
    FailingSync,
}

#[derive(Debug)]
enum Operation {
    Write(u64, Vec<u8>),
    SetLength(u64),
}

#[derive(Debug)]
struct State {
    /// The content that reads return.
    visible: Vec<u8>,
    /// The content that survives every crash.
    durable: Vec<u8>,
    unsynced: Vec<Operation>,
    trouble: Option<Trouble>,
    /// How many operations are left before the machine crashes.
    life: Option<u32>,
    random: fastrand::Rng,
}

/// A disk that can fail and crash.
#[derive(Debug, Clone)]
pub(super) struct SimulatedDisk(Arc<Mutex<State>>);

impl SimulatedDisk {
    /// A disk with this content.
    pub(super) fn new(content: Vec<u8>, seed: u64) -> Self {
        Self(Arc::new(Mutex::new(State {
            visible: content.clone(),
            durable: content,
            unsynced: Vec::new(),
            trouble: None,
            life: None,
            random: fastrand::Rng::with_seed(seed),
        })))
    }

    /// Starts or ends a fault.
    pub(super) fn set_trouble(&self, trouble: Option<Trouble>) {
        self.0.lock().trouble = trouble;
    }

    /// Crashes the machine in the middle of a later operation.
    pub(super) fn crash_after(&self, operations: u32) {
        self.0.lock().life = Some(operations);
    }

    /// Whether the machine has crashed.
    pub(super) fn is_crashed(&self) -> bool {
        self.0.lock().life == Some(0)
    }

    /// The content after a restart.
    pub(super) fn after_crash(&self) -> Vec<u8> {
        let mut state = self.0.lock();
        state.life = Some(0);
        let mut content = state.durable.clone();
        let unsynced = std::mem::take(&mut state.unsynced);
        keep_some(&mut content, &unsynced, &mut state.random);
        content
    }
}

/// Applies an arbitrary part of the operations.
fn keep_some(content: &mut Vec<u8>, operations: &[Operation], random: &mut fastrand::Rng) {
    for operation in operations {
        match operation {
            _ if random.u8(0..3) == 0 => {}
            Operation::Write(offset, data) => {
                let kept =
                    if random.u8(0..4) == 0 { random.usize(0..=data.len()) } else { data.len() };
                write(content, *offset, &data[..kept]);
            }
            Operation::SetLength(length) => set_length(content, *length),
        }
    }
}

fn write(content: &mut Vec<u8>, offset: u64, data: &[u8]) {
    let offset = usize::try_from(offset).unwrap();
    if content.len() < offset + data.len() {
        content.resize(offset + data.len(), 0);
    }
    content[offset..offset + data.len()].copy_from_slice(data);
}

fn set_length(content: &mut Vec<u8>, length: u64) {
    content.resize(usize::try_from(length).unwrap(), 0);
}

fn failure(kind: io::ErrorKind) -> io::Error {
    io::Error::new(kind, "simulated")
}

impl State {
    fn live(&mut self) -> io::Result<()> {
        if let Some(life) = &mut self.life {
            *life = life.saturating_sub(1);
            if *life == 0 {
                return Err(failure(io::ErrorKind::Other));
            }
        }
        Ok(())
    }

    fn is_fresh(&self, offset: u64) -> bool {
        let page = usize::try_from(offset / PAGE * PAGE).unwrap();
        self.visible.iter().skip(page).take(PAGE as usize).all(|byte| *byte == 0)
    }
}

impl StorageBackend for SimulatedDisk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.lock().visible.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let state = self.0.lock();
        let offset = usize::try_from(offset).unwrap();
        let found = state.visible.get(offset..offset + out.len());
        out.copy_from_slice(found.ok_or_else(|| failure(io::ErrorKind::UnexpectedEof))?);
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        let mut state = self.0.lock();
        if state.trouble == Some(Trouble::ReadOnly) {
            return Err(failure(io::ErrorKind::ReadOnlyFilesystem));
        }
        set_length(&mut state.visible, length);
        state.unsynced.push(Operation::SetLength(length));
        state.live()
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.0.lock();
        state.live()?;
        let state = &mut *state;
        let unsynced = std::mem::take(&mut state.unsynced);
        if state.trouble == Some(Trouble::FailingSync) {
            keep_some(&mut state.durable, &unsynced, &mut state.random);
            return Err(failure(io::ErrorKind::Other));
        }
        for operation in unsynced {
            match operation {
                Operation::Write(offset, data) => write(&mut state.durable, offset, &data),
                Operation::SetLength(length) => set_length(&mut state.durable, length),
            }
        }
        state.live()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut state = self.0.lock();
        let trouble = state.trouble;
        let error = match trouble {
            Some(Trouble::ReadOnly) => Some((io::ErrorKind::ReadOnlyFilesystem, 0)),
            Some(Trouble::Full) if state.is_fresh(offset) => Some((io::ErrorKind::StorageFull, 0)),
            Some(Trouble::Torn) if state.random.bool() => {
                Some((io::ErrorKind::Other, state.random.usize(0..=data.len())))
            }
            _ => None,
        };
        let written = error.map_or(data.len(), |(_, written)| written);
        write(&mut state.visible, offset, &data[..written]);
        state.unsynced.push(Operation::Write(offset, data[..written].to_vec()));
        state.live()?;
        error.map_or(Ok(()), |(kind, _)| Err(failure(kind)))
    }
}
