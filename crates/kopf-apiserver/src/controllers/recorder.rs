//! Records what controllers report as Event objects, and counts repetitions.
//!
//! Responsible for the content of these events and a cache of recent ones, as upstream's clients
//! have. An event that cannot be written is dropped: events are best effort.

use std::collections::HashMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use kopf_controllers::announce::{Announcement, Regarding};
use kopf_controllers::world::Collection;

use crate::fields::{self, stamp};
use crate::local::{LocalClient, Patch, Target};

/// The number of cached events; beyond that the cache is cleared, and repetitions become new
/// events.
const CACHED_MAX: usize = 4096;

/// Identifies repetitions: uid, object, reason, message and source.
type Identity = (String, Regarding, &'static str, String, &'static str);

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    /// Names and counts of recent events.
    recent: HashMap<Identity, (String, u64)>,
    /// Makes names unique while the clock stands still.
    written: u64,
}

impl Recorder {
    /// Writes one event, or increments the count of an existing one.
    pub(super) async fn record(
        &mut self,
        client: &LocalClient,
        collection: &Collection,
        subject: &Value,
        announcement: &Announcement,
        now: Timestamp,
    ) {
        let Announcement { regarding, reason, message, component, .. } = announcement;
        let uid = fields::uid(subject).to_owned();
        let identity = (uid, regarding.clone(), *reason, message.clone(), *component);
        let namespace = fields::namespace(subject);
        if let Some((name, count)) = self.recent.get_mut(&identity) {
            *count += 1;
            let patch = json!({ "count": count, "lastTimestamp": stamp(now) });
            let target = Target::new("events", namespace, name);
            if client.patch(target, Patch::Merge(patch)).await.is_ok() {
                return;
            }
        }
        self.written += 1;
        let suffix = now.as_nanosecond() as u64 + self.written;
        let name = format!("{}.{suffix:x}", fields::name(subject));
        let Ok(resource) = client.resource(collection.table()) else { return };
        let api_version = resource.api_version();
        let event = event(&name, (&api_version, &resource.kind), subject, announcement, now);
        if client.create("events", namespace, event).await.is_ok() {
            if self.recent.len() >= CACHED_MAX {
                self.recent.clear();
            }
            self.recent.insert(identity, (name, 1));
        }
    }
}

fn event(
    name: &str,
    (api_version, kind): (&str, &str),
    subject: &Value,
    announcement: &Announcement,
    now: Timestamp,
) -> Value {
    let Announcement { regarding, is_warning, reason, message, component } = announcement;
    let mut object = json!({
        "kind": kind,
        "namespace": fields::namespace(subject),
        "name": fields::name(subject),
        "uid": fields::uid(subject),
        "apiVersion": api_version,
        "resourceVersion": fields::text(subject, &["metadata", "resourceVersion"]),
    });
    if let Regarding::Container(path) = regarding {
        object["fieldPath"] = json!(path);
    }
    let mut event = json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": { "name": name, "namespace": fields::namespace(subject) },
        "involvedObject": object,
        "reason": reason,
        "message": message,
        "type": if *is_warning { "Warning" } else { "Normal" },
        "reportingComponent": component,
        "reportingInstance": "",
    });
    if *component == "default-scheduler" {
        // The scheduler uses the newer API, which has no source and no count.
        let action = if *is_warning { "Scheduling" } else { "Binding" };
        event["eventTime"] = json!(format!("{now:.6}"));
        event["action"] = json!(action);
        event["reportingInstance"] = json!("default-scheduler-kopf");
        return event;
    }
    event["source"] = json!({ "component": component });
    if *component == "kubelet" && kind == "Pod" {
        let node = fields::text(subject, &["spec", "nodeName"]);
        event["source"]["host"] = json!(node);
        event["reportingInstance"] = json!(node);
    }
    event["firstTimestamp"] = json!(stamp(now));
    event["lastTimestamp"] = json!(stamp(now));
    event["count"] = json!(1);
    event
}
