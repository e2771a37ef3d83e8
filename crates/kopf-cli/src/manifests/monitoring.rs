//! Monitoring of the operator: alert rules for Prometheus and a dashboard for Grafana.
//!
//! Pure, and derived from the handlers: each has its own rules and panels. The engine defines the
//! metrics; a test compares the queries with what a running operator exports.

use kopf_core::Handler;
use kopf_core::handler::Family;
use serde_json::{Value, json};

use super::{Options, extras};

/// How long a watch may be silent, in seconds; longer than the engine's own limit.
const SILENCE_SECONDS: u32 = 150;
/// How long an object may wait for its handlers, in seconds.
const WAIT_SECONDS: u32 = 60;
/// The width of the dashboard.
const COLUMNS: usize = 24;

/// The alert rules, as the resource of the Prometheus operator.
#[must_use]
pub fn rules(handlers: &[Handler], options: &Options) -> Value {
    let name = &options.name;
    let mut rules = operator_rules(name, handlers);
    rules.extend(measured(handlers).flat_map(|handler| handler_rules(name, &handler.id)));
    json!({
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": name, "namespace": options.namespace, "labels": extras::labels(options)},
        "spec": {"groups": [{"name": name, "rules": rules}]},
    })
}

/// The dashboard, in Grafana's import format.
#[must_use]
pub fn dashboard(handlers: &[Handler], options: &Options) -> Value {
    let name = &options.name;
    let mut panels = Panels::default();
    overview(&mut panels);
    panels.row("Watches");
    panels.add(
        "Time since the server spoke",
        "s",
        &[("kopf_watch_age_seconds{job=\"$job\"}", "{{resource}}")],
    );
    panels.add("Known objects", "short", &[("kopf_watch_objects{job=\"$job\"}", "{{resource}}")]);
    let restarts = "rate(kopf_watch_restarts_total{job=\"$job\"}[$__rate_interval])";
    panels.add("Restarts per second", "short", &[(restarts, "{{resource}}")]);
    for handler in measured(handlers) {
        of_handler(&mut panels, &handler.id);
    }
    let source = json!({"name": "datasource", "type": "datasource", "query": "prometheus"});
    let job = json!({
        "name": "job", "type": "textbox", "label": "Job", "query": name,
        "current": {"text": name, "value": name},
    });
    json!({
        "title": format!("Operator {name}"),
        "uid": format!("kopf-{name}"),
        "tags": ["kopf", "operator"],
        "schemaVersion": 39,
        "time": {"from": "now-1h", "to": "now"},
        "refresh": "30s",
        "templating": {"list": [source, job]},
        "panels": panels.0,
    })
}

/// All queries of rules and dashboard.
#[must_use]
pub fn queries(handlers: &[Handler], options: &Options) -> Vec<String> {
    let mut found = Vec::new();
    collect(&rules(handlers, options), &mut found);
    collect(&dashboard(handlers, options), &mut found);
    found
}

fn collect(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            let query = fields.get("expr").and_then(Value::as_str);
            found.extend(query.map(str::to_owned));
            fields.values().for_each(|value| collect(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| collect(value, found)),
        _ => {}
    }
}

/// The handlers that the engine measures: those of objects.
fn measured(handlers: &[Handler]) -> impl Iterator<Item = &Handler> {
    let is_measured = |handler: &&Handler| {
        !matches!(handler.kind.family(), Family::Activities | Family::Conversion | Family::Indexing)
    };
    let mut seen = std::collections::BTreeSet::new();
    handlers.iter().filter(is_measured).filter(move |handler| seen.insert(handler.id.to_string()))
}

fn operator_rules(name: &str, handlers: &[Handler]) -> Vec<Value> {
    let job = format!("{{job=\"{name}\"}}");
    let mut rules = vec![
        alert(
            "KopfOperatorAbsent",
            &format!("absent(kopf_ready{job})"),
            "5m",
            "critical",
            &format!("Nothing is known of the operator {name}"),
        ),
        alert(
            "KopfOperatorNotReady",
            &format!("max(kopf_ready{job}) == 0"),
            "10m",
            "critical",
            &format!("The operator {name} has not listed all its objects"),
        ),
        alert(
            "KopfWatchFailing",
            &format!("max by (resource, namespace) (kopf_watch_failing{job}) > 0"),
            "5m",
            "critical",
            "The watch of {{ $labels.resource }} fails",
        ),
        alert(
            "KopfWatchSilent",
            &format!(
                "max by (resource, namespace) (kopf_watch_age_seconds{job}) > {SILENCE_SECONDS}"
            ),
            "2m",
            "critical",
            "The watch of {{ $labels.resource }} is silent",
        ),
        alert(
            "KopfQueueSlow",
            &format!("max(kopf_queue_age_seconds{job}) > {WAIT_SECONDS}"),
            "10m",
            "warning",
            &format!("Objects wait too long for the operator {name}"),
        ),
        alert(
            "KopfThrottled",
            &format!("sum(rate(kopf_api_requests_total{{job=\"{name}\",code=\"429\"}}[5m])) > 0.1"),
            "10m",
            "warning",
            &format!("The API server slows down the operator {name}"),
        ),
    ];
    if handlers.iter().any(|handler| handler.kind.family() == Family::Watching) {
        rules.push(alert(
            "KopfEventsLost",
            &format!("increase(kopf_events_lost_total{job}[10m]) > 0"),
            "0m",
            "warning",
            &format!("Event handlers of the operator {name} are too slow"),
        ));
    }
    rules
}

fn handler_rules(name: &str, id: &str) -> [Value; 2] {
    let selected = |outcome: &str| {
        format!(
            "kopf_handler_outcomes_total{{job=\"{name}\",handler=\"{}\",outcome=\"{outcome}\"}}",
            escaped(id)
        )
    };
    let (failed, retried) = (selected("failure"), selected("retry"));
    let all = format!("kopf_handler_outcomes_total{{job=\"{name}\",handler=\"{}\"}}", escaped(id));
    let share = format!("sum(rate({retried}[15m])) / sum(rate({all}[15m])) > 0.5");
    let mut alerts = [
        alert(
            "KopfHandlerFailed",
            &format!("increase({failed}[15m]) > 0"),
            "0m",
            "warning",
            &format!("The handler {id} has given up on an object"),
        ),
        alert(
            "KopfHandlerRetrying",
            &share,
            "15m",
            "warning",
            &format!("More than half of the calls of the handler {id} fail"),
        ),
    ];
    for alert in &mut alerts {
        // Alerts with the same name must differ in their labels.
        alert["labels"]["handler"] = json!(id);
    }
    alerts
}

fn alert(name: &str, query: &str, after: &str, severity: &str, summary: &str) -> Value {
    json!({
        "alert": name, "expr": query, "for": after,
        "labels": {"severity": severity}, "annotations": {"summary": summary},
    })
}

fn overview(panels: &mut Panels) {
    panels.row("Overview");
    panels.add(
        "Ready, paused",
        "short",
        &[("max(kopf_ready{job=\"$job\"})", "ready"), ("max(kopf_paused{job=\"$job\"})", "paused")],
    );
    panels.add(
        "Objects",
        "short",
        &[
            ("sum(kopf_queue_due{job=\"$job\"})", "due"),
            ("sum(kopf_running{job=\"$job\"})", "being handled"),
            ("sum(kopf_queue_delayed{job=\"$job\"})", "waiting for later"),
            ("sum(kopf_background{job=\"$job\"})", "daemons and timers"),
        ],
    );
    panels.add("Longest wait", "s", &[("max(kopf_queue_age_seconds{job=\"$job\"})", "wait")]);
    let requests =
        "sum by (method, code) (rate(kopf_api_requests_total{job=\"$job\"}[$__rate_interval]))";
    panels.add("API requests per second", "reqps", &[(requests, "{{method}} {{code}}")]);
    let outcomes =
        "sum by (outcome) (rate(kopf_handler_outcomes_total{job=\"$job\"}[$__rate_interval]))";
    panels.add("Outcomes per second", "short", &[(outcomes, "{{outcome}}")]);
    panels.add(
        "Memory of the stores",
        "bytes",
        &[("sum(kopf_store_bytes{job=\"$job\"})", "stores")],
    );
}

fn of_handler(panels: &mut Panels, id: &str) {
    panels.row(&format!("Handler {id}"));
    let id = escaped(id);
    let outcomes = format!(
        "sum by (outcome) (rate(kopf_handler_outcomes_total{{job=\"$job\",handler=\"{id}\"}}[$__rate_interval]))"
    );
    panels.add("Outcomes per second", "short", &[(&outcomes, "{{outcome}}")]);
    let quantile = |share: &str| {
        format!(
            "histogram_quantile({share}, sum by (le) (rate(\
             kopf_handler_duration_seconds_bucket{{job=\"$job\",handler=\"{id}\"}}[$__rate_interval])))"
        )
    };
    let (half, most) = (quantile("0.5"), quantile("0.95"));
    panels.add("Duration", "s", &[(&half, "median"), (&most, "95 %")]);
}

/// Panels from left to right, three in a row.
#[derive(Default)]
struct Panels(Vec<Value>);

impl Panels {
    const WIDTH: usize = COLUMNS / 3;
    const HEIGHT: usize = 8;

    fn row(&mut self, title: &str) {
        let place = json!({"x": 0, "y": self.bottom(), "w": COLUMNS, "h": 1});
        let id = self.0.len() + 1;
        self.0
            .push(json!({"id": id, "type": "row", "title": title, "gridPos": place, "panels": []}));
    }

    fn add(&mut self, title: &str, unit: &str, queries: &[(&str, &str)]) {
        let last = self.0.last().map(|panel| &panel["gridPos"]);
        let number = |field: &str| last.and_then(|last| last[field].as_u64()).unwrap_or(0);
        let after = number("x") + number("w");
        let fits = number("h") > 1 && after + Self::WIDTH as u64 <= COLUMNS as u64;
        let (x, y) = if fits { (after, number("y")) } else { (0, self.bottom()) };
        let targets: Vec<Value> = queries
            .iter()
            .zip('A'..)
            .map(
                |((query, legend), id)| json!({"refId": id, "expr": query, "legendFormat": legend}),
            )
            .collect();
        self.0.push(json!({
            "id": self.0.len() + 1,
            "type": "timeseries",
            "title": title,
            "gridPos": {"x": x, "y": y, "w": Self::WIDTH, "h": Self::HEIGHT},
            "datasource": {"type": "prometheus", "uid": "${datasource}"},
            "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
            "targets": targets,
        }));
    }

    fn bottom(&self) -> u64 {
        let end = |panel: &Value| {
            let number = |field: &str| panel["gridPos"][field].as_u64().unwrap_or(0);
            number("y") + number("h")
        };
        self.0.iter().map(end).max().unwrap_or(0)
    }
}

fn escaped(id: &str) -> String {
    id.replace('\\', "\\\\").replace('"', "\\\"")
}

#[cfg(test)]
mod tests;
