//! The source of uids, generated names, addresses and ports; injectable for deterministic tests.

use std::sync::atomic::{AtomicU64, Ordering};

/// The source of uids and generated name suffixes.
pub trait IdSource: Send + Sync + 'static {
    /// Returns a new uid in UUID form.
    fn uid(&self) -> String;
    /// Returns a new number for name suffixes, addresses and ports.
    fn number(&self) -> u64;

    /// Returns five characters for `generateName`, from upstream's alphabet.
    fn suffix(&self) -> String {
        const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        let mut number = self.number();
        let mut suffix = String::with_capacity(5);
        for _ in 0..5 {
            let index = (number % ALPHABET.len() as u64) as usize;
            suffix.push(char::from(ALPHABET[index]));
            number /= ALPHABET.len() as u64;
        }
        suffix
    }
}

/// Sequential ids, for snapshot tests.
#[derive(Debug, Default)]
pub struct SequentialIds(AtomicU64);

impl IdSource for SequentialIds {
    fn uid(&self) -> String {
        let number = self.0.fetch_add(1, Ordering::Relaxed) + 1;
        format!("00000000-0000-4000-8000-{number:012x}")
    }

    fn number(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }
}
