//! Runs the webhooks that match a write: mutating ones in order, validating ones in parallel.
//!
//! Responsible for failure policies, dry-run checks and reinvocation. `matching` decides whether a
//! webhook is called; `review` and `call` exchange the messages.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::Value;

use super::matching::{self, Seen, View};
use super::review::{self, Answer};
use super::webhook::{FailurePolicy, Webhook};
use super::{AdmissionRequest, MUTATING, VALIDATING};
use crate::state::Inner;
use crate::store::Snapshot;
use crate::{StatusError, patch, schema};

/// Calls every mutating webhook, and some of them again if later ones changed the object.
pub(super) async fn mutate(
    inner: &Inner,
    snapshot: &Snapshot,
    request: &mut AdmissionRequest<'_>,
) -> Result<(), StatusError> {
    let webhooks = Webhook::all(snapshot, MUTATING);
    let mut asked: Vec<usize> = Vec::new();
    let mut again: HashSet<usize> = HashSet::new();
    for (index, webhook) in webhooks.iter().enumerate() {
        let Some(is_changed) = ask_mutating(inner, snapshot, webhook, request).await? else {
            continue;
        };
        if is_changed {
            again.extend(asked.iter().copied());
        }
        if webhook.may_be_reinvoked() {
            asked.push(index);
        }
    }
    for (index, webhook) in webhooks.iter().enumerate() {
        if again.contains(&index) {
            ask_mutating(inner, snapshot, webhook, request).await?;
        }
    }
    Ok(())
}

/// Calls one mutating webhook and applies its patch. Returns whether the object changed; `None` if
/// the webhook does not match.
async fn ask_mutating(
    inner: &Inner,
    snapshot: &Snapshot,
    webhook: &Webhook,
    request: &mut AdmissionRequest<'_>,
) -> Result<Option<bool>, StatusError> {
    let Some(seen) = matching::find(webhook, inner, snapshot, request) else { return Ok(None) };
    let view = View::of(inner, request, &seen).await?;
    let exchange = ask(inner, webhook, request, &view, true).await?;
    let shown = view.object.map(Cow::into_owned).filter(|_| matches!(seen, Seen::As(_)));
    let answer = match exchange {
        Exchange::NotConcerned => return Ok(None),
        Exchange::Ignored => return Ok(Some(false)),
        Exchange::Answered(answer) => answer,
    };
    request.warnings.extend(answer.warnings);
    let changes = answer.verdict.map_err(|denial| denial.into_error(webhook.name()))?;
    let (Some(changes), Some(object)) = (changes, request.object.as_mut()) else {
        return Ok(Some(false));
    };
    let before = object.clone();
    if let (Seen::As(other), Some(mut shown)) = (&seen, shown) {
        shown["apiVersion"] = other.api_version().into();
        *object = shown;
    }
    patch::json::apply(object, &changes)
        .map_err(|problem| StatusError::internal(problem.to_string()))?;
    if matches!(seen, Seen::As(_)) {
        *object = matching::in_version(inner, request.resource, std::mem::take(object)).await?;
    }
    object["apiVersion"] = request.resource.api_version().into();
    if let Some(schema) = request.resource.schema.as_deref() {
        if request.resource.is_custom() {
            schema::prune(schema, object);
        }
        schema::fill_defaults(schema, object);
    }
    Ok(Some(*object != before))
}

/// Calls every validating webhook; the first denial in webhook order is returned.
pub(super) async fn validate(
    inner: &Inner,
    snapshot: &Snapshot,
    request: &mut AdmissionRequest<'_>,
) -> Result<(), StatusError> {
    let webhooks = Webhook::all(snapshot, VALIDATING);
    let shared: &AdmissionRequest<'_> = request;
    let questions = webhooks.iter().filter_map(|webhook| {
        let seen = matching::find(webhook, inner, snapshot, shared)?;
        Some(async move {
            let view = match View::of(inner, shared, &seen).await {
                Ok(view) => view,
                Err(error) => return (webhook, Err(error)),
            };
            let exchange = ask(inner, webhook, shared, &view, false).await;
            (webhook, exchange)
        })
    });
    let answers = futures::future::join_all(questions).await;
    let mut refusal = None;
    let mut warnings = Vec::new();
    for (webhook, exchange) in answers {
        let result = match exchange {
            Ok(Exchange::Answered(answer)) => {
                warnings.extend(answer.warnings);
                answer.verdict.map(drop).map_err(|denial| denial.into_error(webhook.name()))
            }
            Ok(Exchange::NotConcerned | Exchange::Ignored) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = result {
            refusal.get_or_insert(error);
        }
    }
    request.warnings.extend(warnings);
    refusal.map_or(Ok(()), Err)
}

/// The result of calling a webhook.
enum Exchange {
    /// Its match conditions do not hold.
    NotConcerned,
    /// The call failed, and the failure policy is `Ignore`.
    Ignored,
    Answered(Answer),
}

async fn ask(
    inner: &Inner,
    webhook: &Webhook,
    request: &AdmissionRequest<'_>,
    view: &View<'_>,
    is_mutating: bool,
) -> Result<Exchange, StatusError> {
    let uid = inner.ids.uid();
    let review_request = review::request(request, view, &uid);
    if !matching::holds(webhook, inner, request, view, &review_request)? {
        return Ok(Exchange::NotConcerned);
    }
    if request.dry_run && !webhook.supports_dry_run() {
        let name = webhook.name();
        let message = format!("admission webhook {name:?} does not support dry run");
        return Err(StatusError::bad_request(message));
    }
    let version = webhook.review_version();
    let review = review::wrap(review_request, version);
    match call_and_read(inner, webhook, &review, &uid, is_mutating).await {
        Ok(answer) => Ok(Exchange::Answered(answer)),
        Err(problem) => {
            let name = webhook.name();
            tracing::debug!(webhook = name, %problem, "failed calling webhook");
            match webhook.failure_policy() {
                FailurePolicy::Ignore => Ok(Exchange::Ignored),
                FailurePolicy::Fail => Err(StatusError::internal(format!(
                    "failed calling webhook {name:?}: {problem}"
                ))),
            }
        }
    }
}

async fn call_and_read(
    inner: &Inner,
    webhook: &Webhook,
    review: &Value,
    uid: &str,
    is_mutating: bool,
) -> Result<Answer, String> {
    let answer = inner
        .webhooks
        .ask(webhook.client_config(), webhook.timeout_seconds(), review)
        .await
        .map_err(|problem| format!("failed to call webhook: {problem}"))?;
    review::read(&answer, uid, webhook.review_version(), is_mutating)
        .map_err(|problem| format!("received invalid webhook response: {problem}"))
}
