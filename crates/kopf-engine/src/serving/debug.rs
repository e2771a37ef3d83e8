//! What the debug endpoint shows about the operator as a whole: its status and its handlers.
//!
//! Plain values that other programs parse, such as the web UI. Created from the engine's own
//! structures on request; nothing is stored here, and nothing depends on it.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use http::uri::Authority;
use http::{HeaderMap, header};
use kopf_core::filter::{Filters, MetaFilter, ValueFilter};
use kopf_core::handler::{Delay, Handler, HandlerKind};
use kopf_core::settings::{DiffbaseStorageSetting, Persistence, ProgressStorageSetting, Settings};
use serde::{Deserialize, Serialize};

use crate::reporting::status::{HandlerStatus, LATENCY_BOUNDS, Status, WatchStatus};

/// The status of the operator at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StatusReport {
    /// Whether everything was listed once.
    pub ready: bool,
    /// Whether another operator has precedence now.
    pub paused: bool,
    /// The resources that the cluster does not have yet.
    pub waiting_for: Vec<String>,
    /// All watches.
    pub watches: Vec<WatchReport>,
    /// Objects that are waiting to be handled now.
    pub queued: usize,
    /// How long the first of them has been waiting, in seconds.
    pub queue_age: f64,
    /// Objects that are waiting for a later time.
    pub delayed: usize,
    /// Objects that are being handled.
    pub running: usize,
    /// Daemons and timers that exist.
    pub background: usize,
    /// Blocking handlers that currently occupy a thread.
    pub blocking: usize,
    /// Blocking handlers that are waiting for a free thread.
    pub blocking_waiting: usize,
    /// Objects known to the stores.
    pub objects: usize,
    /// The approximate size of the stores.
    pub store_bytes: usize,
    /// The resident memory of the process, in bytes, where it can be measured.
    pub memory_bytes: Option<u64>,
    /// The counts of all handlers that were called, by id.
    pub handlers: BTreeMap<String, HandlerCounts>,
    /// Events that event handlers never saw.
    pub events_lost: u64,
    /// Responses of the API server.
    pub requests: Vec<RequestCount>,
    /// Writes in flight.
    pub writes: usize,
    /// How many of them are allowed.
    pub writes_max: usize,
    /// How long ago the reactor made its last turn, in seconds.
    pub reactor_age: f64,
}

/// One watch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WatchReport {
    /// Its purpose: `handlers`, `discovery`, `children` or `peering`.
    pub purpose: String,
    /// The watched resource: `plural.version.group`.
    pub resource: String,
    /// The namespace, or `None` for the whole cluster.
    pub namespace: Option<String>,
    /// The label selector, if there is one.
    pub labels: Option<String>,
    /// The field selector, if there is one.
    pub fields: Option<String>,
    /// Whether there was a complete list.
    pub listed: bool,
    /// How long ago the server last sent anything, in seconds.
    pub age: f64,
    /// How often it was restarted.
    pub restarts: u64,
    /// How many objects it has.
    pub objects: usize,
    /// The current error, if any.
    pub failing: Option<String>,
}

/// How often a handler was called, and how the calls ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HandlerCounts {
    /// How often it was called.
    pub calls: u64,
    /// How often it succeeded.
    pub successes: u64,
    /// How often it failed and is retried.
    pub retries: u64,
    /// How often it failed permanently.
    pub failures: u64,
    /// The time spent in all calls.
    pub seconds: f64,
    /// How many calls fell into each bucket of [`LATENCY_BOUNDS`], and above.
    pub buckets: Vec<u64>,
    /// How often it failed, by class of the failure.
    pub errors: BTreeMap<String, u64>,
}

/// Responses of the API server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestCount {
    /// The method.
    pub method: String,
    /// The code; 0 if there was no response.
    pub code: u16,
    /// The number of responses.
    pub count: u64,
}

/// The parts of an operator.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OperatorReport {
    /// The name of the operator, if it has one.
    pub name: Option<String>,
    /// The version of the engine.
    pub version: String,
    /// The finalizer.
    pub finalizer: String,
    /// The prefix of the annotations with progress records, if they are in annotations.
    pub progress_prefix: Option<String>,
    /// The name under `status` with progress records, if they may be there.
    pub progress_status: Option<String>,
    /// The annotation with the last-handled state, if it is in one.
    pub last_handled_annotation: Option<String>,
    /// The upper bounds of the latency buckets, in seconds; one more bucket is for the rest.
    pub latency_bounds: Vec<f64>,
    /// Whether users may change the state of objects through the web UI.
    pub actions: bool,
    /// All handlers.
    pub handlers: Vec<HandlerReport>,
}

/// One handler.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HandlerReport {
    /// The id.
    pub id: String,
    /// What it reacts to: `create`, `timer` and so on.
    pub kind: String,
    /// The resources that it handles.
    pub resources: Option<String>,
    /// The documentation of the function.
    pub description: Option<String>,
    /// The signature of the function.
    pub signature: Option<String>,
    /// The options of its kind and its error handling, as name and value.
    pub options: Vec<(String, String)>,
    /// The conditions under which it is called, one sentence each.
    pub conditions: Vec<String>,
    /// The resources of the children that are watched for it.
    pub children: Vec<String>,
    /// What it may do in the cluster.
    pub rights: Vec<String>,
}

/// Whether a request is for an IP address rather than a name, which could belong to another site
/// that was made to resolve to this machine.
pub(crate) fn is_local(headers: &HeaderMap) -> bool {
    let host = headers.get(header::HOST).and_then(|value| value.to_str().ok());
    let authority = host.and_then(|host| host.parse::<Authority>().ok());
    authority.is_some_and(|authority| {
        let host = authority.host().trim_matches(['[', ']']);
        host == "localhost" || host.parse::<IpAddr>().is_ok()
    })
}

/// The status as plain values.
pub(crate) fn status(status: &Status) -> StatusReport {
    let purposes = [
        ("handlers", &status.watches),
        ("discovery", &status.engine_watches.discovery),
        ("children", &status.engine_watches.children),
        ("peering", &status.engine_watches.peering),
    ];
    let watches = purposes
        .into_iter()
        .flat_map(|(purpose, watches)| watches.iter().map(move |it| watch(purpose, it)));
    let requests = status.requests.iter().map(|((method, code), count)| RequestCount {
        method: method.clone(),
        code: *code,
        count: *count,
    });
    StatusReport {
        ready: status.ready,
        paused: status.paused,
        waiting_for: status.waiting_for.clone(),
        watches: watches.collect(),
        queued: status.work.queued,
        queue_age: status.work.queue_age.as_secs_f64(),
        delayed: status.work.delayed,
        running: status.work.running,
        background: status.work.background,
        blocking: status.work.blocking,
        blocking_waiting: status.work.blocking_waiting,
        objects: status.objects,
        store_bytes: status.store_bytes,
        memory_bytes: resident_bytes(),
        handlers: status.handlers.iter().map(|(id, it)| (id.clone(), counts(it))).collect(),
        events_lost: status.work.events_lost,
        requests: requests.collect(),
        writes: status.work.write_load.0,
        writes_max: status.work.write_load.1,
        reactor_age: status.work.reactor_age.as_secs_f64(),
    }
}

fn watch(purpose: &str, watch: &WatchStatus) -> WatchReport {
    WatchReport {
        purpose: purpose.to_owned(),
        resource: watch.resource.clone(),
        namespace: watch.namespace.clone(),
        labels: watch.labels.clone(),
        fields: watch.fields.clone(),
        listed: watch.listed,
        age: watch.age.as_secs_f64(),
        restarts: watch.restarts,
        objects: watch.objects,
        failing: watch.failing.clone(),
    }
}

fn counts(handler: &HandlerStatus) -> HandlerCounts {
    let errors = handler.errors.iter().map(|(class, count)| ((*class).to_owned(), *count));
    HandlerCounts {
        calls: handler.calls,
        successes: handler.successes,
        retries: handler.retries,
        failures: handler.failures,
        seconds: handler.seconds,
        buckets: handler.buckets.to_vec(),
        errors: errors.collect(),
    }
}

/// The resident memory of this process; only Linux provides it in a file.
fn resident_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

/// The operator as plain values.
pub(crate) fn operator<'a>(
    handlers: impl IntoIterator<Item = &'a Handler>,
    settings: &Settings,
    name: Option<&str>,
    actions: bool,
) -> OperatorReport {
    let Persistence { finalizer, progress_storage, diffbase_storage, .. } = &settings.persistence;
    let (progress_prefix, progress_status) = match progress_storage {
        ProgressStorageSetting::Smart { prefix, name } => (Some(prefix), Some(name)),
        ProgressStorageSetting::Annotations { prefix } => (Some(prefix), None),
        ProgressStorageSetting::Status { name } => (None, Some(name)),
        ProgressStorageSetting::Custom(_) => (None, None),
    };
    let last_handled_annotation = match diffbase_storage {
        DiffbaseStorageSetting::Annotations { prefix, key }
        | DiffbaseStorageSetting::Compact { prefix, key } => Some(format!("{prefix}/{key}")),
        _ => None,
    };
    OperatorReport {
        name: name.map(str::to_owned),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        finalizer: finalizer.clone(),
        progress_prefix: progress_prefix.cloned(),
        progress_status: progress_status.cloned(),
        last_handled_annotation,
        latency_bounds: LATENCY_BOUNDS.to_vec(),
        actions,
        handlers: handlers.into_iter().map(handler).collect(),
    }
}

fn handler(handler: &Handler) -> HandlerReport {
    HandlerReport {
        id: handler.id.to_string(),
        kind: handler.kind.name().to_owned(),
        resources: handler.selector.as_ref().map(ToString::to_string),
        description: handler.docs.description.clone(),
        signature: handler.docs.signature.clone(),
        options: options(handler),
        conditions: conditions(&handler.filters),
        children: handler.children.iter().map(ToString::to_string).collect(),
        rights: rights(handler),
    }
}

fn options(handler: &Handler) -> Vec<(String, String)> {
    let mut options = Vec::new();
    let mut add = |name: &str, value: Option<String>| {
        options.extend(value.map(|value| (name.to_owned(), value)));
    };
    let yes = |is_set: bool| is_set.then(|| "yes".to_owned());
    match &handler.kind {
        HandlerKind::Delete { optional } => add("optional", yes(*optional)),
        HandlerKind::Resume { deleted } => add("deleted", yes(*deleted)),
        HandlerKind::Daemon(daemon) => add("initial delay", delay(&daemon.initial_delay)),
        HandlerKind::Timer(timer) => {
            add("interval", timer.interval.map(seconds));
            add("initial delay", delay(&timer.initial_delay));
            add("idle", timer.idle.map(seconds));
            add("sharp", yes(timer.sharp));
        }
        HandlerKind::Validate(webhook) | HandlerKind::Mutate(webhook) => {
            let operations = &webhook.operations;
            add("operations", (!operations.is_empty()).then(|| operations.join(", ")));
            add("subresource", webhook.subresource.clone());
            add("ignore failures", yes(webhook.ignore_failures));
        }
        HandlerKind::Convert(convert) => add("to", Some(convert.to.to_string())),
        _ => {}
    }
    let retrying = &handler.retrying;
    add("errors", retrying.errors.map(|mode| format!("{mode:?}").to_lowercase()));
    add("retries", retrying.retries.map(|count| count.to_string()));
    add("timeout", retrying.timeout.map(seconds));
    add("backoff", retrying.backoff.map(seconds));
    options
}

fn delay(delay: &Delay) -> Option<String> {
    match delay {
        Delay::None => None,
        Delay::Fixed(duration) => Some(seconds(*duration)),
        Delay::Computed(_) => Some("computed from the object".to_owned()),
    }
}

fn seconds(duration: Duration) -> String {
    format!("{} s", duration.as_secs_f64())
}

/// Every condition as a sentence.
fn conditions(filters: &Filters) -> Vec<String> {
    let labels = filters.labels.iter().map(|(key, it)| format!("label {key} {}", meta_words(it)));
    let annotations =
        filters.annotations.iter().map(|(key, it)| format!("annotation {key} {}", meta_words(it)));
    let mut sentences: Vec<String> = labels.chain(annotations).collect();
    if let Some(field) = &filters.field {
        let words = filters.value.as_ref().map_or_else(|| "is there".to_owned(), value_words);
        sentences.push(format!("field {field} {words}"));
        let sides = [("old", &filters.old), ("new", &filters.new)];
        for (side, filter) in sides.into_iter().filter_map(|(side, it)| Some((side, it.as_ref()?)))
        {
            sentences.push(format!("{side} value of {field} {}", value_words(filter)));
        }
    }
    if filters.when.is_some() {
        sentences.push("a function over the whole object says yes".to_owned());
    }
    sentences
}

fn meta_words(filter: &MetaFilter) -> String {
    match filter {
        MetaFilter::Equals(value) => format!("is `{value}`"),
        MetaFilter::Present => "is there".to_owned(),
        MetaFilter::Absent => "is not there".to_owned(),
        MetaFilter::Matches(_) => "is accepted by a function".to_owned(),
    }
}

fn value_words(filter: &ValueFilter) -> String {
    match filter {
        ValueFilter::Equals(value) => format!("is `{value}`"),
        ValueFilter::Present => "is there".to_owned(),
        ValueFilter::Absent => "is not there".to_owned(),
        ValueFilter::Matches(_) => "is accepted by a function".to_owned(),
    }
}

/// What a handler may do in the cluster: by its kind, its signature and its declarations.
fn rights(handler: &Handler) -> Vec<String> {
    let mut rights = Vec::new();
    if let Some(selector) = &handler.selector
        && !handler.kind.family().is_asked()
    {
        let touches = handler.access.touches;
        let keeps_state = !matches!(handler.kind, HandlerKind::Event | HandlerKind::Index);
        let patches = keeps_state || touches.object;
        let verbs = if patches { "list, watch, patch" } else { "list, watch" };
        rights.push(format!("{verbs} {selector}"));
        if touches.status {
            rights.push(format!("patch the status of {selector}"));
        }
        if touches.events {
            rights.push("create events".to_owned());
        }
    }
    for need in &handler.access.needs {
        let group = if need.group.is_empty() { String::new() } else { format!(".{}", need.group) };
        rights.push(format!("{} {}{group}", need.verbs.join(", "), need.resource));
    }
    rights
}

#[cfg(test)]
mod tests;
