//! Log lines in all formats.

use std::io::Write;
use std::sync::{Arc, Mutex};

use tracing::level_filters::LevelFilter;
use tracing_subscriber::layer::SubscriberExt as _;

use super::{LogFormat, Logging};

#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no test panics while writing").write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn lines(logging: Logging) -> Vec<String> {
    let written = Written::default();
    let subscriber = tracing_subscriber::registry().with(logging.layer(written.clone()));
    tracing::subscriber::with_default(subscriber, || {
        let span = tracing::info_span!(
            target: "kopf.objects", "object",
            apiVersion = "kopf.dev/v1", kind = "KopfExample", namespace = "b", name = "a", uid = "u",
        );
        span.in_scope(|| {
            tracing::info!(target: "kopf.objects", "Handler 'create_fn' succeeded.");
            tracing::warn!(target: "kopf.objects", retry = 3, "slow");
            tracing::debug!(target: "hyper::client", "noise of a library");
        });
        tracing::info!(target: "kopf.activities", "no object here");
    });
    let bytes = written.0.lock().expect("no test panics while writing").clone();
    String::from_utf8(bytes).expect("lines are text").lines().map(str::to_owned).collect()
}

#[test]
fn plain_lines_have_the_prefix_of_the_object() {
    assert_eq!(
        lines(Logging { format: LogFormat::Plain, ..Logging::default() }),
        ["[b/a] Handler 'create_fn' succeeded.", "[b/a] slow retry=3", "no object here"]
    );
}

#[test]
fn quiet_warnings_keep_their_object() {
    let level = LevelFilter::WARN;
    assert_eq!(
        lines(Logging { format: LogFormat::Plain, level, ..Logging::default() }),
        ["[b/a] slow retry=3"]
    );
}

#[test]
fn full_lines_have_time_source_and_level() {
    let lines = lines(Logging::default());
    let (time, rest) = lines[0].split_at("[2019-02-25 14:06:54,742]".len());
    assert!(time.ends_with(']') && time.contains(','), "{time}");
    assert_eq!(rest, " kopf.objects         [INFO    ] [b/a] Handler 'create_fn' succeeded.");
}

#[test]
fn json_lines_refer_to_the_object() {
    let lines = lines(Logging { format: LogFormat::Json, ..Logging::default() });
    let line: serde_json::Value = serde_json::from_str(&lines[0]).expect("a line is JSON");
    assert_eq!(line["message"], "Handler 'create_fn' succeeded.");
    assert_eq!(line["severity"], "info");
    assert_eq!(
        line["object"].to_string(),
        r#"{"apiVersion":"kopf.dev/v1","kind":"KopfExample","name":"a","uid":"u","namespace":"b"}"#
    );
}

#[test]
fn dropped_lines_are_counted_in_the_format_of_the_others() {
    let notice = |format, count| Logging { format, ..Logging::default() }.dropped(count);
    let one = notice(LogFormat::Plain, 1);
    assert_eq!(one, "1 log line was dropped: the standard error is not read in time.\n");
    let full = notice(LogFormat::Full, 2);
    assert!(full.contains("] kopf                 [WARNING ] 2 log lines were"), "{full}");
    let json = notice(LogFormat::Json, 2);
    let json: serde_json::Value = serde_json::from_str(&json).expect("a line is JSON");
    assert_eq!(json["severity"], "warn");
}
