//! The `kopf` command, and the parts that every operator's own program shares with it.
//!
//! Responsible for the terminal: arguments, screens, error messages with hints, exit codes. Without
//! features there are only failures; `embedded` adds what `run --embedded` needs, `otlp` adds
//! traces, `command` the command itself.

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
