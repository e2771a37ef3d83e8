//! `/metrics`, with upstream's names: requests, their durations, stored objects.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use parking_lot::Mutex;

use crate::Verb;
use crate::request::RequestInfo;
use crate::store::Snapshot;

/// Upper bounds of the duration buckets, in seconds.
const BUCKETS: [f64; 12] = [0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.8, 1.5, 3.0, 6.0, 15.0, 60.0];
/// Further series are dropped, since clients choose the names of resources.
const SERIES_MAX: usize = 10_000;

/// Counters of one server.
#[derive(Default)]
pub(crate) struct Metrics {
    // Locked for one addition, or while the page is generated.
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    requests: BTreeMap<(Labels, u16), u64>,
    durations: BTreeMap<Labels, Durations>,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Labels {
    verb: &'static str,
    group: String,
    version: String,
    resource: String,
    subresource: String,
    scope: &'static str,
}

#[derive(Default)]
struct Durations {
    buckets: [u64; BUCKETS.len()],
    count: u64,
    seconds: f64,
}

impl Labels {
    fn of(info: &RequestInfo) -> Self {
        let scope = match (info.name.is_empty(), info.namespace.is_empty()) {
            (false, _) => "resource",
            (true, false) => "namespace",
            (true, true) => "cluster",
        };
        let verb = match info.verb {
            Verb::Get => "GET",
            Verb::List => "LIST",
            Verb::Watch => "WATCH",
            Verb::Create => "POST",
            Verb::Update => "PUT",
            Verb::Patch => "PATCH",
            Verb::Delete => "DELETE",
            Verb::DeleteCollection => "DELETECOLLECTION",
        };
        Self {
            verb,
            group: info.group.clone(),
            version: info.version.clone(),
            resource: info.resource.clone(),
            subresource: info.subresource.clone(),
            scope,
        }
    }

    fn text(&self) -> String {
        let Self { verb, group, version, resource, subresource, scope } = self;
        format!(
            "group={group:?},resource={resource:?},scope={scope:?},subresource={subresource:?},\
             verb={verb:?},version={version:?}"
        )
    }
}

impl Metrics {
    /// Counts an answered request; all nonexistent resources are counted together.
    pub(crate) fn count(&self, info: &RequestInfo, code: u16, duration: Duration) {
        let mut labels = Labels::of(info);
        let mut state = self.state.lock();
        if code == 404 && labels.scope != "resource" || state.requests.len() >= SERIES_MAX {
            labels.resource.clear();
            labels.subresource.clear();
        }
        if info.verb != Verb::Watch {
            let durations = state.durations.entry(labels.clone()).or_default();
            let seconds = duration.as_secs_f64();
            durations.count += 1;
            durations.seconds += seconds;
            let buckets = BUCKETS.iter().zip(&mut durations.buckets);
            buckets.filter(|(end, _)| seconds <= **end).for_each(|(_, count)| *count += 1);
        }
        *state.requests.entry((labels, code)).or_default() += 1;
    }

    /// The page, in the text format of Prometheus.
    pub(crate) fn page(&self, snapshot: &Snapshot) -> String {
        let mut page = String::new();
        // Writing to a string cannot fail.
        let _ = self.write(&mut page, snapshot);
        page
    }

    fn write(&self, page: &mut String, snapshot: &Snapshot) -> std::fmt::Result {
        let state = self.state.lock();
        let head = |page: &mut String, name: &str, kind: &str, help: &str| {
            writeln!(page, "# HELP {name} {help}\n# TYPE {name} {kind}")
        };
        let name = "apiserver_request_total";
        head(page, name, "counter", "Requests by resource, verb and code.")?;
        for ((labels, code), count) in &state.requests {
            writeln!(page, "{name}{{code=\"{code}\",{}}} {count}", labels.text())?;
        }
        let name = "apiserver_request_duration_seconds";
        head(page, name, "histogram", "Time until the answer, in seconds; without watches.")?;
        for (labels, durations) in &state.durations {
            let text = labels.text();
            for (end, count) in BUCKETS.iter().zip(durations.buckets) {
                writeln!(page, "{name}_bucket{{{text},le=\"{end}\"}} {count}")?;
            }
            let Durations { count, seconds, .. } = durations;
            writeln!(page, "{name}_bucket{{{text},le=\"+Inf\"}} {count}")?;
            writeln!(page, "{name}_sum{{{text}}} {seconds}\n{name}_count{{{text}}} {count}")?;
        }
        let name = "apiserver_storage_objects";
        head(page, name, "gauge", "Stored objects by resource.")?;
        for (table, objects) in snapshot.tables() {
            writeln!(page, "{name}{{resource={table:?}}} {}", objects.len())?;
        }
        let version = concat!("v1.33.0+kopf-", env!("CARGO_PKG_VERSION"));
        let name = "kubernetes_build_info";
        head(page, name, "gauge", "The version of this server.")?;
        writeln!(page, "{name}{{git_version={version:?},major=\"1\",minor=\"33\"}} 1")
    }
}
