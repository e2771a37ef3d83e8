//! The engine's status as OpenMetrics text, for `/metrics`.
//!
//! Pure. The number of series is bounded: by handlers, watched resources, methods and codes, never
//! by objects.

use std::fmt::{Display, Write as _};

use crate::reporting::status::{LATENCY_BOUNDS, Status, WAIT_BOUNDS, WatchStatus};

/// The media type of the text.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Renders all metrics.
#[must_use]
pub(crate) fn render(status: &Status) -> String {
    let mut text = Text::default();
    engine(&mut text, status);
    leadership(&mut text, status);
    watches(&mut text, status);
    handlers(&mut text, status);
    let help = "Events of objects whose event handlers were too slow for them.";
    text.family("kopf_events_lost", "counter", help);
    text.sample("kopf_events_lost_total", &[], &status.work.events_lost);
    text.family("kopf_api_requests", "counter", "Answers of the API server; code 0 is no answer.");
    for ((method, code), count) in &status.requests {
        let labels = [("method", method.as_str()), ("code", &code.to_string())];
        text.sample("kopf_api_requests_total", &labels, count);
    }
    text.0.push_str("# EOF\n");
    text.0
}

fn engine(text: &mut Text, status: &Status) {
    let queue_age = status.work.queue_age.as_secs_f64();
    let gauges: [(&str, &str, f64); 12] = [
        ("kopf_ready", "Whether all watches have listed.", f64::from(u8::from(status.ready))),
        ("kopf_paused", "Whether a peer has precedence.", f64::from(u8::from(status.paused))),
        ("kopf_queue_due", "Objects waiting for being handled now.", count(status.work.queued)),
        ("kopf_queue_age_seconds", "How long the first of them has been waiting.", queue_age),
        ("kopf_queue_delayed", "Objects waiting for a later moment.", count(status.work.delayed)),
        ("kopf_running", "Objects being handled.", count(status.work.running)),
        ("kopf_background", "Daemons and timers.", count(status.work.background)),
        ("kopf_threads_busy", "Blocking handlers that run.", count(status.work.blocking)),
        (
            "kopf_threads_awaited",
            "Blocking handlers that wait.",
            count(status.work.blocking_waiting),
        ),
        ("kopf_store_bytes", "The approximate size of the stores.", count(status.store_bytes)),
        ("kopf_writes_in_flight", "Writes under way.", count(status.work.write_load.0)),
        ("kopf_writes_in_flight_max", "Writes allowed at once.", count(status.work.write_load.1)),
    ];
    for (name, help, value) in gauges {
        text.family(name, "gauge", help);
        text.sample(name, &[], &value);
    }
    let (name, waits) = ("kopf_queue_wait_seconds", &status.work.queue_waits);
    text.family(name, "histogram", "How long objects waited before they were handled.");
    text.histogram(name, &[], &WAIT_BOUNDS, &waits.buckets);
    text.sample("kopf_queue_wait_seconds_sum", &[], &waits.seconds);
    text.sample("kopf_queue_wait_seconds_count", &[], &waits.count);
}

/// Without replicas there is nothing to report.
fn leadership(text: &mut Text, status: &Status) {
    let Some(leadership) = &status.leadership else { return };
    let mut gauge = |name, help, value: f64| {
        text.family(name, "gauge", help);
        text.sample(name, &[], &value);
    };
    let leads = f64::from(u8::from(leadership.leads));
    gauge("kopf_is_leader", "Whether this replica leads, or has a share.", leads);
    if let Some(term) = leadership.term {
        let term = usize::try_from(term).unwrap_or(usize::MAX);
        gauge("kopf_leader_term", "The number of the term.", count(term));
    }
    if let Some((held, all)) = &leadership.ranges {
        gauge("kopf_shard_ranges", "The ranges of this replica.", count(held.len()));
        gauge("kopf_shard_ranges_all", "All ranges.", f64::from(*all));
        gauge("kopf_shard_members", "The members that share them.", count(leadership.members));
    }
    if let Some(handover) = leadership.handover {
        let help = "How long the last hand-over of ranges took.";
        gauge("kopf_shard_handover_seconds", help, handover.as_secs_f64());
    }
}

fn watches(text: &mut Text, status: &Status) {
    let watches: Vec<Labelled<'_>> = status.watches.iter().map(|it| labelled(it, None)).collect();
    // An operator may handle namespaces too: series must differ.
    let own = [
        ("discovery", &status.engine_watches.discovery),
        ("children", &status.engine_watches.children),
        ("peering", &status.engine_watches.peering),
    ];
    let own = own.into_iter().flat_map(|(purpose, watches)| {
        watches.iter().map(move |watch| labelled(watch, Some(purpose)))
    });
    let all: Vec<Labelled<'_>> = watches.iter().cloned().chain(own).collect();
    text.family("kopf_watch_age_seconds", "gauge", "Time since the server spoke on a watch.");
    for (labels, watch) in &all {
        text.sample("kopf_watch_age_seconds", labels, &watch.age.as_secs_f64());
    }
    text.family("kopf_watch_failing", "gauge", "Whether a watch does not work at the moment.");
    for (labels, watch) in &all {
        text.sample("kopf_watch_failing", labels, &u8::from(watch.failing.is_some()));
    }
    text.family("kopf_watch_objects", "gauge", "Objects known from a watch.");
    for (labels, watch) in &watches {
        text.sample("kopf_watch_objects", labels, &watch.objects);
    }
    text.family("kopf_watch_store_bytes", "gauge", "The approximate size of what is kept of them.");
    for (labels, watch) in &watches {
        text.sample("kopf_watch_store_bytes", labels, &watch.store_bytes);
    }
    text.family("kopf_watch_restarts", "counter", "How often a watch was started again.");
    for (labels, watch) in &all {
        text.sample("kopf_watch_restarts_total", labels, &watch.restarts);
    }
}

type Labelled<'a> = (Vec<(&'a str, &'a str)>, &'a WatchStatus);

fn labelled<'a>(watch: &'a WatchStatus, purpose: Option<&'a str>) -> Labelled<'a> {
    let namespace = watch.namespace.as_deref().unwrap_or_default();
    let labels = [("resource", watch.resource.as_str()), ("namespace", namespace)];
    (labels.into_iter().chain(purpose.map(|it| ("purpose", it))).collect(), watch)
}

fn handlers(text: &mut Text, status: &Status) {
    text.family("kopf_handler_outcomes", "counter", "How calls of a handler ended.");
    for (id, handler) in &status.handlers {
        let outcomes = [
            ("success", handler.successes),
            ("retry", handler.retries),
            ("failure", handler.failures),
        ];
        for (outcome, count) in outcomes {
            let labels = [("handler", id.as_str()), ("outcome", outcome)];
            text.sample("kopf_handler_outcomes_total", &labels, &count);
        }
    }
    let help = "How long calls of a handler took.";
    text.family("kopf_handler_duration_seconds", "histogram", help);
    for (id, handler) in &status.handlers {
        let labels = [("handler", id.as_str())];
        let name = "kopf_handler_duration_seconds";
        text.histogram(name, &labels, &LATENCY_BOUNDS, &handler.buckets);
        text.sample("kopf_handler_duration_seconds_sum", &labels, &handler.seconds);
        text.sample("kopf_handler_duration_seconds_count", &labels, &handler.calls);
    }
}

#[derive(Default)]
struct Text(String);

impl Text {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "# TYPE {name} {kind}\n# HELP {name} {help}");
    }

    /// The cumulative buckets; there is one more than bounds.
    fn histogram(&mut self, name: &str, labels: &[(&str, &str)], bounds: &[f64], buckets: &[u64]) {
        let mut below = 0;
        let bounds = bounds.iter().map(ToString::to_string).chain(["+Inf".to_owned()]);
        for (bound, count) in bounds.zip(buckets) {
            below += count;
            let labels = [labels, &[("le", bound.as_str())]].concat();
            self.sample(&format!("{name}_bucket"), &labels, &below);
        }
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: &dyn Display) {
        self.0.push_str(name);
        for (index, (label, text)) in labels.iter().enumerate() {
            let open = if index == 0 { '{' } else { ',' };
            let _ = write!(self.0, "{open}{label}=\"{}\"", escape(text));
        }
        let close = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.0, "{close} {value}");
    }
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn count(number: usize) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    let number = number as f64;
    number
}

#[cfg(test)]
mod tests;
