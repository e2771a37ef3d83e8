//! The random start of fingerprints.

use std::hash::{BuildHasher as _, RandomState};

use foldhash::SharedSeed;
use foldhash::quality::{FoldHasher, SeedableRandomState};

/// What fingerprints begin with: random, so that no one can construct a change with the same one.
///
/// Everything that comes in is hashed, and the standard library's hasher would take several times
/// as long for it.
#[derive(Clone, Debug)]
pub(crate) struct Seed(SeedableRandomState);

impl Default for Seed {
    fn default() -> Self {
        // From the system, which is better than what the hasher would find itself.
        let random = RandomState::new().hash_one(());
        Self(SeedableRandomState::with_seed(random, SharedSeed::global_random()))
    }
}

impl Seed {
    pub(crate) fn build_hasher(&self) -> FoldHasher<'static> {
        self.0.build_hasher()
    }
}
