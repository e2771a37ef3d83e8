//! Actions on the objects of an operator that allows them: run again, retry, pause, resume.
//!
//! Each changes the state stored on the object, which the operator notices like any other change.

use futures::stream::{self, StreamExt as _};
use kopf_engine::PAUSED_ANNOTATION;
use kopf_model::Object;
use serde_json::{Map, Value, json};

use crate::children::{resource_of, target};
use crate::pods::annotate;
use crate::request::PageRequest;
use crate::response::{ApiError, ApiResult};
use crate::shared::Shared;

/// The error if actions are not allowed.
const NOT_ALLOWED: &str = "this operator does not allow actions; start it with `--allow-actions`";
/// How many objects are retried at the same time.
const CONCURRENT_MAX: usize = 8;
/// The maximum number of objects that one request retries.
const RETRIED_MAX: usize = 1000;
/// The error if the state is not stored in annotations.
const ELSEWHERE: &str = "this operator does not store its state in annotations";

/// Removes the last-handled state: all handlers run as for a new object.
pub(crate) async fn again(shared: &Shared, request: &PageRequest) -> ApiResult {
    change(shared, request, |object, keys| {
        let last_handled = keys.last_handled.clone().ok_or(ApiError::Forbidden(ELSEWHERE))?;
        let mut annotations = Map::from_iter([(last_handled, Value::Null)]);
        annotations.extend(keys.records(object).map(|(key, _)| (key.clone(), Value::Null)));
        Ok(annotations)
    })
    .await
}

/// Immediately retries handlers that wait for their next attempt; if none waits, runs all again.
pub(crate) async fn retry(shared: &Shared, request: &PageRequest) -> ApiResult {
    change(shared, request, retried).await
}

/// Retries all objects of a resource that have failed or wait for their next attempt.
pub(crate) async fn retry_failed(shared: &Shared, request: &PageRequest) -> ApiResult {
    let keys = allowed(shared)?;
    let resource = resource_of(shared, request).await?;
    let mut failing = shared.known.lock().tables.failing(request.required("resource")?);
    let left = failing.len().saturating_sub(RETRIED_MAX);
    failing.truncate(RETRIED_MAX);
    let (keys, resource) = (&keys, &resource);
    let retries = stream::iter(failing).map(|(namespace, name)| async move {
        let target = target(resource, namespace.as_deref(), &name);
        let object = shared.cluster.get(target).await?;
        annotate(shared, target, Value::Object(retried(&object, keys)?)).await
    });
    let outcomes: Vec<Result<(), ApiError>> =
        retries.buffer_unordered(CONCURRENT_MAX).collect().await;
    let retried = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    let error = outcomes.iter().find_map(|outcome| outcome.as_ref().err());
    Ok(json!({"retried": retried, "left": left, "error": error.map(ToString::to_string)}))
}

/// The annotations that make waiting handlers due, or all handlers if none waits.
fn retried(object: &Object, keys: &StateKeys) -> Result<Map<String, Value>, ApiError> {
    let mut annotations = Map::new();
    for (key, mut record) in keys.records(object) {
        if record["delayed"].is_string() {
            record.shift_remove("delayed");
            annotations.insert(key.clone(), Value::Object(record).to_string().into());
        }
    }
    if annotations.is_empty() {
        let last_handled = keys.last_handled.clone().ok_or(ApiError::Forbidden(ELSEWHERE))?;
        annotations.insert(last_handled, Value::Null);
    }
    Ok(annotations)
}

/// Pauses or resumes the handling of an object.
pub(crate) async fn pause(shared: &Shared, request: &PageRequest, is_paused: bool) -> ApiResult {
    let value = if is_paused { Value::from("true") } else { Value::Null };
    change(shared, request, |_, _| Ok(Map::from_iter([(PAUSED_ANNOTATION.to_owned(), value)])))
        .await
}

/// The annotations in which the state is stored.
struct StateKeys {
    prefix: Option<String>,
    last_handled: Option<String>,
}

impl StateKeys {
    /// The progress records among the annotations, in their stored form.
    fn records<'a>(
        &self,
        object: &'a Object,
    ) -> impl Iterator<Item = (&'a String, Map<String, Value>)> {
        let prefix = self.prefix.as_ref().map(|prefix| format!("{prefix}/"));
        let annotations = object.value()["metadata"]["annotations"].as_object();
        annotations.into_iter().flatten().filter_map(move |(key, text)| {
            let is_ours = prefix.as_ref().is_some_and(|prefix| key.starts_with(prefix.as_str()));
            let record: Value = serde_json::from_str(text.as_str().filter(|_| is_ours)?).ok()?;
            let is_record = record.get("retries").is_some() && record.get("success").is_some();
            record.as_object().filter(|_| is_record).map(|record| (key, record.clone()))
        })
    }
}

/// The annotations of the stored state, if the operator allows actions.
fn allowed(shared: &Shared) -> Result<StateKeys, ApiError> {
    let known = shared.known.lock();
    let report = known.report.as_ref().filter(|report| report.actions);
    let report = report.ok_or(ApiError::Forbidden(NOT_ALLOWED))?;
    Ok(StateKeys {
        prefix: report.progress_prefix.clone(),
        last_handled: report.last_handled_annotation.clone(),
    })
}

async fn change(
    shared: &Shared,
    request: &PageRequest,
    decide: impl FnOnce(&Object, &StateKeys) -> Result<Map<String, Value>, ApiError>,
) -> ApiResult {
    let keys = allowed(shared)?;
    let resource = resource_of(shared, request).await?;
    let target = target(&resource, request.optional_name("namespace")?, request.name("name")?);
    let object = shared.cluster.get(target).await?;
    let annotations = decide(&object, &keys)?;
    annotate(shared, target, Value::Object(annotations)).await?;
    Ok(json!({"done": true}))
}
