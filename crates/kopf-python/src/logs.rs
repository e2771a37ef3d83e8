//! Log lines on their way to Python's `logging`, one sink per operator.
//!
//! The threads of an operator's runtime have this sink as their default subscriber; the process has
//! no other, and what others log is not touched. Lines keep their order relative to calls.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use kopf_cli::telemetry::Telemetry;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::subscriber::Interest;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;

use crate::queue::{Item, Queue};

/// The lines about objects.
const OBJECTS: &str = "kopf.objects";

/// One line.
pub(crate) struct LogLine {
    /// The level as numbers in Python.
    pub(crate) level: u8,
    pub(crate) target: String,
    pub(crate) text: String,
    /// The chain of causes, or a reference to an exception that Python keeps.
    pub(crate) details: Option<String>,
    pub(crate) object: Option<Arc<ObjectReference>>,
    /// The phase of the operator, for lines about activities.
    pub(crate) activity: Option<String>,
}

/// The object that a line is about.
#[derive(Clone, Default)]
pub(crate) struct ObjectReference {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
    pub(crate) uid: String,
}

/// Pushes lines into the queue.
pub(crate) struct Sink {
    queue: Arc<Queue>,
    level: Arc<AtomicU8>,
}

/// A subscriber for one operator; the level is the least one that Python shows.
pub(crate) fn dispatch(
    queue: Arc<Queue>,
    level: Arc<AtomicU8>,
    telemetry: Option<&Telemetry>,
) -> tracing::Dispatch {
    let traces = telemetry.map(Telemetry::layer);
    tracing_subscriber::registry().with(Sink { queue, level }).with(traces).into()
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

impl<S: Subscriber + for<'span> LookupSpan<'span>> Layer<S> for Sink {
    /// Asked every time: Python may change its levels.
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        match metadata.target().starts_with("kopf") {
            true => Interest::sometimes(),
            false => Interest::never(),
        }
    }

    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        metadata.target().starts_with("kopf")
            && (metadata.is_span()
                || number(*metadata.level()) >= self.level.load(Ordering::Relaxed))
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let name = attributes.metadata().name();
        if attributes.metadata().target() == OBJECTS && name == "object" {
            let mut object = ObjectReference::default();
            attributes.record(&mut object);
            span.extensions_mut().insert(Arc::new(object));
        } else if name == "activity" {
            let mut fields = Fields::default();
            attributes.record(&mut fields);
            span.extensions_mut().insert(ActivityName(fields.message));
        }
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
        for span in context.event_scope(event).into_iter().flatten() {
            let extensions = span.extensions();
            if let Some(object) = extensions.get::<Arc<ObjectReference>>() {
                line.object = Some(Arc::clone(object));
                break;
            }
            if let Some(ActivityName(name)) = extensions.get() {
                line.activity = Some(name.clone());
                break;
            }
        }
        self.queue.push(Item::Log(Box::new(line)));
    }
}

struct ActivityName(String);

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
