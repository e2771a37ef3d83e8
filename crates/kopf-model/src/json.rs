//! JSON in less time than with `serde_json` alone, and JSON as Kopf writes it.
//!
//! Everything that comes in from a watch is scanned here without building trees, and everything that
//! goes out is written here. `cargo run --release -p benches --bin hot-paths` shows what it costs.
//! A faster parser would not help: most objects are never parsed as a whole.

pub mod bytes;
pub(crate) mod deep;
pub(crate) mod raw;
pub(crate) mod text;
