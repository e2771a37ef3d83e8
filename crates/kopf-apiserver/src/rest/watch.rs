//! Watches: initial state, events, selectors, bookmarks, deadlines.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt, Stream};
use serde_json::Value;

use super::Call;
use super::list::{parse_number, parse_shards, parse_version};
use crate::encode::Encoder;
use crate::kinds::Kind;
use crate::query::Query;
use crate::selector::{Selector, ShardSelector};
use crate::state::Inner;
use crate::store::{Cursor, Event, EventKind, FellBehind, write_event};
use crate::stored::{Draft, Packed};
use crate::{FieldError, StatusError, Stored, convert};

/// The options of a watch.
#[derive(Debug, Clone, Default)]
pub(crate) struct WatchRequest {
    selector: Selector,
    shards: ShardSelector,
    resource_version: Option<u64>,
    bookmarks: bool,
    send_initial_events: Option<bool>,
    timeout: Option<Duration>,
    wants_lists: bool,
}

impl WatchRequest {
    /// Reads the options and checks their combination.
    pub(crate) fn parse(call: &Call, query: &Query, accept: &str) -> Result<Self, StatusError> {
        let mut selector = Selector::parse(
            query.text("labelSelector"),
            query.text("fieldSelector"),
            &call.resource,
            Kind::of(&call.resource).selectable_fields,
        )?;
        if !call.info.name.is_empty() {
            // The legacy path `/watch/.../NAME` watches a single object.
            let field = format!("metadata.name={}", call.info.name);
            selector = Selector::parse(
                query.text("labelSelector"),
                &field,
                &call.resource,
                Kind::of(&call.resource).selectable_fields,
            )?;
        }
        let send_initial_events = match query.text("sendInitialEvents") {
            "" => None,
            value => Some(value != "false" && value != "0"),
        };
        check_options(query, send_initial_events)?;
        Ok(Self {
            selector,
            shards: parse_shards(query)?,
            resource_version: parse_version(query.text("resourceVersion"))?,
            bookmarks: query.flag("allowWatchBookmarks"),
            send_initial_events,
            // A negative time is over at once.
            timeout: parse_number(query, "timeoutSeconds")?
                .filter(|seconds| *seconds != 0)
                .map(|seconds| Duration::from_secs(u64::try_from(seconds).unwrap_or_default())),
            wants_lists: accept.contains("as=PartialObjectMetadataList"),
        })
    }
}

fn check_options(query: &Query, send_initial_events: Option<bool>) -> Result<(), StatusError> {
    let version_match = query.text("resourceVersionMatch");
    let field = "resourceVersionMatch";
    let mut errors = Vec::new();
    if send_initial_events.is_some() {
        if version_match != "NotOlderThan" {
            let detail = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            errors.push(FieldError::forbidden(field, detail));
            if !version_match.is_empty() {
                let supported = &["NotOlderThan"];
                errors.push(FieldError::not_supported(field, &version_match.into(), supported));
            }
        }
    } else if !version_match.is_empty() {
        let detail =
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
        errors.push(FieldError::forbidden(field, detail));
        if version_match != "NotOlderThan" {
            let supported = &["NotOlderThan"];
            errors.push(FieldError::not_supported(field, &version_match.into(), supported));
        }
    }
    if !query.text("continue").is_empty() && version_match.is_empty() {
        let detail = "resourceVersionMatch is forbidden when continue is provided";
        errors.push(FieldError::forbidden(field, detail));
    }
    if errors.is_empty() {
        return Ok(());
    }
    Err(StatusError::invalid("meta.k8s.io", "ListOptions", "", &errors))
}

/// The minimum duration of a watch without `timeoutSeconds`; the maximum is twice that.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30 * 60);
/// How often bookmarks are sent.
const BOOKMARK_INTERVAL: Duration = Duration::from_secs(60);
/// How long before the end the last bookmark is sent.
const BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);
/// How soon a failed conversion is retried.
const CONVERSION_PAUSE: Duration = Duration::from_secs(1);
/// How many events one pull takes.
const PULL_EVENTS_MAX: usize = 256;
/// How many bytes are combined into one frame.
const FRAME_BYTES_MAX: usize = 64 << 10;

/// Starts a watch; the stream ends at its deadline or if the watcher falls behind.
pub(crate) fn watch(
    call: &Call,
    request: WatchRequest,
    encoder: Encoder,
) -> impl Stream<Item = Bytes> + Send + 'static {
    let watcher = Watcher::start(call, request, encoder);
    futures::stream::unfold(watcher, |mut watcher| async move {
        watcher.next_frame().await.map(|frame| (frame, watcher))
    })
}

/// 410 for a version of another store, or of one that was lost: the events after it are unknown.
fn never_published(version: u64, newest: u64) -> StatusError {
    StatusError::expired(format!(
        "resource version {version} was never published by this server, whose newest one is \
         {newest}: list again"
    ))
}

struct Watcher {
    inner: Arc<Inner>,
    selector: Selector,
    shards: ShardSelector,
    namespace: String,
    encoder: Encoder,
    cursor: Option<Cursor>,
    // Lines that are ready to send; objects and events stay compact until they are due.
    frame: Vec<u8>,
    initial: VecDeque<Arc<Packed>>,
    // The bookmark at the end of the initial objects.
    initial_end: Option<u64>,
    waiting: VecDeque<Arc<Event>>,
    // Whether initial objects and waiting events still have to be converted to the requested
    // version.
    needs_conversion: bool,
    // The revision of the registry in which the resource was looked up.
    revision: u64,
    bookmarks: bool,
    next_bookmark: BoxFuture<'static, ()>,
    last_bookmark: BoxFuture<'static, ()>,
    last_bookmark_sent: bool,
    deadline: BoxFuture<'static, ()>,
    // Whether the client wants events as lists, which they are not: the first one ends the watch.
    wants_lists: bool,
    ended: bool,
}

impl Watcher {
    fn start(call: &Call, request: WatchRequest, encoder: Encoder) -> Self {
        let inner = Arc::clone(&call.inner);
        let clock = Arc::clone(&inner.clock);
        let timeout = request.timeout.unwrap_or_else(|| {
            DEFAULT_TIMEOUT + Duration::from_secs(fastrand::u64(0..DEFAULT_TIMEOUT.as_secs()))
        });
        let mut watcher = Self {
            selector: request.selector,
            shards: request.shards,
            namespace: call.namespace().to_owned(),
            encoder,
            cursor: None,
            frame: Vec::new(),
            initial: VecDeque::new(),
            initial_end: None,
            waiting: VecDeque::new(),
            needs_conversion: false,
            // The resource may be older than the registry: look it up again with the first events.
            revision: 0,
            bookmarks: request.bookmarks,
            next_bookmark: clock.sleep(BOOKMARK_INTERVAL),
            last_bookmark: clock.sleep(timeout.saturating_sub(BOOKMARK_BEFORE_END)),
            // A very short watch gets no final bookmark.
            last_bookmark_sent: timeout <= BOOKMARK_BEFORE_END,
            deadline: clock.sleep(timeout),
            wants_lists: request.wants_lists,
            ended: false,
            inner,
        };
        if timeout.is_zero() {
            return watcher;
        }
        let from_start = request.resource_version.unwrap_or(0) == 0;
        let initial = request.send_initial_events.unwrap_or(from_start);
        let snapshot = watcher.inner.store.snapshot();
        let newest = snapshot.resource_version();
        // Upstream waits for future versions, and so does an in-memory store. A store on disk may
        // have lost some, and clients that know them must not wait for events that will never come.
        let is_future = request.resource_version.is_some_and(|wanted| wanted > newest);
        if is_future && watcher.inner.store.is_durable() {
            watcher.fail(&never_published(request.resource_version.unwrap_or(0), newest));
            return watcher;
        }
        let version = match initial || from_start {
            true => newest,
            false => request.resource_version.unwrap_or(0),
        };
        let table = Arc::clone(&call.resource.table);
        if initial {
            // A webhook may change fields that selectors use.
            let is_rewritten = convert::is_rewritten(&call.resource);
            watcher.initial = snapshot
                .list(&table, &watcher.namespace)
                .filter(|(_, stored)| watcher.shards.matches(stored.encoded()))
                .filter(|(_, stored)| is_rewritten || watcher.selector.matches_stored(stored))
                .map(|(_, stored)| Arc::clone(stored.packed()))
                .collect();
            watcher.needs_conversion = is_rewritten || watcher.has_others();
            if request.send_initial_events == Some(true) && request.bookmarks {
                watcher.initial_end = Some(newest);
            }
        }
        match watcher.inner.store.ring(&table).cursor(version) {
            Ok(cursor) => watcher.cursor = Some(cursor),
            Err(FellBehind { oldest }) => watcher.expire(version, oldest),
        }
        watcher
    }

    /// Sends one ERROR event with a 410 and ends the watch.
    fn expire(&mut self, version: u64, oldest: u64) {
        let message = format!("too old resource version: {version} ({oldest})");
        self.fail(&StatusError::expired(message));
    }

    /// Sends one ERROR event and ends the watch.
    fn fail(&mut self, error: &StatusError) {
        write_event(&mut self.frame, "ERROR", error.to_value().to_string().as_bytes());
        self.cursor = None;
    }

    async fn next_frame(&mut self) -> Option<Bytes> {
        // A watch that always has events never waits, but it must end in time as well.
        if !self.ended && (&mut self.deadline).now_or_never().is_some() {
            return None;
        }
        loop {
            self.fill();
            if !self.frame.is_empty() {
                return Some(Bytes::from(std::mem::take(&mut self.frame)));
            }
            if self.ended {
                return None;
            }
            match self.needs_conversion {
                true => self.convert().await,
                false => self.wait().await,
            }
        }
    }

    /// Adds everything that is due to one frame, until it is full or something has to be converted.
    fn fill(&mut self) {
        while !self.needs_conversion && self.frame.len() < FRAME_BYTES_MAX {
            if let Some(packed) = self.initial.pop_front() {
                self.write("ADDED", &packed);
            } else if let Some(version) = self.initial_end.take() {
                self.frame.extend_from_slice(&self.encoder.bookmark_line(version, true));
            } else if let Some(event) = self.waiting.pop_front() {
                self.add_event_line(&event);
            } else if !self.pull() {
                break;
            }
        }
    }

    /// Takes events from the ring; returns whether there were any.
    fn pull(&mut self) -> bool {
        let Some(cursor) = &mut self.cursor else {
            self.ended = true;
            return false;
        };
        match cursor.take(PULL_EVENTS_MAX, &mut self.waiting) {
            Ok(0) => false,
            Ok(_) => {
                // Only now: events written under a newer definition come after it.
                self.renew_resource();
                self.needs_conversion = self.has_others();
                true
            }
            Err(FellBehind { oldest }) => {
                let seen = self.inner.store.settled_version().min(oldest.saturating_sub(1));
                self.expire(seen, oldest);
                true
            }
        }
    }

    /// Follows changes to the definition of a custom resource.
    fn renew_resource(&mut self) {
        let resource = &self.encoder.resource;
        if !resource.is_custom() {
            return;
        }
        let registry = self.inner.registry.load();
        if registry.revision() == self.revision {
            return;
        }
        self.revision = registry.revision();
        let found = registry.find(&resource.group, &resource.version, &resource.resource);
        if let Some(found) = found.cloned() {
            self.encoder.resource = found;
        }
    }

    /// Whether anything that is due has another version.
    fn has_others(&self) -> bool {
        // Only selectors need previous states.
        let is_selective = !self.selector.is_empty();
        let before = self.waiting.iter().filter_map(|event| event.previous.as_ref());
        let states = self.initial.iter().chain(self.waiting.iter().map(|event| &event.object));
        convert::has_others(&self.encoder.resource, states.chain(before.filter(|_| is_selective)))
    }

    /// Converts everything that is due to the requested version.
    ///
    /// While a webhook fails, no event is sent, and it is called again after a pause. The real
    /// server has a cache between the webhook and the watch, which has the same effect.
    async fn convert(&mut self) {
        self.needs_conversion = false;
        let initial = std::mem::take(&mut self.initial);
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.retain(|event| self.is_concerned(event));
        let is_selective = !self.selector.is_empty();
        let previous = |event: &Event| event.previous.clone().filter(|_| is_selective);
        let states = waiting
            .iter()
            .flat_map(|event| std::iter::once(Arc::clone(&event.object)).chain(previous(event)));
        let items = initial.iter().cloned().chain(states);
        let items = items.map(|packed| Arc::new(Stored::from(&packed))).collect();
        let served = convert::served_all(&self.inner, &self.encoder.resource, items).await;
        let mut served = match served {
            Ok(served) => served.into_iter().map(|stored| Arc::clone(stored.packed())),
            Err(error) => {
                tracing::debug!(%error, "a watch waits for a conversion webhook");
                (self.initial, self.waiting, self.needs_conversion) = (initial, waiting, true);
                return self.pause().await;
            }
        };
        let count = initial.len();
        self.initial = served
            .by_ref()
            .take(count)
            .filter(|packed| !is_selective || self.selector.matches(&packed.content()))
            .collect();
        self.waiting = waiting
            .iter()
            .filter_map(|event| {
                let object = served.next()?;
                let previous = previous(event).and_then(|_| served.next());
                let (kind, key) = (event.kind, event.key.clone());
                Some(Arc::new(Event { kind, key, object, previous }))
            })
            .collect();
    }

    /// Waits for the next attempt or the end.
    async fn pause(&mut self) {
        tokio::select! {
            biased;
            () = &mut self.deadline => self.ended = true,
            () = self.inner.clock.sleep(CONVERSION_PAUSE) => {}
        }
    }

    /// Whether an event is in the namespace and in the shard; neither ever changes for an object.
    fn is_concerned(&self, event: &Event) -> bool {
        let is_inside = self.namespace.is_empty() || *event.key.namespace == *self.namespace;
        is_inside && self.shards.matches(event.object.encoded())
    }

    /// Adds the line for an event, filtered by namespace and selector.
    fn add_event_line(&mut self, event: &Event) {
        if !self.is_concerned(event) {
            return;
        }
        let kind = if self.selector.is_empty() {
            event.kind
        } else {
            let before =
                event.previous.as_ref().is_some_and(|old| self.selector.matches(&old.content()));
            let after =
                event.kind != EventKind::Deleted && self.selector.matches(&event.object.content());
            match (before, after) {
                (false, false) => return,
                (false, true) => EventKind::Added,
                (true, false) => EventKind::Deleted,
                (true, true) => EventKind::Modified,
            }
        };
        match (&event.previous, kind == EventKind::Deleted && kind != event.kind) {
            // If an object leaves a selector, send its last selected state at the version of the
            // change.
            (Some(previous), true) => {
                let version = event.resource_version();
                let value = Value::clone(&previous.content());
                let last = Draft::new(value, previous.managed()).at_version(version);
                self.write(kind.as_str(), last.packed());
            }
            _ => self.write(kind.as_str(), &event.object),
        }
    }

    fn write(&mut self, kind: &str, packed: &Arc<Packed>) {
        if self.wants_lists {
            self.cursor = None;
        } else if self.encoder.sends_stored_bytes() {
            write_event(&mut self.frame, kind, packed.encoded());
        } else {
            // Ages in tables are computed when the event is sent.
            self.encoder.now = self.inner.clock.now();
            let line = self.encoder.event_line(kind, &Stored::from(packed));
            self.frame.extend_from_slice(&line);
        }
    }

    /// Waits for an event, a bookmark or the end.
    async fn wait(&mut self) {
        let Some(cursor) = &mut self.cursor else { return };
        tokio::select! {
            biased;
            () = cursor.changed() => {
                // Let other tasks make their changes first, so that all of them are sent in one
                // message.
                tokio::task::yield_now().await;
            }
            () = &mut self.deadline => self.ended = true,
            () = &mut self.last_bookmark, if self.bookmarks && !self.last_bookmark_sent => {
                self.last_bookmark_sent = true;
                self.bookmark().await;
            }
            () = &mut self.next_bookmark, if self.bookmarks => {
                self.next_bookmark = self.inner.clock.sleep(BOOKMARK_INTERVAL);
                self.bookmark().await;
            }
        }
    }

    /// Queues a bookmark after the events that have arrived in the meantime.
    async fn bookmark(&mut self) {
        let settled = self.inner.store.settled_version();
        self.bookmark_from(settled).await;
    }

    /// Queues a bookmark for a version that was just settled, or for a later event.
    async fn bookmark_from(&mut self, settled: u64) {
        let mut version = settled;
        while self.pull() {
            if self.needs_conversion {
                self.convert().await;
            }
            // Events that cannot be converted now are sent later, and no bookmark may precede them.
            if self.needs_conversion {
                return;
            }
            while let Some(event) = self.waiting.pop_front() {
                version = version.max(event.resource_version());
                self.add_event_line(&event);
            }
        }
        // Nothing follows the error of a watcher that fell behind.
        if self.cursor.is_some() {
            self.frame.extend_from_slice(&self.encoder.bookmark_line(version, false));
        }
    }
}

#[cfg(test)]
mod tests;
