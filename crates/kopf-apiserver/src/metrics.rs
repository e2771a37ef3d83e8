//! `/metrics`, with upstream's names: requests, their durations, stored objects.

use std::fmt::Write;
use std::time::Duration;

use indexmap::{Equivalent, IndexMap};
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
    series: IndexMap<Labels, Series, foldhash::fast::RandomState>,
    /// The number of all codes of all series.
    codes: usize,
}

/// The requests with the same labels.
#[derive(Default)]
struct Series {
    /// Sorted by code.
    codes: Vec<(u16, u64)>,
    durations: Durations,
}

/// Labels as they are in a request; they are copied for a new series only.
#[derive(PartialEq, Eq, Hash)]
struct Borrowed<'a> {
    verb: &'static str,
    group: &'a str,
    version: &'a str,
    resource: &'a str,
    subresource: &'a str,
    scope: &'static str,
}

// Hashed like `Borrowed`, because both have the same fields in the same order.
#[derive(PartialEq, Eq, PartialOrd, Ord, Hash)]
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

impl<'a> Borrowed<'a> {
    fn of(info: &'a RequestInfo) -> Self {
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
        let RequestInfo { group, version, resource, subresource, .. } = info;
        Self { verb, group, version, resource, subresource, scope }
    }

    fn to_labels(&self) -> Labels {
        Labels {
            verb: self.verb,
            group: self.group.to_owned(),
            version: self.version.to_owned(),
            resource: self.resource.to_owned(),
            subresource: self.subresource.to_owned(),
            scope: self.scope,
        }
    }
}

impl Equivalent<Labels> for Borrowed<'_> {
    fn equivalent(&self, labels: &Labels) -> bool {
        let Labels { verb, group, version, resource, subresource, scope } = labels;
        *self == Borrowed { verb, group, version, resource, subresource, scope }
    }
}

impl Series {
    /// Counts a response; returns whether its code is new.
    fn count(&mut self, code: u16) -> bool {
        match self.codes.binary_search_by_key(&code, |(code, _)| *code) {
            Ok(at) => {
                self.codes[at].1 += 1;
                false
            }
            Err(at) => {
                self.codes.insert(at, (code, 1));
                true
            }
        }
    }
}

impl Durations {
    fn add(&mut self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        self.count += 1;
        self.seconds += seconds;
        let buckets = BUCKETS.iter().zip(&mut self.buckets);
        buckets.filter(|(end, _)| seconds <= **end).for_each(|(_, count)| *count += 1);
    }
}

impl Labels {
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
        let mut labels = Borrowed::of(info);
        let mut state = self.state.lock();
        if code == 404 && labels.scope != "resource" || state.codes >= SERIES_MAX {
            (labels.resource, labels.subresource) = ("", "");
        }
        let series = match state.series.get_index_of(&labels) {
            Some(index) => &mut state.series[index],
            None => state.series.entry(labels.to_labels()).or_default(),
        };
        if info.verb != Verb::Watch {
            series.durations.add(duration);
        }
        if series.count(code) {
            state.codes += 1;
        }
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
        let mut series: Vec<_> = state.series.iter().collect();
        series.sort_by_key(|(labels, _)| *labels);
        let head = |page: &mut String, name: &str, kind: &str, help: &str| {
            writeln!(page, "# HELP {name} {help}\n# TYPE {name} {kind}")
        };
        let name = "apiserver_request_total";
        head(page, name, "counter", "Requests by resource, verb and code.")?;
        for (labels, series) in &series {
            for (code, count) in &series.codes {
                writeln!(page, "{name}{{code=\"{code}\",{}}} {count}", labels.text())?;
            }
        }
        let name = "apiserver_request_duration_seconds";
        head(page, name, "histogram", "Time until the answer, in seconds; without watches.")?;
        let timed = series.iter().map(|(labels, series)| (labels, &series.durations));
        for (labels, durations) in timed.filter(|(_, durations)| durations.count > 0) {
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
