//! Follows one collection: lists it in pages, then watches it, and starts over after any failure.
//!
//! There is no terminal state except shutdown: expired versions lead to a new list, silence to a
//! new connection, errors to another attempt after a bounded back-off. Gets bytes from the server;
//! sends batches of [`Observation`]s with raw objects.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use kopf_model::{Object, Resource, backoff};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use crate::address;
use crate::cluster::{Cluster, Lane, read_all};
use crate::error::{Failure, RequestError};
use crate::outgoing::Outgoing;

mod continuing;
mod lines;
mod observation;
mod part;

pub use continuing::Remembered;
use lines::{advance, completed, is_end_of_initial, malformed, timed_out, usual_envelope};
pub use observation::{Batch, ChangeKind, Observation};
pub use part::Part;
use part::{Following, Next};

/// The maximum length of a line in a watch stream; the server itself does not store larger objects.
const LINE_MAX: usize = 32 << 20;
/// The maximum number of observations per batch.
const BATCH_MAX: usize = 512;
/// After this many failures in a row from the same version, the collection is listed again.
const RESUME_ATTEMPTS_MAX: u32 = 5;
/// The annotation of the bookmark after which a stream has only changes.
const INITIAL_END: &str = "k8s.io/initial-events-end";
/// How much larger the pages become after a list that expired before it was complete.
const PAGE_GROWTH: u32 = 4;
/// A list continues after this time even if nothing is handled meanwhile, so that no watch stalls.
const BACKLOG_PATIENCE: Duration = Duration::from_secs(1);
/// A watch that ends sooner than this without an event counts as a failure.
const SHORT_WATCH: Duration = Duration::from_secs(1);

/// The collection to follow, and the limits.
#[derive(Clone, Debug)]
pub struct Collection {
    /// The resource.
    pub resource: Arc<Resource>,
    /// One namespace, or `None` for the whole cluster.
    pub namespace: Option<Arc<str>>,
    /// Only objects with these labels.
    pub label_selector: Option<String>,
    /// Only objects with these fields.
    pub field_selector: Option<String>,
    /// Only this shard of the objects.
    pub shard_selector: Option<String>,
    /// Only the objects in these ranges, which may change at any time.
    pub part: Option<watch::Receiver<Arc<Part>>>,
    /// The limits.
    pub limits: WatchLimits,
    /// Whether to keep `metadata.managedFields`.
    pub managed_fields: bool,
    /// How many objects are waiting to be handled, if this should slow down lists.
    pub backlog: Option<watch::Receiver<usize>>,
}

/// The limits of a watch, from the operator's settings.
#[derive(Clone, Debug)]
pub struct WatchLimits {
    /// The number of objects per list page; 0 for whole lists.
    pub page_size: u32,
    /// Whether the server streams the existing objects instead of listing them.
    pub initial_streaming: bool,
    /// How long the server is asked to keep one watch open.
    pub server_timeout: Option<Duration>,
    /// How long one watch may last on our side.
    pub client_timeout: Option<Duration>,
    /// The timeout of one list page, or of starting a watch.
    pub request_timeout: Duration,
    /// A watch that is silent for this long is reopened.
    pub inactivity_timeout: Duration,
    /// The shortest pause after a failure.
    pub backoff: Duration,
    /// The longest pause after a failure.
    pub backoff_max: Duration,
    /// The next page of a list is delayed while more objects than this are waiting to be handled.
    pub backlog_max: usize,
}

#[derive(Deserialize)]
struct Page<'a> {
    #[serde(rename = "apiVersion", default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    metadata: PageMetadata,
    // A server written in Go sends null instead of an empty list.
    #[serde(borrow, default)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PageMetadata {
    resource_version: String,
    #[serde(rename = "continue")]
    next: Option<String>,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(rename = "type", borrow)]
    kind: std::borrow::Cow<'a, str>,
    #[serde(borrow)]
    object: &'a RawValue,
}

/// Follows one collection and sends its observations, tagged with their origin.
pub struct Watcher<T> {
    cluster: Cluster,
    collection: Collection,
    tag: T,
    sink: mpsc::Sender<(T, Batch)>,
    batch: Batch,
    failures: u32,
    /// Whether the stream has not yet sent everything that exists.
    is_initial: bool,
    /// Whether the server does not stream existing objects.
    refuses_streaming: bool,
    /// How many lists in a row expired before they were complete.
    expired_lists: u32,
    /// How many watches in a row expired before anything was received.
    expired_watches: u32,
    /// The followed part, if not everything is.
    following: Option<Following>,
    /// Remembered data that the watch may start with instead of a list.
    remembered: Option<Remembered>,
}

/// The receiver is gone: the observations are no longer needed.
struct Closed;

enum Stopped {
    Closed,
    /// The followed part has changed.
    Moved,
    Failed(RequestError),
}

impl From<Closed> for Stopped {
    fn from(_: Closed) -> Self {
        Self::Closed
    }
}

impl From<RequestError> for Stopped {
    fn from(error: RequestError) -> Self {
        Self::Failed(error)
    }
}

impl<T: Clone + Send + Sync + 'static> Watcher<T> {
    /// Creates a watcher that has not started yet.
    pub fn new(
        cluster: Cluster,
        mut collection: Collection,
        tag: T,
        sink: mpsc::Sender<(T, Batch)>,
    ) -> Self {
        Self {
            following: collection.part.take().map(Following::new),
            cluster,
            collection,
            tag,
            sink,
            batch: Batch::new(),
            failures: 0,
            is_initial: false,
            refuses_streaming: false,
            expired_lists: 0,
            expired_watches: 0,
            remembered: None,
        }
    }

    /// Runs until the receiver is dropped.
    pub async fn run(mut self) {
        if self.begin_with_remembered().await.is_err() {
            return;
        }
        loop {
            if !self.begin_part() {
                if self.await_part().await.is_err() {
                    return;
                }
                continue;
            }
            if self.collection.limits.initial_streaming && !self.refuses_streaming {
                self.is_initial = true;
                if self.follow(String::new()).await.is_err() {
                    return;
                }
                continue;
            }
            let version = match self.list(None).await {
                Ok(version) => version,
                Err(Stopped::Closed) => return,
                Err(Stopped::Moved) => continue,
                Err(Stopped::Failed(error)) => {
                    if error.is_expired() {
                        self.expired_lists = self.expired_lists.saturating_add(1);
                    }
                    if self.pause(error).await.is_err() {
                        return;
                    }
                    continue;
                }
            };
            (self.failures, self.expired_lists) = (0, 0);
            if self.follow(version).await.is_err() {
                return;
            }
        }
    }

    /// Watches from a version until a new list is needed.
    async fn follow(&mut self, mut version: String) -> Result<(), Closed> {
        loop {
            let begun = Instant::now();
            let before = version.clone();
            let result = self.watch(&mut version).await;
            if self.is_initial {
                return self.start_over(result).await;
            }
            if version != before {
                self.failures = 0;
                // A stream sends what exists before it can expire.
                if !before.is_empty() {
                    self.expired_watches = 0;
                }
            }
            match result {
                Ok(()) if version != before || begun.elapsed() >= SHORT_WATCH => {}
                Ok(()) => {
                    self.failures += 1;
                    let pause = self.backoff(None);
                    tokio::time::sleep(pause).await;
                }
                Err(Stopped::Closed) => return Err(Closed),
                Err(Stopped::Moved) => match self.move_part(&mut version).await? {
                    Next::Watch => {}
                    Next::List => return Ok(()),
                },
                Err(Stopped::Failed(error)) if error.is_expired() => {
                    tracing::debug!(collection = %self.collection, "the watch is too old; listing");
                    // A server for which every version is too old must not be listed without a
                    // pause.
                    self.expired_watches = self.expired_watches.saturating_add(1);
                    tokio::time::sleep(self.pause_after(self.expired_watches)).await;
                    return Ok(());
                }
                Err(Stopped::Failed(error)) => {
                    let resumable = error.failure != Failure::NotFound;
                    self.pause(error).await?;
                    if self.failures >= RESUME_ATTEMPTS_MAX || !resumable {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Existing objects were not received completely: starts over, by streaming or by listing.
    async fn start_over(&mut self, result: Result<(), Stopped>) -> Result<(), Closed> {
        match result {
            Err(Stopped::Closed) => Err(Closed),
            Err(Stopped::Moved) => Ok(()),
            Err(Stopped::Failed(error))
                if matches!(error.failure, Failure::Invalid | Failure::Client(400)) =>
            {
                let (collection, error) = (&self.collection, error.report());
                tracing::warn!(%collection, error, "the server does not stream lists; listing instead");
                (self.refuses_streaming, self.is_initial) = (true, false);
                Ok(())
            }
            Err(Stopped::Failed(error)) => self.pause(error).await,
            Ok(()) => {
                self.failures += 1;
                tokio::time::sleep(self.backoff(None)).await;
                Ok(())
            }
        }
    }

    async fn pause(&mut self, error: RequestError) -> Result<(), Closed> {
        self.failures += 1;
        self.note_refusal(&error);
        let retry_in = self.backoff(error.retry_after);
        let (collection, text) = (&self.collection, error.report());
        tracing::debug!(%collection, error = text, ?retry_in, "the watch failed; retrying");
        self.batch.push(Observation::Disturbed { error: Arc::new(error), retry_in });
        self.flush().await?;
        tokio::select! {
            () = tokio::time::sleep(retry_in) => Ok(()),
            () = self.sink.closed() => Err(Closed),
        }
    }

    fn backoff(&self, asked: Option<Duration>) -> Duration {
        let pause = self.pause_after(self.failures);
        asked.map_or(pause, |asked| asked.max(pause))
    }

    fn pause_after(&self, failures: u32) -> Duration {
        let limits = &self.collection.limits;
        let earlier = failures.saturating_sub(1).min(16);
        let bounded = backoff::doubled(limits.backoff, earlier, limits.backoff_max);
        let spread = bounded.as_secs_f64() * (0.75 + fastrand::f64() * 0.5);
        // A limit that is meant as "no limit" may be too long to be multiplied.
        Duration::try_from_secs_f64(spread).unwrap_or(bounded)
    }

    /// Lists everything, or only what was added to the part.
    async fn list(&mut self, added: Option<&Part>) -> Result<String, Stopped> {
        let mut next: Option<String> = None;
        loop {
            let is_first = next.is_none() && added.is_none();
            let mut path = self.path(added);
            address::push_query(&mut path, "limit", &self.page_size().to_string());
            if let Some(token) = &next {
                address::push_query(&mut path, "continue", token);
            }
            let bytes = self.page(path.clone()).await?;
            let page: Page<'_> = serde_json::from_slice(&bytes)
                .map_err(|error| malformed(&path, "the list could not be read", error))?;
            if is_first {
                let version = page.metadata.resource_version.clone();
                self.batch.push(Observation::ListBegun { version });
            }
            let item_kind = page.kind.strip_suffix("List").unwrap_or_default();
            for item in page.items.unwrap_or_default() {
                if !self.is_in_part(added, item.get().as_bytes()) {
                    continue;
                }
                let object = self
                    .object(item.get().as_bytes())
                    .and_then(|object| completed(object, &page.api_version, item_kind))
                    .map_err(|error| malformed(&path, "an item could not be read", error))?;
                self.batch.push(Observation::Listed(object));
                if self.batch.len() >= BATCH_MAX {
                    self.flush().await?;
                }
            }
            next = page.metadata.next.filter(|token| !token.is_empty());
            if next.is_none() {
                let version = page.metadata.resource_version;
                if added.is_none() {
                    self.batch.push(Observation::ListEnded { version: version.clone() });
                }
                self.flush().await?;
                return Ok(version);
            }
            self.flush().await?;
            drop(bytes);
            self.wait_for_backlog().await;
        }
    }

    /// How many objects are requested per page.
    ///
    /// A server that changes faster than the pages are read forgets the listed state. It then
    /// offers to continue with the newest state, but changes on the previous pages would be lost.
    /// So the list starts again with larger pages, until finally there is a single one.
    fn page_size(&self) -> u32 {
        let growth = PAGE_GROWTH.saturating_pow(self.expired_lists);
        self.collection.limits.page_size.saturating_mul(growth)
    }

    /// Lets handlers catch up, so that no list is in memory as a whole.
    async fn wait_for_backlog(&mut self) {
        // A list that took too long once would take too long again.
        if self.failures > 0 {
            return;
        }
        let backlog_max = self.collection.limits.backlog_max;
        let Some(backlog) = &mut self.collection.backlog else { return };
        let caught_up = backlog.wait_for(|waiting| *waiting <= backlog_max);
        // In either case the list continues.
        let _ = tokio::time::timeout(BACKLOG_PATIENCE, caught_up).await;
    }

    async fn page(&self, path: String) -> Result<Bytes, RequestError> {
        let outgoing = Outgoing::get(path);
        let exchange = async {
            let response = self.cluster.send(Lane::Watching, &outgoing).await?;
            read_all(&outgoing, response).await
        };
        let limit = self.collection.limits.request_timeout;
        match tokio::time::timeout(limit, exchange).await {
            Ok(result) => result,
            Err(_) => Err(timed_out(&outgoing, limit)),
        }
    }

    async fn watch(&mut self, version: &mut String) -> Result<(), Stopped> {
        let limits = self.collection.limits.clone();
        let mut path = self.path(None);
        address::push_query(&mut path, "watch", "true");
        address::push_query(&mut path, "allowWatchBookmarks", "true");
        if self.is_initial {
            address::push_query(&mut path, "sendInitialEvents", "true");
            address::push_query(&mut path, "resourceVersionMatch", "NotOlderThan");
        } else {
            address::push_query(&mut path, "resourceVersion", version);
        }
        if let Some(timeout) = limits.server_timeout {
            address::push_query(&mut path, "timeoutSeconds", &timeout.as_secs().to_string());
        }
        // A time too far in the future is never reached.
        let later = |timeout: Duration| Instant::now().checked_add(timeout);
        let deadline = limits.client_timeout.and_then(later);
        let outgoing = Outgoing::get(path);
        let opening = self.cluster.send(Lane::Watching, &outgoing);
        let patience = limits.request_timeout.min(limits.inactivity_timeout);
        let response = match tokio::time::timeout(patience, opening).await {
            Ok(response) => response?,
            Err(_) => return Err(timed_out(&outgoing, patience).into()),
        };
        self.batch.push(match self.is_initial {
            true => Observation::ListBegun { version: String::new() },
            false => Observation::Heartbeat,
        });
        self.flush().await?;
        let mut body = response.into_body();
        let mut buffer = BytesMut::new();
        loop {
            let silence = later(limits.inactivity_timeout);
            let patience = deadline
                .into_iter()
                .chain(silence)
                .min()
                .map_or(Duration::MAX, |at| at.saturating_duration_since(Instant::now()));
            let frame = tokio::select! {
                frame = tokio::time::timeout(patience, body.frame()) => frame,
                () = self.sink.closed() => return Err(Stopped::Closed),
                () = Following::moved(&mut self.following) => return Err(Stopped::Moved),
            };
            let data = match frame {
                Err(_) => {
                    tracing::debug!(collection = %self.collection, "nothing arrived on the watch in time; reopening it");
                    return Ok(());
                }
                Ok(None) => break,
                Ok(Some(Err(error))) => {
                    tracing::debug!(collection = %self.collection, %error, "the watch ended with an error");
                    break;
                }
                Ok(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) => data,
                    Err(_) => continue,
                },
            };
            self.take_lines(&outgoing.path, &mut buffer, data, version).await?;
        }
        self.take_rest(&outgoing.path, buffer.freeze(), version).await
    }

    /// Processes the last line of a stream that ends without a newline, if it is complete;
    /// otherwise it will be sent again from the last version.
    async fn take_rest(
        &mut self,
        path: &str,
        rest: Bytes,
        version: &mut String,
    ) -> Result<(), Stopped> {
        if rest.trim_ascii().is_empty() {
            return Ok(());
        }
        let result = self.take_line(path, &rest, version);
        self.flush().await?;
        match result {
            Err(error) if error.failure != Failure::Malformed => Err(error.into()),
            _ => Ok(()),
        }
    }

    async fn take_lines(
        &mut self,
        path: &str,
        buffer: &mut BytesMut,
        data: Bytes,
        version: &mut String,
    ) -> Result<(), Stopped> {
        let mut data = data.as_ref();
        while let Some(offset) = memchr::memchr(b'\n', data) {
            let (end, rest) = data.split_at(offset + 1);
            data = rest;
            // Most lines arrive complete and are parsed in place.
            let result = if buffer.is_empty() {
                self.take_line(path, end, version)
            } else {
                buffer.extend_from_slice(end);
                let line = buffer.split();
                self.take_line(path, &line, version)
            };
            if let Err(error) = result {
                self.flush().await?;
                return Err(error.into());
            }
            if self.batch.len() >= BATCH_MAX {
                self.flush().await?;
            }
        }
        buffer.extend_from_slice(data);
        if buffer.len() > LINE_MAX {
            let message = format!("a line of the watch is longer than {LINE_MAX} bytes");
            let method = http::Method::GET;
            return Err(RequestError::local(Failure::Malformed, &method, path, message).into());
        }
        self.flush().await?;
        Ok(())
    }

    fn take_line(
        &mut self,
        path: &str,
        line: &[u8],
        version: &mut String,
    ) -> Result<(), RequestError> {
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        if let Some((kind, raw)) = usual_envelope(line) {
            if let Some(skipped) = self.skipped(kind, raw) {
                advance(version, &skipped);
                return Ok(());
            }
            if let Ok(object) = self.object(raw) {
                self.take_change(kind, object, version);
                return Ok(());
            }
        }
        let unreadable = |error| malformed(path, "an event could not be read", error);
        let envelope: Envelope<'_> = serde_json::from_slice(line).map_err(unreadable)?;
        let raw = envelope.object.get().as_bytes();
        let kind = match envelope.kind.as_ref() {
            "ADDED" => ChangeKind::Added,
            "MODIFIED" => ChangeKind::Modified,
            "DELETED" => ChangeKind::Deleted,
            "BOOKMARK" => {
                let object = Object::parse(Bytes::copy_from_slice(raw))
                    .map_err(|error| malformed(path, "a bookmark could not be read", error))?;
                advance(version, object.resource_version());
                if self.is_initial && is_end_of_initial(&object) {
                    self.is_initial = false;
                    self.batch.push(Observation::ListEnded { version: version.clone() });
                }
                self.batch.push(Observation::Reached { version: version.clone() });
                return Ok(());
            }
            "ERROR" => return Err(RequestError::streamed(path, raw)),
            other => {
                tracing::warn!(kind = other, path, "ignoring a watch event of an unknown type");
                return Ok(());
            }
        };
        if let Some(skipped) = self.skipped(kind, raw) {
            advance(version, &skipped);
            return Ok(());
        }
        let object = self
            .object(raw)
            .map_err(|error| malformed(path, "an object could not be read", error))?;
        self.take_change(kind, object, version);
        Ok(())
    }

    fn take_change(&mut self, kind: ChangeKind, object: Object, version: &mut String) {
        advance(version, object.resource_version());
        self.batch.push(match kind {
            ChangeKind::Added if self.is_initial => Observation::Listed(object),
            kind => Observation::Changed(kind, object),
        });
    }

    fn object(&self, raw: &[u8]) -> Result<Object, kopf_model::ParseError> {
        match self.collection.managed_fields {
            true => Object::parse(Bytes::copy_from_slice(raw)),
            false => Object::parse_lean(raw),
        }
    }

    async fn flush(&mut self) -> Result<(), Closed> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let batch = std::mem::take(&mut self.batch);
        self.sink.send((self.tag.clone(), batch)).await.map_err(|_| Closed)
    }

    fn path(&self, added: Option<&Part>) -> String {
        let it = &self.collection;
        let part = self.part_selector(added);
        let mut path = address::collection(&it.resource, it.namespace.as_deref());
        for (name, selector) in [
            ("labelSelector", &it.label_selector),
            ("fieldSelector", &it.field_selector),
            ("shardSelector", &it.shard_selector),
            ("shardSelector", &part),
        ] {
            if let Some(selector) = selector {
                address::push_query(&mut path, name, selector);
            }
        }
        path
    }
}

impl std::fmt::Display for Collection {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(formatter, "{}@{namespace}", self.resource),
            None => write!(formatter, "{}", self.resource),
        }
    }
}

impl Default for WatchLimits {
    fn default() -> Self {
        Self {
            page_size: 500,
            initial_streaming: false,
            server_timeout: None,
            client_timeout: None,
            request_timeout: Duration::from_secs(300),
            inactivity_timeout: Duration::from_secs(70),
            backoff: Duration::from_millis(100),
            backoff_max: Duration::from_secs(10),
            backlog_max: 1000,
        }
    }
}

#[cfg(test)]
mod tests;
