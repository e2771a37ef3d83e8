//! The random seed of fingerprints.

use std::hash::{BuildHasher as _, RandomState};

use foldhash::SharedSeed;
use foldhash::quality::{FoldHasher, SeedableRandomState};

/// The seed of fingerprints: random, so that nobody can construct a change with the same
/// fingerprint.
///
/// Everything received is hashed, and the standard library's hasher would be several times slower.
#[derive(Clone, Debug)]
pub(crate) struct Seed(SeedableRandomState);

impl Default for Seed {
    fn default() -> Self {
        // From the system, which is more random than the hasher's own seed.
        let random = RandomState::new().hash_one(());
        Self(SeedableRandomState::with_seed(random, SharedSeed::global_random()))
    }
}

impl Seed {
    pub(crate) fn build_hasher(&self) -> FoldHasher<'static> {
        self.0.build_hasher()
    }
}
