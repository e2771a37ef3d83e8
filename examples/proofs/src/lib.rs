//! Proofs about the numbered examples: all of it is in `tests`.
//!
//! Every example lives through a scenario three times: undisturbed, under torture, and with exactly
//! the rights that `manifests` would give it, of which none is superfluous.
