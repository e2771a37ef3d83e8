//! The log of a world: lines of the engine and of handlers, with their objects.
//!
//! A layer for `tracing` on the thread of the test, which the engine also uses on the threads of
//! blocking handlers. Lines of threads that handlers start go to the process's subscriber instead.

use std::fmt::{self, Write as _};
use std::sync::Arc;

use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::subscriber::{DefaultGuard, NoSubscriber};
use tracing::{Dispatch, Event, Level, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;

/// How many lines are kept.
const LINES_MAX: usize = 20_000;
/// How many of them are shown if a test fails.
const SHOWN_MAX: usize = 60;

/// A line of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// The level.
    pub level: Level,
    /// The source: `kopf.objects` for lines about objects.
    pub target: String,
    /// The name of its object, if any.
    pub object: Option<String>,
    /// The text, followed by the fields.
    pub message: String,
}

/// The lines so far; clones share them.
#[derive(Clone, Default)]
pub struct Logs(Arc<Mutex<Vec<LogLine>>>);

impl Logs {
    /// All lines.
    #[must_use]
    pub fn lines(&self) -> Vec<LogLine> {
        self.0.lock().clone()
    }

    /// The lines about one object.
    #[must_use]
    pub fn about(&self, object: &str) -> Vec<LogLine> {
        let mut lines = self.lines();
        lines.retain(|line| line.object.as_deref() == Some(object));
        lines
    }

    /// The warnings and errors.
    #[must_use]
    pub fn complaints(&self) -> Vec<LogLine> {
        let mut lines = self.lines();
        lines.retain(|line| line.level <= Level::WARN);
        lines
    }

    /// Whether any line contains the text.
    #[must_use]
    pub fn contains(&self, text: &str) -> bool {
        self.0.lock().iter().any(|line| line.message.contains(text))
    }

    /// Discards the lines so far.
    pub fn clear(&self) {
        self.0.lock().clear();
    }

    /// Captures lines on this thread while the guard lives, unless the test has its own subscriber.
    pub(crate) fn capture(&self) -> Option<Capturing> {
        let is_free = tracing::dispatcher::get_default(|it| it.is::<NoSubscriber>());
        is_free.then(|| {
            let ear = IDLE.lock().pop().unwrap_or_else(LogCapture::new);
            *ear.heard.lock() = Some(self.clone());
            let guard = Some(tracing::dispatcher::set_default(&ear.dispatch));
            Capturing { guard, ear: Some(ear) }
        })
    }

    /// Prints the last lines if the test panics.
    pub(crate) fn shown_on_panic(&self) -> ShownOnPanic {
        ShownOnPanic(self.clone())
    }
}

/// A subscriber, reused by one test after the other, since creating one is slow.
struct LogCapture {
    dispatch: Dispatch,
    // Written when a test starts and ends; read by the listener in the subscriber.
    heard: Arc<Mutex<Option<Logs>>>,
}

/// The subscribers that no test uses now: at most as many as there were concurrent tests.
static IDLE: Mutex<Vec<LogCapture>> = Mutex::new(Vec::new());

impl LogCapture {
    fn new() -> Self {
        let heard = Arc::default();
        let listener = Listener(Arc::clone(&heard));
        Self { dispatch: tracing_subscriber::registry().with(listener).into(), heard }
    }
}

/// Captures until it is dropped.
pub(crate) struct Capturing {
    guard: Option<DefaultGuard>,
    ear: Option<LogCapture>,
}

impl Drop for Capturing {
    fn drop(&mut self) {
        drop(self.guard.take());
        if let Some(ear) = self.ear.take() {
            *ear.heard.lock() = None;
            IDLE.lock().push(ear);
        }
    }
}

/// Prints the log of a failing test.
pub(crate) struct ShownOnPanic(Logs);

impl Drop for ShownOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("the end of the log:\n{}", self.0);
        }
    }
}

/// The last lines, without debug lines.
impl fmt::Display for Logs {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = self.lines();
        lines.retain(|line| line.level <= Level::INFO);
        for line in lines.iter().skip(lines.len().saturating_sub(SHOWN_MAX)) {
            writeln!(formatter, "  {line}")?;
        }
        Ok(())
    }
}

impl fmt::Display for LogLine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { level, target, object, message } = self;
        let object = object.as_deref().map(|name| format!(" [{name}]")).unwrap_or_default();
        write!(formatter, "{level} {target}{object} {message}")
    }
}

/// Records lines for the test that is currently captured.
struct Listener(Arc<Mutex<Option<Logs>>>);

/// The name of the object of a span.
struct ObjectName(String);

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Listener {
    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        let is_ours = metadata.target().starts_with("kopf");
        // Handlers log under the names of their own crates.
        let level = if is_ours { Level::DEBUG } else { Level::INFO };
        *metadata.level() <= level && (is_ours || metadata.is_event())
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        if let (Some(name), Some(span)) = (fields.name, context.span(id)) {
            span.extensions_mut().insert(ObjectName(name));
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let object = context.event_scope(event).into_iter().flatten().find_map(|span| {
            span.extensions().get::<ObjectName>().map(|ObjectName(name)| name.clone())
        });
        let metadata = event.metadata();
        let is_handlers = context.event_span(event).is_some();
        if !is_handlers && !metadata.target().starts_with("kopf") {
            return; // of a library
        }
        let heard = self.0.lock();
        let Some(Logs(lines)) = &*heard else { return };
        let mut lines = lines.lock();
        if lines.len() >= LINES_MAX {
            lines.remove(0);
        }
        lines.push(LogLine {
            level: *metadata.level(),
            target: metadata.target().to_owned(),
            object,
            message: fields.message + &fields.rest,
        });
    }
}

#[derive(Default)]
struct Fields {
    message: String,
    rest: String,
    name: Option<String>,
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "name" {
            self.name = Some(value.to_owned());
        } else {
            self.record_debug(field, &value);
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let _infallible = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.rest, " {name}={value:?}"),
        };
    }
}
