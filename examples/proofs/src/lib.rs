//! Proofs about the examples: all of it is in `tests`.
//!
//! Every example lives through a scenario four times: undisturbed, under torture, as a process that
//! is killed, and with exactly the rights that `manifests` would give it, of which none is
//! superfluous.

pub mod examples;
