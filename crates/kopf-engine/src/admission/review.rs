//! One admission review: from the request of the cluster to the response.

use std::sync::Arc;

use base64::Engine as _;
use kopf_core::handler::{Handler, HandlerKind, WebhookOptions};
use kopf_core::invoke::{Attempt, CallbackError, Extensions, HandlerError};
use kopf_core::occasion::{Occasion, Review, Subject};
use kopf_core::retry::{Failure, FailureKind};
use kopf_core::select;
use kopf_model::{Diff, Object, Patch, json_patch};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tracing::Instrument as _;

use super::Admission;
use crate::attempt::{self, Cancelled, Request};
use crate::callbacks;
use crate::context::shared::object_span;

/// Why a review cannot be processed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReviewError {
    /// A part of the request is missing.
    #[error("the review is incomplete: {0} is missing")]
    Incomplete(&'static str),
    /// The cluster does not have the resource.
    #[error("no handlers for {0}")]
    Unknown(String),
    /// The cluster is not connected yet.
    #[error("the operator is not ready for reviews yet")]
    Early,
    /// A filter or a transformation has failed.
    #[error("the review could not be answered: {0}")]
    Callback(#[from] CallbackError),
}

impl Admission {
    /// Responds to a review, for one handler by its id or for all.
    pub(crate) async fn review(
        &self,
        body: &Value,
        webhook: Option<&str>,
        headers: Vec<(String, String)>,
    ) -> Result<Value, ReviewError> {
        let request = body.get("request").ok_or(ReviewError::Incomplete("request"))?;
        let part = request.get("resource").ok_or(ReviewError::Incomplete("resource"))?;
        let text = |value: &Value, name: &str| {
            value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let (group, version, plural) =
            (text(part, "group"), text(part, "version"), text(part, "resource"));
        let resource = self
            .resource(&group, &version, &plural)
            .await
            .ok_or_else(|| ReviewError::Unknown(format!("{plural}.{version}.{group}")))?;
        let user_info = request.get("userInfo").ok_or(ReviewError::Incomplete("userInfo"))?;
        let object = |name: &str| {
            request.get(name).filter(|it| !it.is_null()).cloned().map(Object::from_value)
        };
        let (new, old) = (object("object"), object("oldObject"));
        let object =
            new.clone().or_else(|| old.clone()).ok_or(ReviewError::Incomplete("object"))?;
        let subresource = text(request, "subResource");
        let diff = Diff::between(old.as_ref().map(Object::value), new.as_ref().map(Object::value));
        let review = Review {
            operation: text(request, "operation"),
            subresource: Some(subresource).filter(|name| !name.is_empty()),
            dry_run: request.get("dryRun").and_then(Value::as_bool).unwrap_or(false),
            user_info: user_info.clone(),
            headers,
            old,
            new,
            diff: Arc::new(diff),
        };
        let subject = Subject { resource, object };
        let answer = self.run(&subject, Arc::new(review), webhook).await?;
        let uid = text(request, "uid");
        let response = || answer.to_value(&uid, subject.object.value());
        Ok(json!({
            "apiVersion": body.get("apiVersion").cloned().unwrap_or("admission.k8s.io/v1".into()),
            "kind": "AdmissionReview",
            "response": callbacks::decide(response).await?,
        }))
    }

    async fn run(
        &self,
        subject: &Subject,
        review: Arc<Review>,
        webhook: Option<&str>,
    ) -> Result<Answer, CallbackError> {
        let occasion = Occasion::Admission(Arc::clone(&review));
        let candidates: Vec<Arc<Handler>> = self
            .handlers
            .iter()
            .filter(|handler| handler.is_for(&subject.resource))
            .filter(|handler| webhook.is_none_or(|id| *handler.id == *id))
            .filter(|handler| concerns(handler, &review))
            .cloned()
            .collect();
        let (memos, uid) = (&self.runtime.memos, subject.object.uid());
        let memo = memos.of_reviewed(uid, review.operation == "CREATE");
        let mut answer = Answer::new(memo);
        let span = object_span(subject);
        let select = || select::for_occasion(&candidates, subject, &occasion);
        for handler in callbacks::decide(select).await? {
            let request = Request {
                subject: Some(subject),
                patch: Some(Arc::clone(&answer.patch)),
                warnings: Some(Arc::clone(&answer.warnings)),
                ..self.request(&handler, occasion.clone(), Arc::clone(&answer.memo))
            };
            match attempt::run(&self.runtime, request).instrument(span.clone()).await {
                Ok(attempted) => answer.failures.extend(attempted.outcome.error),
                Err(Cancelled) => {
                    let message = HandlerError::Cancelled.to_string();
                    let kind = FailureKind::Arbitrary;
                    answer.failures.push(Failure { kind, message });
                }
            }
        }
        memos.keep_reviewed(uid, &answer.memo);
        Ok(answer)
    }

    /// The first and only attempt of a handler: the cluster itself retries.
    pub(super) fn request<'a>(
        &self,
        handler: &'a Arc<Handler>,
        occasion: Occasion,
        memo: Arc<Extensions>,
    ) -> Request<'a> {
        let now = self.runtime.clock.now();
        Request::new(handler, Attempt { retry: 0, started: now, now }, occasion, memo)
    }
}

/// The combined result of the handlers.
struct Answer {
    /// The values that they share with each other and with the object's other handlers.
    memo: Arc<Extensions>,
    patch: Arc<Mutex<Patch>>,
    warnings: Arc<Mutex<Vec<String>>>,
    failures: Vec<Failure>,
}

impl Answer {
    fn new(memo: Arc<Extensions>) -> Self {
        Self { memo, patch: Arc::default(), warnings: Arc::default(), failures: Vec::new() }
    }

    fn to_value(&self, uid: &str, body: &Value) -> Result<Value, CallbackError> {
        let mut response = Map::new();
        response.insert("uid".into(), uid.into());
        response.insert("allowed".into(), self.failures.is_empty().into());
        let warnings = self.warnings.lock();
        if !warnings.is_empty() {
            response.insert("warnings".into(), warnings.clone().into());
        }
        // A copy, since transformations are user code.
        let patch = self.patch.lock().clone();
        let operations = json_patch::between(body, &patch.applied_to(body)?);
        if !operations.is_empty() {
            let text = serde_json::to_vec(&operations).expect("operations are always written");
            let encoded = base64::engine::general_purpose::STANDARD.encode(text);
            response.insert("patch".into(), encoded.into());
            response.insert("patchType".into(), "JSONPatch".into());
        }
        if let Some(failure) = self.failures.iter().min_by_key(|failure| rank(failure)) {
            let code = match failure.kind {
                FailureKind::Denied { code } => code,
                _ => 500,
            };
            response.insert("status".into(), json!({"message": failure.message, "code": code}));
        }
        Ok(Value::Object(response))
    }
}

/// Explicit denials come first, then permanent errors, then all others.
fn rank(failure: &Failure) -> u8 {
    match failure.kind {
        FailureKind::Denied { .. } => 0,
        FailureKind::Permanent => 1,
        FailureKind::Temporary => 2,
        _ => 3,
    }
}

/// The options of an admission handler.
pub(super) fn options(handler: &Handler) -> Option<&WebhookOptions> {
    match &handler.kind {
        HandlerKind::Validate(options) | HandlerKind::Mutate(options) => Some(options),
        _ => None,
    }
}

fn concerns(handler: &Handler, review: &Review) -> bool {
    let Some(options) = options(handler) else { return false };
    let is_operation =
        options.operations.is_empty() || options.operations.contains(&review.operation);
    // Mutating a deleted object is pointless, so only handlers for just that operation are called.
    let is_useless = matches!(handler.kind, HandlerKind::Mutate(_))
        && review.operation == "DELETE"
        && options.operations != ["DELETE"];
    let is_part = match options.subresource.as_deref() {
        Some("*") => true,
        wanted => wanted == review.subresource.as_deref(),
    };
    is_operation && !is_useless && is_part
}
