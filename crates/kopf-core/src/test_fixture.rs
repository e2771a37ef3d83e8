//! Small values for the tests of this crate.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use kopf_model::{Object, Resource, Timestamp};
use serde_json::Value;

use crate::cause::{Seen, Snapshot};
use crate::handler::{Handler, HandlerKind};
use crate::invoke::{Call, Invocation, Invoke, Output};
use crate::occasion::{EventKind, Subject};
use crate::settings::{Settings, Storages};

pub(crate) const FINALIZER: &str = "kopf.zalando.org/KopfFinalizerMarker";
pub(crate) const LAST_HANDLED: &str = "kopf.zalando.org/last-handled-configuration";

struct Nothing;

impl Invoke for Nothing {
    fn invoke(&self, _call: Call) -> Invocation {
        Invocation::Blocking(Box::new(|| Ok(Output::Nothing)))
    }
}

pub(crate) fn nothing() -> Arc<dyn Invoke> {
    Arc::new(Nothing)
}

pub(crate) fn handler(id: &str, kind: HandlerKind) -> Handler {
    Handler::new(id, kind, nothing())
}

pub(crate) fn resource() -> Resource {
    Resource {
        group: "kopf.dev".into(),
        version: "v1".into(),
        plural: "kopfexamples".into(),
        kind: "KopfExample".into(),
        singular: "kopfexample".into(),
        shortcuts: BTreeSet::new(),
        categories: BTreeSet::new(),
        subresources: BTreeSet::new(),
        namespaced: true,
        preferred: true,
        verbs: BTreeSet::new(),
    }
}

pub(crate) fn subject(body: Value) -> Subject {
    Subject { resource: Arc::new(resource()), object: Object::from_value(body) }
}

pub(crate) fn storages() -> Storages {
    Settings::default().persistence.storages().unwrap()
}

pub(crate) fn snapshot(body: Value, event: Option<EventKind>, memory: Seen) -> Snapshot {
    Snapshot::take(subject(body), event, memory, &storages(), &[], None).unwrap()
}

/// The time this many seconds after the start.
pub(crate) fn at(seconds: f64) -> Timestamp {
    let origin: Timestamp = "2026-11-15T00:00:00Z".parse().unwrap();
    origin + Duration::from_secs_f64(seconds)
}
