//! Exports traces to a collector, behind the feature `otlp`. The Python package has the same
//! feature.

#[cfg(test)]
use kopf_cli::telemetry::PATIENCE;
pub use kopf_cli::telemetry::{Telemetry, TelemetryError};

#[cfg(test)]
mod tests;
