//! The Kubernetes events that were posted in a world.

use std::fmt;

use serde_json::Value;

use crate::world::{World, WorldError};

/// A Kubernetes event, as `kubectl describe` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostedEvent {
    /// The kind and the name of the object, as in `KopfExample/a`.
    pub about: String,
    /// `Normal` or `Warning`.
    pub kind: String,
    /// The reason in one word.
    pub reason: String,
    /// The text.
    pub message: String,
    /// How often it happened.
    pub count: u64,
}

impl World {
    /// The events that were posted so far, in the order of their posting.
    ///
    /// Operators post with a limited rate: let some time pass before looking.
    ///
    /// # Errors
    /// Fails when the server cannot be asked.
    pub async fn events(&self) -> Result<Vec<PostedEvent>, WorldError> {
        let mut events = self.objects("events.v1").in_cluster().list().await?;
        let version = |event: &Value| -> u64 {
            event["metadata"]["resourceVersion"]
                .as_str()
                .and_then(|it| it.parse().ok())
                .unwrap_or(0)
        };
        events.retain(|event| event["reportingComponent"] != "");
        events.sort_by_key(version);
        Ok(events.iter().map(PostedEvent::of).collect())
    }
}

impl PostedEvent {
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
