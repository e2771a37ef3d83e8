//! Leases of `coordination.k8s.io/v1`, with the same fields and semantics as in client-go.
//!
//! Only the wire format. `kopf-core` decides what the records mean.

use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::temporal::DateTimePrinter;
use serde_json::{Map, Value, json};

use crate::record::parse_time;

/// The API group of Leases.
pub const GROUP: &str = "coordination.k8s.io";
/// The API version of Leases.
pub const VERSION: &str = "v1";
/// The label of the Lease that a leader holds; its value is the name of the Lease.
pub const LEADER_LABEL: &str = "kopf.dev/leader-of";
/// The maximum length of the value of a label.
pub const LABEL_MAX: usize = 63;

/// The `spec` of a Lease.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaseRecord {
    /// The holder of the Lease; empty if it was released.
    pub holder: String,
    /// How long others must not take it after a change; `None` if not specified.
    pub duration: Option<Duration>,
    /// When the holder acquired it, by the holder's clock. Never compared with other clocks.
    pub acquired: Option<Timestamp>,
    /// When the holder last renewed it, by the holder's clock. Never compared with other clocks.
    pub renewed: Option<Timestamp>,
    /// How often the holder has changed.
    pub transitions: u64,
}

impl LeaseRecord {
    /// Reads a Lease; missing fields are empty.
    #[must_use]
    pub fn read(body: &Value) -> Self {
        let field = |name: &str| body.get("spec").and_then(|spec| spec.get(name));
        let time = |name: &str| field(name).and_then(Value::as_str).and_then(parse_time);
        Self {
            holder: field("holderIdentity").and_then(Value::as_str).unwrap_or_default().to_owned(),
            duration: field("leaseDurationSeconds")
                .and_then(Value::as_u64)
                .map(Duration::from_secs),
            acquired: time("acquireTime"),
            renewed: time("renewTime"),
            transitions: field("leaseTransitions").and_then(Value::as_u64).unwrap_or(0),
        }
    }

    /// The `spec` of a Lease with this record.
    #[must_use]
    pub fn spec(&self) -> Value {
        let mut spec = Map::new();
        spec.insert("holderIdentity".into(), json!(self.holder));
        // Servers reject a duration of zero, and the field has whole seconds.
        let seconds = self.duration.map(|it| it.as_secs() + u64::from(it.subsec_nanos() > 0));
        spec.insert("leaseDurationSeconds".into(), json!(seconds.unwrap_or(1).max(1)));
        let times = [("acquireTime", self.acquired), ("renewTime", self.renewed)];
        for (name, time) in times {
            if let Some(time) = time {
                spec.insert(name.into(), json!(micro_time(time)));
            }
        }
        spec.insert("leaseTransitions".into(), json!(self.transitions));
        Value::Object(spec)
    }
}

/// Formats a `MicroTime` as Kubernetes does.
fn micro_time(time: Timestamp) -> String {
    const PRINTER: DateTimePrinter = DateTimePrinter::new().precision(Some(6));
    PRINTER.timestamp_to_string(&time)
}

#[cfg(test)]
mod tests;
