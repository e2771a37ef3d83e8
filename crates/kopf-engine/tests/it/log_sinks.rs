//! Sinks of log lines: each operator has its own, besides the subscriber of the process.

use std::sync::Arc;

use kopf_core::handler::HandlerKind;
use kopf_core::invoke::{HandlerError, Output};
use kopf_core::log_line::Level;
use kopf_engine::{LogRecord, LogSink};
use parking_lot::Mutex;
use serde_json::json;

use crate::logged::Logged;
use crate::world::{World, handler};

/// A line as a test looks at it: logger, level, object, text.
type Noted = (&'static str, Level, Option<String>, String);

/// Keeps all lines, and the errors that came with them.
#[derive(Default)]
struct Sink {
    lines: Mutex<Vec<Noted>>,
    errors: Mutex<Vec<&'static str>>,
}

/// The original error of a front end.
struct KeyError(&'static str);

impl LogSink for Sink {
    fn log(&self, record: &LogRecord<'_>) {
        let object = record.subject.map(|subject| subject.object.name().to_owned());
        let text = record.line.text.to_string();
        self.lines.lock().push((record.logger, record.line.level, object, text));
        let error = record.error.and_then(|error| error.0.downcast_ref::<KeyError>());
        self.errors.lock().extend(error.map(|error| error.0));
    }
}

impl Sink {
    fn has(&self, logger: &str, level: Level, object: Option<&str>, text: &str) -> bool {
        self.lines.lock().iter().any(|it| {
            it.0 == logger && it.1 == level && it.2.as_deref() == object && it.3.contains(text)
        })
    }

    fn texts(&self) -> String {
        self.lines.lock().iter().map(|line| format!("{}\n", line.3)).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn each_of_two_operators_in_a_process_logs_into_its_own_sink() {
    let (logged, _guard) = Logged::everything();
    let sinks = [Arc::new(Sink::default()), Arc::new(Sink::default())];
    let mut running = Vec::new();
    for (sink, id) in sinks.iter().zip(["first_fn", "second_fn"]) {
        let world = World::new().await;
        let handlers = vec![
            world.noting(id, HandlerKind::Create),
            handler("startup_fn", HandlerKind::Startup, |_| Ok(Output::Nothing)),
        ];
        let builder = world.engine(handlers).log_sink(Arc::clone(sink) as Arc<_>);
        running.push((world.start_built(builder).await, world));
    }
    for ((_, world), name) in running.iter().zip(["one", "two"]) {
        world.create(name, json!({})).await;
        world.until_handled(name).await;
    }
    for (engine, _) in running {
        engine.stop().await.expect("a clean end");
    }
    let [first, second] = sinks;
    let succeeded = "Handler 'first_fn' succeeded.";
    assert!(first.has("kopf.objects", Level::Info, Some("one"), succeeded), "{}", first.texts());
    let invoked = "Handler 'second_fn' is invoked.";
    assert!(second.has("kopf.objects", Level::Debug, Some("two"), invoked), "{}", second.texts());
    for sink in [&first, &second] {
        let is_told = sink.has("kopf.activities", Level::Info, None, "'startup_fn' succeeded.");
        assert!(is_told, "{}", sink.texts());
    }
    assert!(!first.texts().contains("second_fn") && !second.texts().contains("first_fn"));
    let is_other = |line: &Noted, other: &str| line.2.as_deref() == Some(other);
    assert!(!first.lines.lock().iter().any(|line| is_other(line, "two")));
    assert!(!second.lines.lock().iter().any(|line| is_other(line, "one")));
    // The subscriber of the process has the lines of both.
    assert!(logged.count(succeeded) == 1 && logged.count(invoked) == 1);
}

#[tokio::test(start_paused = true)]
async fn a_sink_gets_the_original_error_with_the_line_about_it() {
    let world = World::new().await;
    let create = handler("create_fn", HandlerKind::Create, |_| {
        let error = HandlerError::Permanent { message: "no key".to_owned() };
        Err(error.with_object(Arc::new(KeyError("name"))))
    });
    let sink = Arc::new(Sink::default());
    let builder = world.engine(vec![create]).log_sink(Arc::clone(&sink) as Arc<_>);
    let engine = world.start_built(builder).await;
    world.create("a", json!({})).await;
    world.until_handled("a").await;
    assert_eq!(*sink.errors.lock(), ["name"]);
    assert!(sink.has("kopf.objects", Level::Error, Some("a"), "no key"), "{}", sink.texts());
    engine.stop().await.expect("a clean end");
}
