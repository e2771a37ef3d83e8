//! Scrapers accept the text: families, cumulative buckets, escaped labels, an end marker.

use std::time::Duration;

use super::render;
use crate::reporting::status::{EngineWatches, HandlerStatus, Status, WatchStatus, WorkStatus};

fn status() -> Status {
    let handler = HandlerStatus {
        calls: 3,
        successes: 2,
        retries: 1,
        seconds: 0.5,
        ..HandlerStatus::default()
    };
    let handler = HandlerStatus { buckets: [1, 0, 0, 0, 2, 0, 0, 0, 0], ..handler };
    let watch = WatchStatus {
        resource: "widgets.v1.example.com".into(),
        age: Duration::from_millis(1500),
        restarts: 4,
        ..WatchStatus::default()
    };
    Status {
        ready: true,
        work: WorkStatus { queued: 7, ..WorkStatus::default() },
        handlers: [("say \"hi\"".to_owned(), handler)].into(),
        watches: vec![watch],
        requests: [(("PATCH".to_owned(), 200), 9)].into(),
        ..Status::default()
    }
}

#[test]
fn samples_carry_their_labels() {
    let text = render(&status());
    assert!(text.contains("kopf_api_requests_total{method=\"PATCH\",code=\"200\"} 9\n"), "{text}");
    assert!(text.contains(
        "kopf_watch_age_seconds{resource=\"widgets.v1.example.com\",namespace=\"\"} 1.5\n"
    ));
    assert!(text.contains("kopf_queue_due 7\n"), "{text}");
}

#[test]
fn the_engines_own_watches_are_distinguished_from_those_of_handlers() {
    let namespaces = WatchStatus { resource: "namespaces.v1".into(), ..WatchStatus::default() };
    let failing = WatchStatus { failing: Some("forbidden".into()), ..namespaces.clone() };
    let (watches, children) = (vec![namespaces.clone()], vec![namespaces.clone()]);
    let (discovery, peering) = (vec![failing], vec![namespaces]);
    let engine_watches = EngineWatches { discovery, children, peering };
    let status = Status { watches, engine_watches, ..Status::default() };
    let text = render(&status);
    let labels = "resource=\"namespaces.v1\",namespace=\"\"";
    for sample in [
        format!("kopf_watch_failing{{{labels}}} 0\n"),
        format!("kopf_watch_failing{{{labels},purpose=\"discovery\"}} 1\n"),
        format!("kopf_watch_failing{{{labels},purpose=\"children\"}} 0\n"),
        format!("kopf_watch_failing{{{labels},purpose=\"peering\"}} 0\n"),
        format!("kopf_watch_age_seconds{{{labels},purpose=\"discovery\"}} 0\n"),
    ] {
        assert!(text.contains(&sample), "{sample} is not in {text}");
    }
    let mut series: Vec<&str> = text.lines().filter_map(|line| line.split(' ').next()).collect();
    series.retain(|it| it.contains('{'));
    let count = series.len();
    series.sort_unstable();
    series.dedup();
    assert_eq!(series.len(), count, "no series twice: {text}");
}

#[test]
fn all_documented_metrics_are_present() {
    let text = render(&status());
    let families: Vec<&str> =
        text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
    for family in [
        "kopf_ready gauge",
        "kopf_queue_due gauge",
        "kopf_queue_age_seconds gauge",
        "kopf_queue_delayed gauge",
        "kopf_queue_wait_seconds histogram",
        "kopf_watch_age_seconds gauge",
        "kopf_watch_failing gauge",
        "kopf_watch_restarts counter",
        "kopf_watch_store_bytes gauge",
        "kopf_handler_outcomes counter",
        "kopf_handler_duration_seconds histogram",
        "kopf_events_lost counter",
        "kopf_api_requests counter",
    ] {
        assert!(families.contains(&family), "{family} is not among {families:?}");
    }
    let limited = Status { requests: [(("GET".to_owned(), 429), 2)].into(), ..Status::default() };
    let text = render(&limited);
    assert!(text.contains("kopf_api_requests_total{method=\"GET\",code=\"429\"} 2\n"), "{text}");
}

#[test]
fn buckets_are_cumulative_and_end_with_all_calls() {
    let text = render(&status());
    let bucket = |bound: &str| format!("handler=\"say \\\"hi\\\"\",le=\"{bound}\"}}");
    assert!(text.contains(&format!("{} 1\n", bucket("0.001"))), "{text}");
    assert!(text.contains(&format!("{} 3\n", bucket("+Inf"))), "{text}");
}

#[test]
fn waits_in_the_queue_are_counted_by_their_length() {
    let mut status = Status::default();
    for millis in [0, 700, 900, 100_000] {
        status.work.queue_waits.note(std::time::Duration::from_millis(millis));
    }
    let text = render(&status);
    for sample in ["bucket{le=\"0.5\"} 1", "bucket{le=\"1\"} 3", "bucket{le=\"+Inf\"} 4", "count 4"]
    {
        assert!(text.contains(&format!("kopf_queue_wait_seconds_{sample}\n")), "{text}");
    }
}

#[test]
fn every_line_is_a_comment_or_a_sample_and_the_last_one_ends_the_text() {
    let text = render(&status());
    assert!(text.ends_with("# EOF\n"));
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (_, value) = line.rsplit_once(' ').unwrap();
        assert!(value.parse::<f64>().is_ok(), "{line}");
    }
}
