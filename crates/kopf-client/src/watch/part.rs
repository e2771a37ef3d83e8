//! The part of a collection that a watch follows when replicas share the objects.
//!
//! The server is asked for the part with `shardSelector` (KEP-5866). Servers that do not know it
//! send everything, so the same hash is applied to the bytes of every object before they are parsed
//! or kept. When the part grows, only the new ranges are listed, while the watch continues with the
//! others; then it continues with all of them, from where it was when the list began.

use std::collections::BTreeMap;
use std::sync::Arc;

use kopf_model::shards::{Ranges, ShardField, Sighting};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tracing::Instrument as _;

use super::{ChangeKind, Closed, Observation, Page, Stopped, Watcher, malformed};
use crate::address;
use crate::error::RequestError;

/// Longer selectors are not sent, because some proxies reject long URLs.
const SELECTOR_MAX: usize = 4000;
/// The message of servers that reject our selector.
const REFUSAL: &str = "shard selector";

/// Some ranges of the hash space, each with the number of the change by which it became ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    ranges: Ranges,
    held: BTreeMap<u32, u64>,
}

/// The part that a watcher follows.
pub(super) struct Following {
    news: watch::Receiver<Arc<Part>>,
    part: Arc<Part>,
    /// The ranges of the part that were listed; events of the others are skipped.
    listed: Part,
    /// The ranges that were added last, and the version of their list: older events are known.
    added: Option<(Part, u64)>,
    /// The events of all other ranges are known up to this version.
    known_until: u64,
    /// The list of ranges that are being added.
    listing: Option<Listing>,
    /// Whether the server rejects our selector.
    is_refused: bool,
}

/// A list of added ranges, while the watch continues.
struct Listing {
    added: Part,
    /// The version from which the watch continues with these ranges.
    since: String,
    task: JoinSet<Result<String, Stopped>>,
    result: Option<Result<String, Stopped>>,
}

/// What to do next.
pub(super) enum Next {
    Watch,
    List,
}

impl Part {
    /// Creates a part with these ranges.
    #[must_use]
    pub fn new(ranges: Ranges, held: BTreeMap<u32, u64>) -> Self {
        Self { ranges, held }
    }

    /// Creates an empty part.
    #[must_use]
    pub fn nothing() -> Self {
        Self { ranges: Ranges::new(ShardField::Uid, 1), held: BTreeMap::new() }
    }

    fn has(&self, sighting: &Sighting<'_>) -> bool {
        self.held.contains_key(&self.ranges.of(&sighting.uid, Some(&sighting.namespace)))
    }

    /// The selector for the server, if it is useful.
    fn selector(&self) -> Option<String> {
        let is_all = self.held.len() == self.ranges.count() as usize;
        let selector = self.ranges.selector(self.held.keys().copied()).filter(|_| !is_all)?;
        (selector.len() <= SELECTOR_MAX).then_some(selector)
    }

    /// The ranges that were not ours before, or were given away meanwhile.
    fn added_to(&self, former: &Self) -> Self {
        let is_same = self.ranges == former.ranges;
        let is_known = |range: &u32, since: &u64| is_same && former.held.get(range) == Some(since);
        let held = self.held.iter().filter(|(range, since)| !is_known(range, since));
        Self { ranges: self.ranges, held: held.map(|(range, since)| (*range, *since)).collect() }
    }

    /// The ranges that are still in another part, and were never given away.
    fn kept_in(mut self, other: &Self) -> Self {
        let is_same = self.ranges == other.ranges;
        self.held.retain(|range, since| is_same && other.held.get(range) == Some(since));
        self
    }
}

impl Listing {
    /// Waits until the list is complete or has failed.
    async fn ended(listing: &mut Option<Self>) {
        let Some(it) = listing.as_mut().filter(|it| it.result.is_none()) else {
            return std::future::pending().await;
        };
        let ended = it.task.join_next().await;
        // Without a result, everything is listed again.
        it.result = Some(ended.and_then(Result::ok).unwrap_or(Err(Stopped::Moved)));
    }
}

impl Following {
    pub(super) fn new(mut news: watch::Receiver<Arc<Part>>) -> Self {
        let part = Arc::clone(&news.borrow_and_update());
        let listed = Part::clone(&part);
        Self { news, part, listed, added: None, known_until: 0, listing: None, is_refused: false }
    }

    /// Waits for a change of the part, or for the end of the list of added ranges.
    pub(super) async fn moved(following: &mut Option<Self>) {
        let Some(it) = following else { return std::future::pending().await };
        let moved = async {
            if it.news.changed().await.is_err() {
                // There will never be another one.
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            () = moved => {}
            () = Listing::ended(&mut it.listing) => {}
        }
    }

    /// Adds the ranges of a complete list, and goes back to the version before it; returns why a
    /// list has failed.
    fn add_listed(&mut self, version: &mut String) -> Result<(), Stopped> {
        let Some(listing) = self.listing.take_if(|it| it.result.is_some()) else { return Ok(()) };
        let listed_at = listing.result.unwrap_or(Err(Stopped::Moved))?;
        let added = listing.added.kept_in(&self.part);
        self.listed.held.extend(&added.held);
        self.known_until = version.parse().unwrap_or(0);
        self.added = Some((added, listed_at.parse().unwrap_or(0)));
        *version = listing.since;
        Ok(())
    }

    /// Takes the newest part; returns the ranges that must be listed.
    fn take_newest(&mut self) -> Part {
        self.part = Arc::clone(&self.news.borrow_and_update());
        let former = std::mem::replace(&mut self.listed, Part::nothing());
        self.listed = former.kept_in(&self.part);
        self.part.added_to(&self.listed)
    }
}

impl<T: Clone + Send + Sync + 'static> Watcher<T> {
    /// Takes the newest part, to list all of it; returns whether there is anything to list.
    pub(super) fn begin_part(&mut self) -> bool {
        let Some(following) = &mut self.following else { return true };
        following.part = Arc::clone(&following.news.borrow_and_update());
        following.listed = Part::clone(&following.part);
        (following.added, following.known_until, following.listing) = (None, 0, None);
        !following.part.held.is_empty()
    }

    /// The selector for a request about the added ranges, or about everything.
    pub(super) fn part_selector(&self, added: Option<&Part>) -> Option<String> {
        let following = self.following.as_ref()?;
        // A selector from the settings cannot be combined with ours.
        let is_sent = !following.is_refused && self.collection.shard_selector.is_none();
        added.unwrap_or(&following.listed).selector().filter(|_| is_sent)
    }

    /// Whether an item of a list is in the part.
    pub(super) fn is_in_part(&self, added: Option<&Part>, raw: &[u8]) -> bool {
        let Some(following) = &self.following else { return true };
        let part = added.unwrap_or(&following.listed);
        // Unreadable objects are an error for the code that parses them.
        Sighting::read(raw).is_none_or(|sighting| part.has(&sighting))
    }

    /// The version of an event that can be skipped.
    pub(super) fn skipped(&self, kind: ChangeKind, raw: &[u8]) -> Option<String> {
        let following = self.following.as_ref()?;
        let sighting = Sighting::read(raw)?;
        let is_until = |known: u64| sighting.version.parse().is_ok_and(|it: u64| it <= known);
        let is_known = match following.added.as_ref().filter(|(added, _)| added.has(&sighting)) {
            Some((_, listed_at)) => kind != ChangeKind::Deleted && is_until(*listed_at),
            None => is_until(following.known_until),
        };
        let is_skipped = is_known || !following.listed.has(&sighting);
        is_skipped.then(|| sighting.version.into_owned())
    }

    /// Records that a server rejects our selector: only the hash is used then.
    pub(super) fn note_refusal(&mut self, error: &RequestError) {
        if let Some(following) = &mut self.following
            && !following.is_refused
            && error.report().contains(REFUSAL)
        {
            let (collection, error) = (&self.collection, error.report());
            tracing::warn!(%collection, error, "the server does not support the shard selector");
            following.is_refused = true;
        }
    }

    /// Waits until there is something to follow. Checks before whether the collection can be
    /// listed.
    pub(super) async fn await_part(&mut self) -> Result<(), Closed> {
        loop {
            match self.probe().await {
                Ok(version) => {
                    let begun = Observation::ListBegun { version: version.clone() };
                    self.batch.extend([begun, Observation::ListEnded { version }]);
                    self.flush().await?;
                    break;
                }
                Err(error) => self.pause(error).await?,
            }
        }
        self.failures = 0;
        tokio::select! {
            () = Following::moved(&mut self.following) => Ok(()),
            () = self.sink.closed() => Err(Closed),
        }
    }

    async fn probe(&self) -> Result<String, RequestError> {
        let mut path = self.path(None);
        address::push_query(&mut path, "limit", "1");
        let bytes = self.page(path.clone()).await?;
        let page: Page<'_> = serde_json::from_slice(&bytes)
            .map_err(|error| malformed(&path, "the list could not be read", error))?;
        Ok(page.metadata.resource_version)
    }

    /// Switches to another part after a watch, and begins to list what was added to it.
    ///
    /// The watch continues with the other ranges. When the list is complete, it goes back to the
    /// version before the list, so nothing in between is lost.
    pub(super) async fn move_part(&mut self, version: &mut String) -> Result<Next, Closed> {
        let Some(following) = &mut self.following else { return Ok(Next::Watch) };
        match following.add_listed(version) {
            Ok(()) => {}
            Err(Stopped::Closed) => return Err(Closed),
            Err(Stopped::Moved) => return Ok(Next::List),
            Err(Stopped::Failed(error)) => {
                self.pause(error).await?;
                return Ok(Next::List);
            }
        }
        let added = following.take_newest();
        if following.listed.held.is_empty() {
            return Ok(Next::List);
        }
        if following.listing.is_none() && !added.held.is_empty() {
            self.begin_listing(added, version.clone());
        }
        Ok(Next::Watch)
    }

    /// Lists added ranges in another task.
    fn begin_listing(&mut self, added: Part, since: String) {
        let Some(following) = &mut self.following else { return };
        let collection = self.collection.clone();
        let mut lister =
            Self::new(self.cluster.clone(), collection, self.tag.clone(), self.sink.clone());
        let mut its = Following::new(following.news.clone());
        its.is_refused = following.is_refused;
        lister.following = Some(its);
        let ranges = added.clone();
        let list = async move { lister.list(Some(&ranges)).await };
        let mut task = JoinSet::new();
        task.spawn(list.in_current_span());
        following.listing = Some(Listing { added, since, task, result: None });
    }
}

#[cfg(test)]
mod tests;
