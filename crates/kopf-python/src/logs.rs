//! Log lines on their way to Python's `logging`, one sink per operator.
//!
//! The threads of an operator's runtime have this sink as their default subscriber; the process has
//! no other, and what others log is not touched. Lines keep their order relative to calls.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use kopf_cli::telemetry::Telemetry;
use parking_lot::Mutex;
use pyo3::prelude::*;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::subscriber::Interest;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;

use crate::queue::{Item, Queue};

/// The lines about objects.
const OBJECTS: &str = "kopf.objects";

/// For how many topics there is room while there are none.
const TOPICS_KEPT: usize = 64;

/// One line.
struct LogLine {
    /// The level as numbers in Python.
    level: u8,
    target: String,
    text: String,
    /// The chain of causes, or a reference to an exception that Python keeps.
    details: Option<String>,
    object: Option<Arc<ObjectReference>>,
    /// The phase of the operator, for lines about activities.
    activity: Option<Arc<str>>,
}

/// The object that a line is about.
#[derive(Clone, Default)]
struct ObjectReference {
    api_version: String,
    kind: String,
    namespace: Option<String>,
    name: String,
    uid: String,
}

impl Item for LogLine {
    fn into_python<'py>(self: Box<Self>, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let Self { level, target, text, details, object, activity } = &*self;
        let object = object.as_deref();
        let object = object.map(|it| (&it.api_version, &it.kind, &it.namespace, &it.name, &it.uid));
        let line = ("log", level, target, text, details, object, activity.as_deref());
        Ok(line.into_pyobject(py)?.into_any())
    }

    fn is_log_line(&self) -> bool {
        true
    }
}

/// Pushes lines into the queue.
pub(crate) struct Sink {
    queue: Arc<Queue>,
    level: Arc<AtomicU8>,
    /// What open spans are about. The extensions of spans would keep a table for each span of the
    /// largest burst, between memory that is free and could be returned to the system.
    topics: Mutex<HashMap<Id, Topic>>,
}

/// What the lines in a span are about.
enum Topic {
    Object(Arc<ObjectReference>),
    Activity(Arc<str>),
}

/// A subscriber for one operator; the level is the least one that Python shows.
pub(crate) fn dispatch(
    queue: Arc<Queue>,
    level: Arc<AtomicU8>,
    telemetry: Option<&Telemetry>,
) -> tracing::Dispatch {
    let traces = telemetry.map(Telemetry::layer);
    let sink = Sink { queue, level, topics: Mutex::default() };
    tracing_subscriber::registry().with(sink).with(traces).into()
}

fn number(level: Level) -> u8 {
    match level {
        Level::TRACE => 5,
        Level::DEBUG => 10,
        Level::INFO => 20,
        Level::WARN => 30,
        Level::ERROR => 40,
    }
}

/// Whether a line is about the operator. Handlers in Python do not run in the polls of the engine.
fn is_shown(metadata: &Metadata<'_>) -> bool {
    metadata.target().starts_with("kopf") && metadata.target() != kopf_engine::SLOW_POLLS
}

impl<S: Subscriber + for<'span> LookupSpan<'span>> Layer<S> for Sink {
    /// Asked every time: Python may change its levels.
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        match is_shown(metadata) {
            true => Interest::sometimes(),
            false => Interest::never(),
        }
    }

    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        is_shown(metadata)
            && (metadata.is_span()
                || number(*metadata.level()) >= self.level.load(Ordering::Relaxed))
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, _: Context<'_, S>) {
        let name = attributes.metadata().name();
        let topic = if attributes.metadata().target() == OBJECTS && name == "object" {
            let mut object = ObjectReference::default();
            attributes.record(&mut object);
            Topic::Object(Arc::new(object))
        } else if name == "activity" {
            let mut fields = Fields::default();
            attributes.record(&mut fields);
            Topic::Activity(fields.message.into())
        } else {
            return;
        };
        self.topics.lock().insert(id.clone(), topic);
    }

    fn on_close(&self, id: Id, _: Context<'_, S>) {
        let mut topics = self.topics.lock();
        let closed = topics.remove(&id);
        if topics.is_empty() {
            topics.shrink_to(TOPICS_KEPT);
        }
        drop(topics);
        // Not while others wait.
        drop(closed);
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let metadata = event.metadata();
        let mut fields = Fields::default();
        event.record(&mut fields);
        let mut text = fields.message;
        if !fields.others.is_empty() {
            let _ = write!(text, " ({})", fields.others);
        }
        let mut line = LogLine {
            level: number(*metadata.level()),
            target: metadata.target().to_owned(),
            text,
            details: fields.details,
            object: None,
            activity: None,
        };
        let topics = self.topics.lock();
        let mut spans = context.event_scope(event).into_iter().flatten();
        match spans.find_map(|span| topics.get(&span.id())) {
            Some(Topic::Object(object)) => line.object = Some(Arc::clone(object)),
            Some(Topic::Activity(name)) => line.activity = Some(Arc::clone(name)),
            None => {}
        }
        drop(spans);
        drop(topics);
        self.queue.push(line);
    }
}

#[derive(Default)]
struct Fields {
    message: String,
    details: Option<String>,
    others: String,
}

impl Fields {
    fn add(&mut self, field: &Field, value: &dyn std::fmt::Display) {
        let separator = if self.others.is_empty() { "" } else { ", " };
        let _ = write!(self.others, "{separator}{}={value}", field.name());
    }
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => value.clone_into(&mut self.message),
            "details" => self.details = Some(value.to_owned()),
            _ => self.add(field, &value),
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        match field.name() {
            "message" => self.message = format!("{value:?}"),
            "details" => self.details = Some(format!("{value:?}")),
            _ => self.add(field, &format_args!("{value:?}")),
        }
    }
}

impl Visit for ObjectReference {
    fn record_str(&mut self, field: &Field, value: &str) {
        let value = value.to_owned();
        match field.name() {
            "apiVersion" => self.api_version = value,
            "kind" => self.kind = value,
            "namespace" => self.namespace = Some(value),
            "name" => self.name = value,
            "uid" => self.uid = value,
            _ => {}
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}
}
