//! Faster JSON than `serde_json` alone, and JSON in Kopf's format.
//!
//! Everything received from a watch is scanned here without building trees, and everything sent is
//! written here. `cargo run --release -p benches --bin hot-paths` measures the cost. A faster
//! parser would not help: most objects are never parsed completely.

pub mod bytes;
pub(crate) mod deep;
pub(crate) mod plain;
pub(crate) mod raw;
pub(crate) mod text;
