//! The operator as a whole: status, problems, charts, handlers.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::answers::plain;
use crate::asked::Asked;
use crate::desk::Desk;
use crate::problems::problems;

/// The state of the operator, with samples after the requested time.
pub(crate) fn overview(desk: &Desk, asked: &Asked) -> Value {
    let now = Timestamp::now();
    let known = desk.known.lock();
    let throttled = known.samples.throttled_lately(now.as_millisecond());
    let (problems, problem_count) = problems(known.status.as_ref(), &known.tables, throttled, now);
    json!({
        "now": now,
        "operator": {
            "address": desk.operator.to_string(),
            "name": known.report.as_ref().and_then(|report| report.name.as_ref()),
            "failure": known.failure,
            "heard_at": known.heard_at,
            "version": known.report.as_ref().map(|report| &report.version),
            "handlers": known.report.as_ref().map(|report| report.handlers.len()),
        },
        "status": known.status.as_ref().map(plain),
        "samples": known.samples.after(asked.number("after")),
        "problems": problems,
        "problem_count": problem_count,
        "phases": known.tables.counts(),
        "blind": known.blind,
        "embedded": desk.embedded.is_some(),
        "actions": known.allows_actions(),
        "kubeconfig": desk.kubeconfig,
    })
}

/// All handlers with their counts.
pub(crate) fn handlers(desk: &Desk) -> Value {
    let known = desk.known.lock();
    let report = known.report.as_ref();
    let counts = known.status.as_ref().map(|status| &status.handlers);
    json!({
        "handlers": report.map(|report| plain(&report.handlers)),
        "bounds": report.map(|report| &report.latency_bounds),
        "counts": counts.map(plain),
    })
}
