//! The Kubernetes events that were posted in a world.

use std::fmt;

use serde_json::Value;

/// A Kubernetes event, as `kubectl describe` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostedEvent {
    /// The kind and the name of the object, as in `KopfExample/a`.
    pub about: String,
    /// `Normal` or `Warning`.
    pub kind: String,
    /// The reason as one word.
    pub reason: String,
    /// The text.
    pub message: String,
    /// How often it happened.
    pub count: u64,
}

impl PostedEvent {
    /// The events among these objects, in posting order.
    pub(crate) fn of_all(mut events: Vec<Value>) -> Vec<Self> {
        let version = |event: &Value| -> u64 {
            event["metadata"]["resourceVersion"]
                .as_str()
                .and_then(|it| it.parse().ok())
                .unwrap_or(0)
        };
        events.retain(|event| event["reportingComponent"] != "");
        events.sort_by_key(version);
        events.iter().map(Self::of).collect()
    }

    fn of(event: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let about = &event["involvedObject"];
        Self {
            about: format!("{}/{}", text(&about["kind"]), text(&about["name"])),
            kind: text(&event["type"]),
            reason: text(&event["reason"]),
            message: text(&event["message"]),
            count: event["count"].as_u64().unwrap_or(1),
        }
    }
}

impl fmt::Display for PostedEvent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { about, kind, reason, message, count } = self;
        write!(formatter, "{kind} {reason} {about} (x{count}): {message}")
    }
}
