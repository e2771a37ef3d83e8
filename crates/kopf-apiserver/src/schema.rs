//! Schemas of Kubernetes kinds and what can be asked of them.
//!
//! Pure code over `serde_json::Value`: no I/O, no clock, no knowledge of requests or of the store.
//! Built-in schemas come from the committed pack, those of custom resources from their
//! definitions; both become the same representation, [`ir::Schema`].

pub(crate) mod ir;
