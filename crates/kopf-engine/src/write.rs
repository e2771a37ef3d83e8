//! Sends a patch of one object: the only place where the objects of handlers are written.
//!
//! `kopf_core::write` decides which requests to send and what each response means, for cycles,
//! daemons and timers alike; this module sends them.

use bytes::Bytes;
use kopf_client::{Cluster, Failure, PatchContent, RequestError, Target, Urgency};
use kopf_core::write::{Content, End, Look, Rejection, TransformationFailure, Version, Writer};
use kopf_model::{Object, Patch, Resource, Transformation};

use crate::callbacks;

mod ambiguity;
mod lock;
pub(crate) mod loops;

pub(crate) use ambiguity::AmbiguousRefusal;
pub(crate) use lock::WriteLock;

/// How many transformations wait for a server that rejects them; the oldest are dropped.
const UNSENT_TRANSFORMATIONS_MAX: usize = 64;

/// The result of a patch.
pub(crate) enum Applied {
    /// There was nothing to change.
    Unchanged,
    /// The object is now in this state.
    Changed(Object),
    /// The object has changed meanwhile: the patch must be applied to its newer state.
    Outdated(Outdated),
    /// The object no longer exists.
    NotFound,
    /// The object no longer exists, but another one with its name does.
    Replaced,
}

/// A patch that was not for the newest state, or whose content the server rejects: it does not
/// distinguish these.
pub(crate) struct Outdated {
    /// What remains to be written.
    pub(crate) patch: Patch,
    pub(crate) error: Box<RequestError>,
}

/// Sends a patch of an object, given its newest known state.
pub(crate) async fn send(
    cluster: &Cluster,
    resource: &Resource,
    object: &Object,
    patch: &Patch,
    urgency: Urgency,
) -> Result<Applied, RequestError> {
    let calls_functions = patch.transformations.iter().any(Transformation::is_function);
    let mut writer = Writer::new(patch, resource, object);
    let mut last_error = None;
    loop {
        let next;
        (writer, next) = callbacks::decide_from(calls_functions, writer, |mut writer| {
            let request = writer.next_request();
            let next = request.map(|request| (request.to_status, content_of(&request.content)));
            (writer, next)
        })
        .await;
        for failure in writer.failures() {
            match failure {
                TransformationFailure::Error(error) => {
                    tracing::error!(%error, "a transformation failed; dropping it");
                }
                TransformationFailure::Panic(panic) => {
                    tracing::error!(panic, "a transformation panicked; dropping it");
                }
            }
        }
        let Some((to_status, content)) = next else { break };
        let subresource = to_status.then_some("status");
        log(subresource, &content);
        let target = Target { subresource, ..target(resource, object) };
        match cluster.patch(target, content, urgency).await {
            Ok(answered) => writer.accepted(answered),
            Err(error) => {
                tracing::debug!(%error, "a write was rejected");
                writer.rejected(rejection(error.failure), error.is_misdirected);
                last_error = Some(error);
            }
        }
    }
    let unstored = writer.unstored();
    Ok(match (writer.end(), last_error) {
        (End::Failed, Some(error)) => return Err(error),
        (End::Outdated(patch), Some(error)) => {
            tracing::debug!("the object has changed in the meantime; patching it again");
            Applied::Outdated(Outdated { patch, error: Box::new(error) })
        }
        (End::NotFound, _) => {
            tracing::debug!("Patching was skipped: the object does not exist anymore.");
            Applied::NotFound
        }
        (End::Replaced, _) => Applied::Replaced,
        (End::Changed(answered), _) => {
            warn_of(&unstored, object);
            Applied::Changed(answered)
        }
        // Nothing fails without an error.
        (End::Unchanged | End::Failed | End::Outdated(_), _) => Applied::Unchanged,
    })
}

/// Fetches the newest state of an object after a rejected write: its event may be late.
///
/// # Errors
/// Fails if the state cannot be determined.
pub(crate) async fn look(
    cluster: &Cluster,
    resource: &Resource,
    tried: &Object,
) -> Result<(Look, Option<Object>), RequestError> {
    match cluster.get(target(resource, tried)).await {
        Ok(found) if found.uid() == tried.uid() => {
            let is_same = Version::of(&found) == Version::of(tried);
            Ok((if is_same { Look::Same } else { Look::Newer }, Some(found)))
        }
        Ok(_) => Ok((Look::Unsure, None)),
        // Operators need not have the right to read single objects; the watch will report it.
        Err(error) if error.failure == Failure::Forbidden => Ok((Look::Forbidden, None)),
        Err(error) if error.failure == Failure::NotFound => Ok((Look::Unsure, None)),
        Err(error) => Err(error),
    }
}

/// What a failure of a request means for a write.
pub(crate) fn rejection(failure: Failure) -> Rejection {
    match failure {
        Failure::Conflict => Rejection::Conflict,
        Failure::Invalid => Rejection::Invalid,
        Failure::Client(400 | 413) => Rejection::Unacceptable,
        Failure::Forbidden => Rejection::Forbidden,
        Failure::NotFound => Rejection::NotFound,
        Failure::Client(_) => Rejection::Refused,
        other if other.is_transient() => Rejection::Transient,
        _ => Rejection::Other,
    }
}

/// Limits the size of a waiting patch.
pub(crate) fn limit(patch: &mut Patch) {
    let excess = patch.transformations.len().saturating_sub(UNSENT_TRANSFORMATIONS_MAX);
    if excess > 0 {
        tracing::error!(excess, "too many changes are waiting for the server; dropping the oldest");
        patch.transformations.drain(..excess);
    }
}

fn content_of(content: &Content<'_>) -> PatchContent {
    let bytes = Bytes::from(content.to_bytes());
    match content {
        Content::Merge(..) => PatchContent::Merge(bytes),
        Content::Json(_) => PatchContent::Json(bytes),
    }
}

fn log(subresource: Option<&str>, content: &PatchContent) {
    let what = subresource.unwrap_or("resource");
    let (how, bytes) = match content {
        PatchContent::Merge(bytes) => ("Merge", bytes),
        PatchContent::Json(bytes) => ("JSON", bytes),
    };
    tracing::debug!("{how}-patching the {what} with: {}", String::from_utf8_lossy(bytes));
}

fn target<'a>(resource: &'a Resource, object: &'a Object) -> Target<'a> {
    Target { resource, namespace: object.namespace(), name: object.name(), subresource: None }
}

/// Warns about fields that the server did not store, such as status fields unknown to the schema.
fn warn_of(unstored: &[String], object: &Object) {
    if !unstored.is_empty() {
        tracing::warn!(
            namespace = object.namespace(),
            name = object.name(),
            kind = object.kind(),
            "Merge-patching finished with inconsistencies: {}",
            unstored.join(", ")
        );
    }
}
