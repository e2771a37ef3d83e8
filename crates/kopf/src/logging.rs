//! Logs in Kopf's formats: plain, full and JSON, with references to objects.
//!
//! A layer for `tracing`. It takes the object from the span `object` of target `kopf.objects`,
//! which the engine opens around all work on one object. It passes the lines that handlers log to
//! the engine, which posts them as Kubernetes events according to `posting.loggers`. Lines go to
//! standard error through `output`, which never blocks on a reader.

use std::fmt::{self, Write as _};
use std::io::{IsTerminal as _, Write};
use std::str::FromStr;
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use jiff::{Timestamp, Zoned};
use serde_json::{Map, Value, json};
use smallvec::SmallVec;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::Registry;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;

use self::output::Output;

mod output;
mod targets;

/// The destination of this process's lines, once logging is installed.
static INSTALLED: OnceLock<Output> = OnceLock::new();

const OBJECTS: &str = "kopf.objects";
const JSON_TIME: &str = "%Y-%m-%dT%H:%M:%S%.6f+00:00";

/// The format of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// Only the message.
    Plain,
    /// With time, source and level.
    #[default]
    Full,
    /// One JSON object per line.
    Json,
}

/// What is logged, and in which format.
///
/// ```no_run
/// use kopf::logging::{LogFormat, Logging};
/// Logging { format: LogFormat::Json, ..Logging::default() }.install();
/// ```
#[derive(Clone, Debug)]
pub struct Logging {
    /// The format of the lines.
    pub format: LogFormat,
    /// The most verbose level that is shown.
    pub level: LevelFilter,
    /// Whether dependencies log at the same level as the operator.
    pub debug: bool,
    /// Whether messages about objects start with `[namespace/name]`; by default, the format
    /// decides.
    pub prefix: Option<bool>,
    /// The key of the object's reference in JSON.
    pub refkey: String,
    /// How many bytes of lines may wait for a slow reader; further lines are dropped, and their
    /// number is logged.
    pub backlog_bytes_max: usize,
}

/// The name of an unknown log format.
#[derive(Debug, thiserror::Error)]
#[error("the log format must be plain, full or json, not {0:?}")]
pub struct UnknownFormat(String);

impl Default for Logging {
    fn default() -> Self {
        Self {
            format: LogFormat::default(),
            level: LevelFilter::INFO,
            debug: false,
            prefix: None,
            refkey: "object".into(),
            backlog_bytes_max: 4 << 20,
        }
    }
}

impl FromStr for LogFormat {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        match name.to_ascii_lowercase().as_str() {
            "plain" => Ok(Self::Plain),
            "full" => Ok(Self::Full),
            "json" => Ok(Self::Json),
            _ => Err(UnknownFormat(name.to_owned())),
        }
    }
}

impl Logging {
    /// Sends all log lines of this process to standard error.
    ///
    /// Does nothing if the program has already set up logging. A separate thread writes the lines,
    /// so logging does not block when nothing reads standard error; see [`flush`].
    pub fn install(self) {
        let output = self.output();
        let layer = self.layer(output);
        let _already_set_up = tracing_subscriber::registry().with(layer).try_init();
    }

    /// Like [`install`](Self::install), together with another layer with its own filter, such as
    /// one for traces.
    pub fn install_beside<L>(self, other: L)
    where
        L: Layer<Registry> + Send + Sync + 'static,
    {
        let shown = self.clone();
        let output = self.output();
        let lines = self.layer(output);
        let lines = lines.with_filter(filter_fn(move |metadata| shown.shows(metadata)));
        let _already_set_up = tracing_subscriber::registry().with(other).with(lines).try_init();
    }

    /// Standard error behind its thread, or standard error itself if the thread cannot be started.
    fn output(&self) -> Box<dyn Write + Send> {
        let logging = self.clone();
        let notice = move |count| logging.dropped(count);
        let (stderr, bytes_max) = (std::io::stderr(), self.backlog_bytes_max);
        let is_terminal = stderr.is_terminal();
        match Output::start(stderr, bytes_max, is_terminal, notice) {
            Ok(output) => Box::new(INSTALLED.get_or_init(|| output).clone()),
            Err(_) => Box::new(std::io::stderr()),
        }
    }

    /// Returns only the layer, for programs that combine it with others.
    pub fn layer<S, W>(self, writer: W) -> impl Layer<S> + Send + Sync + 'static
    where
        S: Subscriber + for<'a> LookupSpan<'a>,
        W: Write + Send + 'static,
    {
        Lines { logging: self, writer: Mutex::new(writer) }
    }

    fn shows(&self, metadata: &Metadata<'_>) -> bool {
        // Spans carry the object references, so they are needed at every level.
        if metadata.is_span() {
            return metadata.target() == OBJECTS;
        }
        let level = if self.debug || metadata.target().starts_with("kopf") || is_ours(metadata) {
            self.level
        } else {
            self.level.min(LevelFilter::INFO)
        };
        *metadata.level() <= level
    }
}

/// Waits until all lines are written, at most for `patience`. Returns whether they are.
///
/// [`Operator::main`](crate::Operator) calls this before it returns. A program with its own `main`
/// that uses [`Logging::install`] should call it too.
pub fn flush(patience: Duration) -> bool {
    INSTALLED.get().is_none_or(|output| output.wait(patience))
}

/// Prints a text to standard error after all lines, if they are read in time.
#[cfg(feature = "cli")]
pub(crate) fn print_last(text: String, patience: Duration) {
    flush(patience);
    let (done, is_done) = std::sync::mpsc::sync_channel(1);
    // Printing may block forever, so another thread does it.
    let printing = std::thread::Builder::new().spawn(move || {
        let _lost = std::io::stderr().write_all(text.as_bytes());
        let _ = done.send(());
    });
    if printing.is_ok() {
        let _ = is_done.recv_timeout(patience);
    }
}

/// Excludes the libraries that log every request at debug level.
fn is_ours(metadata: &Metadata<'_>) -> bool {
    const CHATTY: [&str; 7] = ["kube", "hyper", "h2", "rustls", "tower", "tonic", "mio"];
    !CHATTY.iter().any(|name| metadata.target().starts_with(name))
}

/// Whether the line comes from neither the framework, which posts its own events, nor a chatty
/// library.
fn is_of_handlers(metadata: &Metadata<'_>) -> bool {
    const OURS: [&str; 6] =
        ["kopf", "kopf_client", "kopf_core", "kopf_engine", "kopf_handler", "kopf_model"];
    let source = metadata.target().split(['.', ':']).next().unwrap_or_default();
    is_ours(metadata) && !OURS.contains(&source)
}

struct Lines<W> {
    logging: Logging,
    /// Every thread that logs writes whole lines here.
    writer: Mutex<W>,
}

/// The reference to an object, stored with its span: created for every object, rarely read. That of
/// a typical object is one allocation.
#[derive(Default)]
struct Reference {
    /// The values, concatenated.
    text: SmallVec<[u8; 160]>,
    /// The names of the fields, and the end offset of each value.
    fields: SmallVec<[(&'static str, usize); 5]>,
}

impl Reference {
    fn to_map(&self) -> Map<String, Value> {
        let mut start = 0;
        let parts = self.fields.iter().map(|(name, end)| {
            let part = String::from_utf8_lossy(&self.text[start..*end]);
            start = *end;
            ((*name).to_owned(), Value::from(part))
        });
        parts.collect()
    }
}

impl Visit for Reference {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.text.extend_from_slice(value.as_bytes());
        self.fields.push((field.name(), self.text.len()));
    }
}

impl<S, W> Layer<S> for Lines<W>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: Write + Send + 'static,
{
    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        self.logging.shows(metadata)
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if attributes.metadata().target() != OBJECTS {
            return;
        }
        let mut reference = Reference::default();
        attributes.record(&mut reference);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(reference);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let scope = context.event_scope(event);
        let reference = scope
            .into_iter()
            .flatten()
            .find_map(|span| span.extensions().get::<Reference>().map(Reference::to_map));
        if is_of_handlers(event.metadata()) {
            kopf_engine::lines::offer(engine_level(*event.metadata().level()), &fields.to_text());
        }
        let line = match self.logging.format {
            LogFormat::Json => self.logging.json(event.metadata(), fields, reference),
            LogFormat::Plain | LogFormat::Full => {
                self.logging.text(event.metadata(), &fields, reference.as_ref())
            }
        };
        // A full disk or a closed terminal must not stop the operator.
        if let Ok(mut writer) = self.writer.lock() {
            let _lost = writer.write_all((line + "\n").as_bytes());
        }
    }
}

impl Logging {
    /// The beginning of a text line.
    fn head(&self, target: &str, level: Level) -> String {
        if self.format != LogFormat::Full {
            return String::new();
        }
        let time = Zoned::now().strftime("%Y-%m-%d %H:%M:%S,%3f").to_string();
        format!("[{time}] {target:<20.20} [{:<8.8}] ", text_level(level))
    }

    /// The line that replaces the dropped ones.
    fn dropped(&self, count: u64) -> String {
        let lines = if count == 1 { "line was" } else { "lines were" };
        let text = format!("{count} log {lines} dropped: the standard error is not read in time.");
        match self.format {
            LogFormat::Json => {
                let time = Timestamp::now().strftime(JSON_TIME).to_string();
                format!("{}\n", json!({"message": text, "timestamp": time, "severity": "warn"}))
            }
            _ => format!("{}{text}\n", self.head("kopf", Level::WARN)),
        }
    }

    fn text(
        &self,
        metadata: &Metadata<'_>,
        fields: &Fields,
        reference: Option<&Map<String, Value>>,
    ) -> String {
        let mut line = self.head(targets::shown(metadata.target()), *metadata.level());
        if let Some(reference) = reference.filter(|_| self.prefix.unwrap_or(true)) {
            let part = |key| reference.get(key).and_then(Value::as_str);
            let name = part("name").unwrap_or_default();
            let _infallible = match part("namespace") {
                Some(namespace) => write!(line, "[{namespace}/{name}] "),
                None => write!(line, "[{name}] "),
            };
        }
        line.push_str(&fields.to_text());
        if let Some(details) = fields.others.get("details").and_then(Value::as_str) {
            let _infallible = write!(line, "\n{details}");
        }
        line
    }

    fn json(
        &self,
        metadata: &Metadata<'_>,
        mut fields: Fields,
        reference: Option<Map<String, Value>>,
    ) -> String {
        let mut line = Map::new();
        if self.prefix == Some(true)
            && let Some(reference) = &reference
        {
            let part = |key| reference.get(key).and_then(Value::as_str);
            let place = part("namespace").map(|it| format!("{it}/")).unwrap_or_default();
            let name = part("name").unwrap_or_default();
            fields.message = format!("[{place}{name}] {}", fields.message);
        }
        line.insert("message".into(), fields.message.into());
        if let Some(details) = fields.others.shift_remove("details") {
            line.insert("exc_info".into(), details);
        }
        line.append(&mut fields.others);
        let now = Timestamp::now().strftime(JSON_TIME).to_string();
        line.insert("timestamp".into(), now.into());
        if let Some(mut reference) = reference {
            let mut ordered = Map::new();
            for key in ["apiVersion", "kind", "name", "uid", "namespace"] {
                ordered.insert(key.into(), reference.remove(key).unwrap_or_default());
            }
            line.insert(self.refkey.clone(), ordered.into());
        }
        line.insert("severity".into(), json!(json_level(*metadata.level())));
        Value::from(line).to_string()
    }
}

fn engine_level(level: Level) -> kopf_core::logtext::Level {
    match level {
        Level::TRACE | Level::DEBUG => kopf_core::logtext::Level::Debug,
        Level::INFO => kopf_core::logtext::Level::Info,
        Level::WARN => kopf_core::logtext::Level::Warning,
        Level::ERROR => kopf_core::logtext::Level::Error,
    }
}

fn text_level(level: Level) -> &'static str {
    match level {
        Level::TRACE | Level::DEBUG => "DEBUG",
        Level::INFO => "INFO",
        Level::WARN => "WARNING",
        Level::ERROR => "ERROR",
    }
}

fn json_level(level: Level) -> &'static str {
    match level {
        Level::TRACE | Level::DEBUG => "debug",
        Level::INFO => "info",
        Level::WARN => "warn",
        Level::ERROR => "error",
    }
}

#[derive(Default)]
struct Fields {
    message: String,
    others: Map<String, Value>,
}

impl Fields {
    /// The message with its values.
    fn to_text(&self) -> String {
        let mut text = self.message.clone();
        for (key, value) in self.others.iter().filter(|(key, _)| *key != "details") {
            let _infallible = match value {
                Value::String(value) => write!(text, " {key}={value}"),
                other => write!(text, " {key}={other}"),
            };
        }
        text
    }

    fn add(&mut self, field: &Field, value: Value) {
        match (field.name(), value) {
            ("message", Value::String(text)) => self.message = text,
            (name, value) => {
                self.others.insert(name.to_owned(), value);
            }
        }
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field, format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, value.into());
    }
}

#[cfg(test)]
mod tests;
