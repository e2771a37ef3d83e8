//! Shared by the tools of this repository: steps, builds, paths, kubeconfigs, an HTTP client, a
//! cluster.
//!
//! Knows nothing about what is tested or measured. Used by `xtask`, `tools/fidelity` and
//! `benches/measure`; never by a product crate.

#![expect(clippy::missing_errors_doc, reason = "errors of tools end the program")]

pub mod build;
pub mod cluster;
pub mod environment;
pub mod http;
pub mod kubeconfig;
pub mod steps;
