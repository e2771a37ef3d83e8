//! The administrator's watch: every version of every object, as far as the server sends them.
//!
//! Resumes from the last version when the connection breaks, lists again when that version is too
//! old, and counts how often versions may have been missed.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use http_body_util::BodyExt as _;
use serde_json::Value;

use super::api::Api;
use super::history::Version;
use super::{now, world};
use crate::http::Request;
use crate::kubeconfig::Endpoint;

const RETRY_INTERVAL: Duration = Duration::from_millis(200);
/// The maximum silence of a frozen server; then the watch is opened again.
const SILENCE_MAX: Duration = Duration::from_secs(150);

/// Records the versions of objects that the watch reports.
pub(super) trait Notes {
    /// Records an object of a list or an event.
    fn note(&self, object: &Value, is_gone: bool);

    /// Versions may have been missed.
    fn note_gap(&self);
}

/// Versions by uid and number.
type Versions = BTreeMap<String, BTreeMap<u64, Version>>;

/// The known versions of all objects; shared by the watch and the driver.
#[derive(Clone, Default)]
pub(super) struct Book {
    versions: Arc<Mutex<Versions>>,
    gaps: Arc<AtomicU32>,
}

impl Book {
    fn lock(&self) -> MutexGuard<'_, Versions> {
        self.versions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records an object of a response or an event.
    pub(super) fn note(&self, object: &Value, is_gone: bool) {
        let meta = &object["metadata"];
        let (Some(uid), Some(version)) = (meta["uid"].as_str(), version_of(object)) else { return };
        let entry = Version { is_gone, ..version_from(object, version) };
        let mut versions = self.lock();
        let known = versions.entry(uid.to_owned()).or_default().entry(version);
        known.and_modify(|known| known.is_gone |= is_gone).or_insert(entry);
    }

    pub(super) fn gaps(&self) -> u32 {
        self.gaps.load(Ordering::Relaxed)
    }

    /// All versions by uid, in version order.
    pub(super) fn versions(&self) -> BTreeMap<String, Vec<Version>> {
        let versions = self.lock();
        let entries = versions.iter();
        entries.map(|(uid, all)| (uid.clone(), all.values().cloned().collect())).collect()
    }
}

impl Notes for Book {
    fn note(&self, object: &Value, is_gone: bool) {
        Self::note(self, object, is_gone);
    }

    fn note_gap(&self) {
        self.gaps.fetch_add(1, Ordering::Relaxed);
    }
}

/// One version of an object.
pub(super) fn version_from(object: &Value, version: u64) -> Version {
    let meta = &object["metadata"];
    Version {
        seen_at: now(),
        version,
        state: world::state(object),
        handled: world::handled(object),
        progress: world::progress(object),
        has_finalizer: meta["finalizers"].as_array().is_some_and(|all| !all.is_empty()),
        is_deleting: meta.get("deletionTimestamp").is_some(),
        is_gone: false,
    }
}

pub(super) fn version_of(object: &Value) -> Option<u64> {
    object["metadata"]["resourceVersion"].as_str()?.parse().ok()
}

/// Watches the objects of a collection until the run is over.
pub(super) async fn watch(endpoint: &Endpoint, collection: &str, notes: &impl Notes) -> Result<()> {
    let mut api = Api::new(endpoint)?;
    let mut last: Option<String> = None;
    loop {
        let version = match last.take() {
            Some(version) => version,
            None => match list(&mut api, collection, notes).await {
                Ok(version) => version,
                // The definition is being created, or the server is down.
                Err(_) => {
                    tokio::time::sleep(RETRY_INTERVAL).await;
                    continue;
                }
            },
        };
        last = follow(&api, collection, notes, version).await;
        if last.is_none() {
            notes.note_gap();
        }
        tokio::time::sleep(RETRY_INTERVAL).await;
    }
}

async fn list(api: &mut Api, collection: &str, notes: &impl Notes) -> Result<String> {
    let (status, answer) = api.try_send("GET", collection, "application/json", None).await?;
    if status != 200 {
        bail!("GET {collection}: {status}");
    }
    for object in answer["items"].as_array().into_iter().flatten() {
        notes.note(object, false);
    }
    let version = answer["metadata"]["resourceVersion"].as_str();
    Ok(version.context("a list without a version")?.to_owned())
}

/// Follows one stream; returns the version from which another one can continue.
async fn follow(
    api: &Api,
    collection: &str,
    notes: &impl Notes,
    mut version: String,
) -> Option<String> {
    let path =
        format!("{collection}?watch=true&allowWatchBookmarks=true&resourceVersion={version}");
    let Ok(Ok(mut stream)) =
        tokio::time::timeout(SILENCE_MAX, api.client().stream(&Request::get(&path))).await
    else {
        return Some(version);
    };
    match stream.status {
        200 => {}
        // Neither too old nor undefined: try again.
        401 | 403 | 429 | 500.. => return Some(version),
        _ => return None,
    }
    let mut buffer = Vec::new();
    while let Ok(Some(Ok(frame))) = tokio::time::timeout(SILENCE_MAX, stream.body.frame()).await {
        buffer.extend_from_slice(frame.data_ref().map_or(&[], |data| &data[..]));
        while let Some(end) = buffer.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = buffer.drain(..=end).collect();
            let event: Value = serde_json::from_slice(&line).ok()?;
            let object = &event["object"];
            match event["type"].as_str() {
                Some("ADDED" | "MODIFIED") => notes.note(object, false),
                Some("DELETED") => notes.note(object, true),
                Some("BOOKMARK") => {}
                _ => return None,
            }
            object["metadata"]["resourceVersion"].as_str()?.clone_into(&mut version);
        }
    }
    Some(version)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn versions_are_kept_by_their_numbers() {
        let book = Book::default();
        for version in ["10", "9", "10"] {
            let meta = json!({"uid": "u", "resourceVersion": version, "finalizers": ["x"]});
            book.note(&json!({"metadata": meta, "spec": {"value": 1}}), false);
        }
        let versions = &book.versions()["u"];
        assert_eq!(versions.iter().map(|it| it.version).collect::<Vec<_>>(), [9, 10]);
        assert!(versions.iter().all(|version| version.has_finalizer && !version.is_deleting));
    }
}
