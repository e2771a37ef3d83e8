//! The `kopf` command, and what every operator's own program shares with it.
//!
//! Owns the terminal: arguments, screens, error texts with hints, exit codes. Without any feature
//! there are only failures; `embedded` adds what `run --embedded` needs, `otlp` traces, `command` the
//! command.

#[cfg(feature = "command")]
mod command;
#[cfg(feature = "embedded")]
pub mod definitions;
pub mod failure;
#[cfg(feature = "embedded")]
pub mod kubeconfig;
#[cfg(feature = "embedded")]
pub mod load;
#[cfg(feature = "embedded")]
pub mod manifests;
#[cfg(feature = "otlp")]
pub mod telemetry;

#[cfg(feature = "command")]
pub use command::{main, main_with};
