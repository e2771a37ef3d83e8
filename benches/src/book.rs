//! The benchmark server's record of requests: counts and times.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::Method;
use http::request::Parts;
use memchr::memmem;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::Notify;

/// Counts and times of one server.
pub struct Book {
    /// A patch that contains this text marks its object as handled.
    mark: String,
    // Written by every request, read by commands; never held over an await point.
    pages: Mutex<Pages>,
    /// Notified when the awaited number of objects is handled, and not before: waking a thread for
    /// each object would take its share of the machine.
    reached: Notify,
}

#[derive(Default)]
struct Pages {
    counts: BTreeMap<Cow<'static, str>, u64>,
    lists: u64,
    created: HashMap<String, u64>,
    handled: HashMap<String, u64>,
    awaited: Option<usize>,
    last_at: u64,
    watching_since: Option<u64>,
    write_micros: Vec<u64>,
}

/// A request that is being answered.
pub struct Entry {
    label: Option<Cow<'static, str>>,
    handles: Option<String>,
    is_watch: bool,
    is_list: bool,
    begun: Instant,
}

impl Book {
    /// Creates an empty record.
    #[must_use]
    pub fn new(mark: String) -> Self {
        Self { mark, pages: Mutex::default(), reached: Notify::new() }
    }

    /// Records the creation of an object.
    pub fn created(&self, name: String) {
        self.pages.lock().created.insert(name, now());
    }

    /// Records the start of a request.
    #[must_use]
    pub fn begin(&self, parts: &Parts, body: &Bytes) -> Entry {
        let path = parts.uri.path();
        let is_ours = path.contains("/widgets");
        let is_write = parts.method != Method::GET;
        let query = parts.uri.query().unwrap_or_default();
        let is_watch = is_ours && query.contains("watch=");
        // A watch can list, too; the pages after the first belong to the same list.
        let is_list = is_ours
            && !is_write
            && !query.contains("continue=")
            && (!is_watch || query.contains("sendInitialEvents=true"));
        let label = is_write.then(|| label(parts, path));
        let is_marked = is_ours && is_write && memmem::find(body, self.mark.as_bytes()).is_some();
        let handles = is_marked.then(|| {
            let name = path.split("/widgets/").nth(1).unwrap_or_default();
            name.split('/').next().unwrap_or_default().to_owned()
        });
        Entry { label, handles, is_watch, is_list, begun: Instant::now() }
    }

    /// Records the response to a request.
    pub fn finish(&self, entry: Entry, status: u16) {
        let at = now();
        let mut pages = self.pages.lock();
        if entry.is_watch && status == 200 {
            pages.watching_since.get_or_insert(at);
        }
        pages.lists += u64::from(entry.is_list);
        let Some(mut label) = entry.label else { return };
        pages.write_micros.push(u64::try_from(entry.begun.elapsed().as_micros()).unwrap_or(0));
        if status >= 300 {
            label = format!("{label} ({status})").into();
        }
        *pages.counts.entry(label).or_default() += 1;
        if let Some(name) = entry.handles.filter(|_| status < 300) {
            pages.handled.insert(name, at);
            pages.last_at = at;
            if pages.awaited.is_some_and(|count| pages.handled.len() >= count) {
                self.reached.notify_one();
            }
        }
    }

    /// Waits until this many objects are handled, and returns how many are and when the last one
    /// was.
    pub async fn wait_for(&self, count: usize, timeout: Duration) -> Value {
        self.pages.lock().awaited = Some(count);
        let reached = async {
            // An earlier waiter may have left without consuming the notification.
            while self.pages.lock().handled.len() < count {
                self.reached.notified().await;
            }
        };
        let in_time = tokio::time::timeout(timeout, reached).await.is_ok();
        let mut pages = self.pages.lock();
        pages.awaited = None;
        json!({"handled": pages.handled.len(), "last_at": pages.last_at, "in_time": in_time})
    }

    /// The microseconds from creation to handling, of all objects with this prefix.
    #[must_use]
    pub fn latencies(&self, prefix: &str) -> Value {
        let pages = self.pages.lock();
        let micros: Vec<u64> = pages
            .created
            .iter()
            .filter(|(name, _)| name.starts_with(prefix))
            .filter_map(|(name, at)| Some(pages.handled.get(name)?.saturating_sub(*at) / 1000))
            .collect();
        json!({"latencies": micros, "writes": pages.write_micros})
    }

    /// The number of writes since the last call.
    #[must_use]
    pub fn take_counts(&self) -> Value {
        json!(std::mem::take(&mut self.pages.lock().counts))
    }

    /// How many lists of the objects there were since the last time.
    #[must_use]
    pub fn take_lists(&self) -> u64 {
        std::mem::take(&mut self.pages.lock().lists)
    }

    /// Takes all objects for unhandled again.
    pub fn forget(&self) {
        let mut pages = self.pages.lock();
        pages.handled.clear();
        pages.write_micros.clear();
    }

    /// When the first watch of the objects was accepted.
    #[must_use]
    pub fn watching_since(&self) -> Option<u64> {
        self.pages.lock().watching_since
    }
}

fn label(parts: &Parts, path: &str) -> Cow<'static, str> {
    let content = parts.headers.get("content-type").and_then(|value| value.to_str().ok());
    let kind = match content.unwrap_or_default() {
        text if text.starts_with("application/merge-patch") => " merge",
        text if text.starts_with("application/json-patch") => " json",
        text if text.starts_with("application/apply-patch") => " apply",
        _ => "",
    };
    let about = if path.ends_with("/status") {
        " status"
    } else if path.ends_with("/events") {
        " event"
    } else {
        ""
    };
    if (parts.method == Method::PATCH) && (kind, about) == (" merge", "") {
        // Avoids formatting in the usual case.
        return "PATCH merge".into();
    }
    format!("{}{kind}{about}", parts.method).into()
}

/// Nanoseconds since the epoch, which are comparable between processes of one machine.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
