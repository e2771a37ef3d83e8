//! The part of a collection that a watch follows when replicas share the objects.
//!
//! The server is asked for the part with `shardSelector` (KEP-5866). Servers that do not know it
//! send everything, so the same hash is applied to the bytes of every object before they are parsed
//! or kept. When the part grows, only the new ranges are listed, and the watch continues where it
//! was.

use std::collections::BTreeMap;
use std::sync::Arc;

use kopf_model::shards::{Ranges, ShardField, Sighting};
use tokio::sync::watch;

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
    /// The ranges that were added last, and the version of their list: older events are known.
    added: Option<(Part, u64)>,
    /// Whether the server rejects our selector.
    is_refused: bool,
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
}

impl Following {
    pub(super) fn new(mut news: watch::Receiver<Arc<Part>>) -> Self {
        let part = Arc::clone(&news.borrow_and_update());
        Self { news, part, added: None, is_refused: false }
    }

    /// Waits for a change of the part.
    pub(super) async fn moved(following: &mut Option<Self>) {
        let Some(it) = following else { return std::future::pending().await };
        if it.news.changed().await.is_err() {
            // There will never be another one.
            std::future::pending::<()>().await;
        }
    }
}

impl<T: Clone> Watcher<T> {
    /// Takes the newest part, to list all of it; returns whether there is anything to list.
    pub(super) fn begin_part(&mut self) -> bool {
        let Some(following) = &mut self.following else { return true };
        following.part = Arc::clone(&following.news.borrow_and_update());
        following.added = None;
        !following.part.held.is_empty()
    }

    /// The selector for a request about the added ranges, or about everything.
    pub(super) fn part_selector(&self, added: Option<&Part>) -> Option<String> {
        let following = self.following.as_ref()?;
        // A selector from the settings cannot be combined with ours.
        let is_sent = !following.is_refused && self.collection.shard_selector.is_none();
        added.unwrap_or(&following.part).selector().filter(|_| is_sent)
    }

    /// Whether an item of a list is in the part.
    pub(super) fn is_in_part(&self, added: Option<&Part>, raw: &[u8]) -> bool {
        let Some(following) = &self.following else { return true };
        let part = added.unwrap_or(&following.part);
        // Unreadable objects are an error for the code that parses them.
        Sighting::read(raw).is_none_or(|sighting| part.has(&sighting))
    }

    /// The version of an event that can be skipped.
    pub(super) fn skipped(&self, kind: ChangeKind, raw: &[u8]) -> Option<String> {
        let following = self.following.as_ref()?;
        let sighting = Sighting::read(raw)?;
        let is_listed = |(added, listed_at): &(Part, u64)| {
            kind != ChangeKind::Deleted
                && added.has(&sighting)
                && sighting.version.parse().is_ok_and(|version: u64| version <= *listed_at)
        };
        let is_skipped =
            !following.part.has(&sighting) || following.added.as_ref().is_some_and(is_listed);
        is_skipped.then(|| sighting.version.into_owned())
    }

    /// Records that a server rejects our selector: only the hash is used then.
    pub(super) fn note_refusal(&mut self, error: &RequestError) {
        if let Some(following) = &mut self.following
            && !following.is_refused
            && error.report().contains(REFUSAL)
        {
            let (collection, error) = (&self.collection, error.report());
            tracing::warn!(%collection, error, "the server does not take the shard selector");
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

    /// Switches to another part after a watch: lists what was added to it.
    ///
    /// The watch continues from where it was, so nothing in between is lost.
    pub(super) async fn move_part(&mut self) -> Result<Next, Closed> {
        let Some(following) = &mut self.following else { return Ok(Next::Watch) };
        let next = Arc::clone(&following.news.borrow_and_update());
        let added = next.added_to(&following.part);
        following.part = next;
        if following.part.held.is_empty() {
            return Ok(Next::List);
        }
        if added.held.is_empty() {
            return Ok(Next::Watch);
        }
        match self.list(Some(&added)).await {
            Ok(version) => {
                let listed_at = version.parse().unwrap_or(0);
                if let Some(following) = &mut self.following {
                    following.added = Some((added, listed_at));
                }
                Ok(Next::Watch)
            }
            Err(Stopped::Closed) => Err(Closed),
            Err(Stopped::Moved) => Ok(Next::List),
            Err(Stopped::Failed(error)) => {
                self.pause(error).await?;
                Ok(Next::List)
            }
        }
    }
}

#[cfg(test)]
mod tests;
