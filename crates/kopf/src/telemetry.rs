//! Traces to a collector, behind the feature `otlp`; the Python package has the same ones.

#[cfg(test)]
use kopf_cli::telemetry::PATIENCE;
pub use kopf_cli::telemetry::{Telemetry, TelemetryError};

#[cfg(test)]
mod tests;
