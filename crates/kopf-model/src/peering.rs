//! Records through which operators know of each other, stored in the status of peering objects.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::record::{format_time, parse_time};

/// The API groups of peering resources; any of them may exist.
pub const GROUPS: [&str; 2] = ["kopf.dev", "zalando.org"];

/// The version of peering resources.
pub const VERSION: &str = "v1";

/// The lifetime of a record that does not specify one.
const DEFAULT_LIFETIME: Duration = Duration::from_secs(60);

/// One operator as others see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The identity of the operator.
    pub identity: String,
    /// The priority; the operator with the highest one works, the others pause.
    pub priority: i64,
    /// How long the record is valid.
    pub lifetime: Duration,
    /// When the record was written.
    pub lastseen: Timestamp,
}

impl Peer {
    /// Reads the records of a peering object; missing fields get defaults, unknown ones are
    /// ignored.
    #[must_use]
    pub fn read_all(body: &Value, now: Timestamp) -> Vec<Self> {
        let Some(records) = body.get("status").and_then(Value::as_object) else {
            return Vec::new();
        };
        let peer = |(identity, record): (&String, &Value)| {
            record.as_object().map(|record| Self::read(identity, record, now))
        };
        records.iter().filter_map(peer).collect()
    }

    fn read(identity: &str, record: &Map<String, Value>, now: Timestamp) -> Self {
        let lifetime = record
            .get("lifetime")
            .and_then(Value::as_f64)
            .map_or(DEFAULT_LIFETIME, |s| Duration::try_from_secs_f64(s).unwrap_or_default());
        let lastseen = record.get("lastseen").and_then(Value::as_str).and_then(parse_time);
        Self {
            identity: identity.to_owned(),
            priority: record.get("priority").and_then(Value::as_i64).unwrap_or(0),
            lifetime,
            lastseen: lastseen.unwrap_or(now),
        }
    }

    /// When the record stops being valid.
    #[must_use]
    pub fn deadline(&self) -> Timestamp {
        self.lastseen.checked_add(self.lifetime).unwrap_or(Timestamp::MAX)
    }

    /// Whether the record is no longer valid.
    #[must_use]
    pub fn is_dead(&self, now: Timestamp) -> bool {
        self.deadline() <= now
    }

    /// The merge patch that announces this operator.
    #[must_use]
    pub fn announcement(&self) -> Value {
        json!({"status": {&self.identity: {
            "priority": self.priority,
            "lifetime": self.lifetime.as_secs(),
            "lastseen": format_time(self.lastseen),
        }}})
    }

    /// The merge patch that removes records.
    #[must_use]
    pub fn removal<'a>(identities: impl IntoIterator<Item = &'a str>) -> Value {
        let nulls: Map<String, Value> =
            identities.into_iter().map(|identity| (identity.to_owned(), Value::Null)).collect();
        json!({"status": nulls})
    }
}

/// The peering resource of operators that serve the whole cluster or some namespaces.
#[must_use]
pub fn plural(is_clusterwide: bool) -> &'static str {
    if is_clusterwide { "clusterkopfpeerings" } else { "kopfpeerings" }
}

#[cfg(test)]
mod tests;
