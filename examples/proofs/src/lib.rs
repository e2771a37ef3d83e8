//! Scenarios for the examples, all of them in `tests`.
//!
//! Every example runs through a scenario four times: undisturbed, under torture, as a process that
//! is killed, and with exactly the rights that `manifests` would give it, each of which must be
//! needed.

pub mod examples;
