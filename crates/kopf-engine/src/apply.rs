//! Sends the changes of one cycle: one request per object and per status, none without changes.
//!
//! A patch without transformations goes as a merge patch. With transformations everything goes as
//! a JSON patch with a test of the version, so that a concurrent edit of a list cannot be lost; if
//! the test fails, the whole patch is handed back for the next attempt on the newer body.
//! Both are for their own object only, and not for another one that has taken its name.
//!
//! Conditions are merged into the list of the newest known state, and go with its version: lists
//! are replaced as a whole, and those of other writers must not be lost.

use std::borrow::Cow;

use bytes::Bytes;
use kopf_client::{Cluster, Failure, PatchContent, RequestError, Target, Urgency};
use kopf_core::write::{self, Content};
use kopf_model::condition::CONDITIONS;
use kopf_model::json_patch::Operation;
use kopf_model::{Diff, DiffItem, DiffScope, FieldPath, Object, Patch, Resource, merge};
use serde_json::{Map, Value};

use guard::{Guard, Guarded, Part};

mod guard;

/// How often the version of a status is looked up after a conflict. In the end the status is written
/// to any version, unless it has conditions: busy writers must not keep us from it.
const CONFLICTS_MAX: usize = 3;

const STATUS: Option<&str> = Some("status");

/// What became of a patch.
pub(crate) enum Applied {
    /// There was nothing to change.
    Unchanged,
    /// The object as it is now.
    Changed(Object),
    /// The object changed meanwhile: the patch is to be applied to its newer state.
    Outdated(Outdated),
    /// The object does not exist any more.
    NotFound,
    /// Nor does it, but another one of its name does.
    Replaced,
}

/// A patch that was not for the newest state, or whose content the server does not take: it does
/// not tell these apart.
pub(crate) struct Outdated {
    /// What is still to be written.
    pub(crate) patch: Patch,
    pub(crate) error: Box<RequestError>,
}

/// Applies a patch to an object, given its newest known state.
pub(crate) async fn apply(
    cluster: &Cluster,
    resource: &Resource,
    object: &Object,
    patch: &Patch,
    urgency: Urgency,
) -> Result<Applied, RequestError> {
    let writer = Writer { cluster, resource, object, urgency };
    let result = if patch.transformations.is_empty() {
        writer.merge(patch).await
    } else {
        let mut requests = write::Writer::new(patch.clone(), resource);
        match Box::pin(writer.transform(&mut requests)).await {
            Err(error) if matches!(error.failure, Failure::Invalid | Failure::Conflict) => {
                tracing::debug!(%error, "the object has changed meanwhile; will patch it again");
                let (patch, error) = (requests.remaining(), Box::new(error));
                return Ok(Applied::Outdated(Outdated { patch, error }));
            }
            other => other,
        }
    };
    match result {
        Err(error) if error.failure == Failure::NotFound => {
            tracing::debug!("Patching was skipped: the object does not exist anymore.");
            Ok(Applied::NotFound)
        }
        other => other,
    }
}

/// How many transformations wait for a server that does not take them; the oldest give way.
const UNSENT_TRANSFORMATIONS_MAX: usize = 64;

/// Keeps a patch that waits for its server within its limit.
pub(crate) fn limit(patch: &mut Patch) {
    let excess = patch.transformations.len().saturating_sub(UNSENT_TRANSFORMATIONS_MAX);
    if excess > 0 {
        tracing::error!(excess, "too many changes wait for the server; dropped the oldest");
        patch.transformations.drain(..excess);
    }
}

/// The later of two states of the same object.
pub(crate) fn newest(one: Object, other: Object) -> Object {
    let version = |object: &Object| object.resource_version().parse::<u64>().ok();
    if version(&other) >= version(&one) { other } else { one }
}

struct Writer<'a> {
    cluster: &'a Cluster,
    resource: &'a Resource,
    object: &'a Object,
    urgency: Urgency,
}

impl Writer<'_> {
    async fn merge(&self, patch: &Patch) -> Result<Applied, RequestError> {
        let merge = self.merge_for(patch, self.object);
        let is_status = |key: &str| self.belongs(key, STATUS);
        let main = Part::of(&merge, |key| !is_status(key)).filter(|it| self.is_changed_by(it));
        let status = Part::of(&merge, is_status).filter(|it| self.is_changed_by(it));
        let answered = match (&main, &status) {
            (None, None) => return Ok(Applied::Unchanged),
            (Some(main), None) => self.merge_main_of(patch, main, self.object).await?,
            (None, Some(_)) => self.merge_versioned(patch, STATUS, self.object).await?,
            (Some(main), Some(_)) => {
                // The object says that it was handled only once the results are safe: a crash
                // between the two repeats the handlers, instead of losing what they returned.
                let one = match self.merge_versioned(patch, STATUS, self.object).await {
                    Err(error) if is_repeatable(error.failure) => return Err(error),
                    Ok(None) => return Ok(Applied::Replaced),
                    // What the server will never take must not hold up the rest.
                    other => other,
                };
                match (one, self.merge_main(main).await?) {
                    (Err(error), Some(_)) => return Err(error),
                    (Ok(Some(one)), Some(other)) => Some(newest(one, other)),
                    (_, None) | (Ok(None), _) => None,
                }
            }
        };
        let Some(answered) = answered else { return Ok(Applied::Replaced) };
        self.check(patch, main.iter().chain(&status), &answered);
        Ok(Applied::Changed(answered))
    }

    /// The merge patch for a state of the object; most do not depend on it.
    fn merge_for<'b>(&self, patch: &'b Patch, known: &Object) -> Cow<'b, Map<String, Value>> {
        match patch.has_conditions() {
            true => patch.merge_for(known.stanza("status").as_deref()),
            false => Cow::Borrowed(&patch.merge),
        }
    }

    /// Patches the object itself; where it has its conditions, only in a known version.
    async fn merge_main_of(
        &self,
        patch: &Patch,
        part: &Part<'_>,
        known: &Object,
    ) -> Result<Option<Object>, RequestError> {
        match patch.has_conditions() && !self.has_status() {
            true => self.merge_versioned(patch, None, known).await,
            false => self.merge_main(part).await,
        }
    }

    /// Patches the object; none if it is another one.
    async fn merge_main(&self, part: &Part<'_>) -> Result<Option<Object>, RequestError> {
        self.merge_part(part, None, Guard::by_uid(self.object, part)).await
    }

    /// Patches the object or its status, given the newest known state; none if it is another one.
    async fn merge_versioned(
        &self,
        patch: &Patch,
        subresource: Option<&'static str>,
        known: &Object,
    ) -> Result<Option<Object>, RequestError> {
        let merge = self.merge_for(patch, known);
        let part = self.part(&merge, subresource);
        match self.merge_part(&part, subresource, Guard::by_version(known)).await {
            Err(error) if error.failure == Failure::Conflict => {
                tracing::debug!(%error, "the object has changed meanwhile; looking for its uid");
                // Rare and large.
                Box::pin(self.merge_newer(patch, subresource, error)).await
            }
            other => other,
        }
    }

    /// The same after a conflict.
    async fn merge_newer(
        &self,
        patch: &Patch,
        subresource: Option<&'static str>,
        mut conflict: RequestError,
    ) -> Result<Option<Object>, RequestError> {
        for _ in 0..CONFLICTS_MAX {
            // Changes nothing, and no other object takes it. Reading the object would do as well,
            // but operators need not be allowed to read single objects.
            let question = Part(Vec::new());
            let Some(newer) = self.merge_main(&question).await? else { return Ok(None) };
            let merge = self.merge_for(patch, &newer);
            let part = self.part(&merge, subresource);
            match self.merge_part(&part, subresource, Guard::by_version(&newer)).await {
                Err(error) if error.failure == Failure::Conflict => conflict = error,
                other => return other,
            }
        }
        if patch.has_conditions() {
            return Err(conflict);
        }
        let part = self.part(&patch.merge, subresource);
        self.merge_part(&part, subresource, Guard::by_uid(self.object, &part)).await
    }

    /// What goes to the object or to its subresource.
    fn part<'b>(
        &self,
        merge: &'b Map<String, Value>,
        subresource: Option<&'static str>,
    ) -> Part<'b> {
        Part(merge.iter().filter(|(key, _)| self.belongs(key, subresource)).collect())
    }

    fn belongs(&self, key: &str, subresource: Option<&'static str>) -> bool {
        let is_status = self.has_status() && key == "status";
        is_status == (subresource == STATUS)
    }

    /// One request; none if the answer is about another object.
    async fn merge_part(
        &self,
        part: &Part<'_>,
        subresource: Option<&str>,
        guard: Guard<'_>,
    ) -> Result<Option<Object>, RequestError> {
        let what = subresource.unwrap_or("resource");
        let bytes = Bytes::from(Guarded { part, guard }.to_bytes());
        tracing::debug!("Merge-patching the {what} with: {}", String::from_utf8_lossy(&bytes));
        let content = PatchContent::Merge(bytes);
        match self.cluster.patch(self.target(subresource), content, self.urgency).await {
            Ok(answered) if self.is_other(&answered) => Ok(None),
            Ok(answered) => Ok(Some(answered)),
            Err(error) if error.is_misdirected && matches!(guard, Guard::Uid(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn transform(&self, requests: &mut write::Writer) -> Result<Applied, RequestError> {
        let mut newest: Option<Object> = None;
        loop {
            let next = requests.next(newest.as_ref().unwrap_or(self.object));
            for panic in requests.panics() {
                tracing::error!(panic, "a transformation panicked; dropped");
            }
            let Some(write) = next else { break };
            let answered = match &write.content {
                Content::Merge(merge) => {
                    let part = Part(merge.iter().collect());
                    let known = newest.as_ref().unwrap_or(self.object);
                    match write.to_status {
                        true => self.merge_versioned(requests.patch(), STATUS, known).await?,
                        false => self.merge_main_of(requests.patch(), &part, known).await?,
                    }
                }
                Content::Json(steps) => self.edit(steps, write.to_status).await?,
            };
            let Some(answered) = answered else { return Ok(Applied::Replaced) };
            newest = Some(answered);
            requests.accepted(&write);
        }
        Ok(newest.map_or(Applied::Unchanged, Applied::Changed))
    }

    /// Sends steps, the first of which is a test; none if the answer is about another object.
    async fn edit(
        &self,
        steps: &[Operation],
        is_status: bool,
    ) -> Result<Option<Object>, RequestError> {
        let subresource = is_status.then_some("status");
        let what = subresource.unwrap_or("resource");
        let bytes = to_bytes(&steps);
        tracing::debug!("JSON-patching the {what} with: {}", String::from_utf8_lossy(&bytes));
        let (target, content) = (self.target(subresource), PatchContent::Json(bytes));
        let answered = self.cluster.patch(target, content, self.urgency).await?;
        Ok(Some(answered).filter(|answered| !self.is_other(answered)))
    }

    /// Whether the answer is about another object: patches go by name.
    fn is_other(&self, answered: &Object) -> bool {
        answered.uid() != self.object.uid()
    }

    fn is_changed_by(&self, part: &Part<'_>) -> bool {
        let is_change = |(key, change): &(&String, &Value)| {
            merge::is_change(self.object.stanza(key).as_deref(), change)
        };
        let is_metadata = |(key, _): &&(&String, &Value)| *key == "metadata";
        let others = part.0.iter().filter(|entry| !is_metadata(entry));
        // Metadata take longest to read.
        others.chain(part.0.iter().filter(is_metadata)).any(is_change)
    }

    fn has_status(&self) -> bool {
        self.resource.subresources.contains("status")
    }

    fn target<'b>(&'b self, subresource: Option<&'b str>) -> Target<'b> {
        Target {
            resource: self.resource,
            namespace: self.object.namespace(),
            name: self.object.name(),
            subresource,
        }
    }

    /// Warns about what the server did not take, such as status fields unknown to the schema.
    fn check<'b>(
        &self,
        patch: &Patch,
        parts: impl Iterator<Item = &'b Part<'b>>,
        answered: &Object,
    ) {
        let conditions = FieldPath::from_keys(["status", CONDITIONS]);
        // Their list may have been merged into a newer one since.
        let has_all = || {
            let merge = self.merge_for(patch, answered);
            let asked = merge.get("status").and_then(|status| status.get(CONDITIONS));
            asked.is_none_or(|asked| answered.get(&conditions) == Some(asked))
        };
        // Our own notes are annotations, which are never dropped: no need to read the answer.
        let entries = parts.flat_map(|part| &part.0).filter(|(key, _)| *key != "metadata");
        let mut odd: Vec<String> = Vec::new();
        for (key, asked) in entries {
            let stored = answered.stanza(key);
            let diff = Diff::scoped(Some(asked), stored.as_deref(), DiffScope::Left);
            let path = |item: &DiffItem| {
                let keys = std::iter::once(key.as_str()).chain(item.field.keys());
                FieldPath::from_keys(keys)
            };
            let paths = diff.iter().filter(|item| !is_harmless(item)).map(path);
            let missed = paths.filter(|path| *path != conditions || !has_all());
            odd.extend(missed.map(|path| path.to_string()));
        }
        if !odd.is_empty() {
            tracing::warn!(
                namespace = self.object.namespace(),
                name = self.object.name(),
                kind = self.object.kind(),
                "Merge-patching finished with inconsistencies: {}",
                odd.join(", ")
            );
        }
    }
}

/// Whether the same write may succeed soon.
fn is_repeatable(failure: Failure) -> bool {
    failure.is_transient() || failure == Failure::Conflict
}

fn to_bytes(content: &impl serde::Serialize) -> Bytes {
    Bytes::from(serde_json::to_vec(content).expect("JSON values are always written"))
}

/// An empty map that the server does not store is no loss.
fn is_harmless(item: &DiffItem) -> bool {
    item.new.is_none()
        && item.old.as_ref().is_some_and(|old| old.as_object().is_some_and(is_hollow))
}

/// Whether a part of a patch asks only for removals.
fn is_hollow(part: &Map<String, Value>) -> bool {
    part.values().all(|value| match value {
        Value::Null => true,
        Value::Object(nested) => is_hollow(nested),
        _ => false,
    })
}
