//! The operator as a whole: status, problems, charts, handlers.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::problems::problems;
use crate::request::PageRequest;
use crate::response::to_json;
use crate::shared::Shared;

/// The state of the operator, with samples after the requested time.
pub(crate) fn overview(shared: &Shared, request: &PageRequest) -> Value {
    let now = Timestamp::now();
    let known = shared.known.lock();
    let throttled = known.samples.throttled_lately(now.as_millisecond());
    let (problems, problem_count) = problems(known.status.as_ref(), &known.tables, throttled, now);
    json!({
        "now": now,
        "operator": {
            "address": shared.operator.to_string(),
            "name": known.report.as_ref().and_then(|report| report.name.as_ref()),
            "failure": known.failure,
            "answered_at": known.answered_at,
            "version": known.report.as_ref().map(|report| &report.version),
            "handlers": known.report.as_ref().map(|report| report.handlers.len()),
        },
        "status": known.status.as_ref().map(to_json),
        "samples": known.samples.after(request.number("after")),
        "problems": problems,
        "problem_count": problem_count,
        "phases": known.tables.counts(),
        "watch_errors": known.watch_errors,
        "embedded": shared.embedded.is_some(),
        "actions": known.allows_actions(),
        "kubeconfig": shared.kubeconfig,
    })
}

/// All handlers with their counts.
pub(crate) fn handlers(shared: &Shared) -> Value {
    let known = shared.known.lock();
    let report = known.report.as_ref();
    let counts = known.status.as_ref().map(|status| &status.handlers);
    json!({
        "handlers": report.map(|report| to_json(&report.handlers)),
        "bounds": report.map(|report| &report.latency_bounds),
        "counts": counts.map(to_json),
    })
}
