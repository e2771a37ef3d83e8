//! Kubernetes events: what an operator tells the users about an object.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::hierarchy::build_object_reference;
use crate::record::format_time;

/// Longer messages are cut in the middle, as the server would refuse them.
pub const MESSAGE_LENGTH_MAX: usize = 1024;
const CUT: &str = "...";

/// One event to be posted.
#[derive(Clone, Debug)]
pub struct EventDraft<'a> {
    /// The body of the object that the event is about.
    pub about: &'a Value,
    /// `Normal`, `Warning` and the like.
    pub kind: &'a str,
    /// A short word in camel case.
    pub reason: &'a str,
    /// The text for people.
    pub message: &'a str,
    /// The component that reports.
    pub reporting_component: &'a str,
    /// The instance that reports.
    pub reporting_instance: &'a str,
    /// The beginning of the event's name.
    pub name_prefix: &'a str,
    /// The namespace for events about cluster-scoped objects.
    pub default_namespace: &'a str,
    /// The moment of the event.
    pub now: Timestamp,
}

impl EventDraft<'_> {
    /// The namespace where the event is to be posted.
    #[must_use]
    pub fn namespace(&self) -> &str {
        let namespace = || self.about.get("metadata")?.get("namespace")?.as_str();
        namespace().filter(|namespace| !namespace.is_empty()).unwrap_or(self.default_namespace)
    }

    /// Whether the event is about an event, which is never posted.
    #[must_use]
    pub fn is_about_event(&self) -> bool {
        let text = |key| self.about.get(key).and_then(Value::as_str);
        text("kind") == Some("Event")
            && text("apiVersion")
                .is_some_and(|version| version == "v1" || version.starts_with("events.k8s.io/"))
    }

    /// The body to be posted.
    #[must_use]
    pub fn body(&self) -> Value {
        let namespace = self.namespace();
        let mut about = build_object_reference(self.about);
        about
            .as_object_mut()
            .map(|about: &mut Map<_, _>| about.insert("namespace".into(), namespace.into()));
        let time = format_time(self.now);
        json!({
            "metadata": {"namespace": namespace, "generateName": self.name_prefix},
            "action": "Action?",
            "type": self.kind,
            "reason": self.reason,
            "message": cut_message(self.message),
            "reportingComponent": self.reporting_component,
            "reportingInstance": self.reporting_instance,
            "source": {"component": self.reporting_component},
            "involvedObject": about,
            "firstTimestamp": time,
            "lastTimestamp": time,
            "eventTime": time,
        })
    }
}

/// Cuts a long message in the middle, so that its beginning and its end stay readable.
#[must_use]
pub fn cut_message(message: &str) -> String {
    let length = message.chars().count();
    if length <= MESSAGE_LENGTH_MAX {
        return message.to_owned();
    }
    let head = MESSAGE_LENGTH_MAX / 2 - CUT.len() / 2;
    let tail = MESSAGE_LENGTH_MAX - head - CUT.len();
    let start: String = message.chars().take(head).collect();
    let end: String = message.chars().skip(length - tail).collect();
    format!("{start}{CUT}{end}")
}

#[cfg(test)]
mod tests;
