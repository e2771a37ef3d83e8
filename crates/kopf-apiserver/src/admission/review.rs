//! The AdmissionReview format: requests to webhooks and their responses.
//!
//! Pure. Field order, nulls and error messages are the real server's.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::AdmissionRequest;
use super::matching::View;
use crate::fields::{at, flag, number, text, texts};
use crate::resource::ResourceInfo;
use crate::{Cause, Details, StatusError};

/// A response that allows or denies the write.
#[derive(Debug, PartialEq)]
pub(super) struct Answer {
    /// Warnings for the client.
    pub(super) warnings: Vec<String>,
    /// The patch, or the reason for the denial.
    pub(super) verdict: Result<Option<Value>, Denial>,
}

/// A webhook's denial: the `status` of its response.
#[derive(Debug, PartialEq)]
pub(super) struct Denial {
    status: Value,
}

/// The `request` of a review.
pub(super) fn request(request: &AdmissionRequest<'_>, view: &View<'_>, uid: &str) -> Value {
    let resource = view.resource;
    let mut review = Map::new();
    let mut put = |key: &str, value: Value| {
        review.insert(key.to_owned(), value);
    };
    put("uid", json!(uid));
    put("kind", kind_of(resource, request.subresource));
    put("resource", resource_of(resource));
    if !request.subresource.is_empty() {
        put("subResource", json!(request.subresource));
    }
    put("requestKind", kind_of(request.resource, request.subresource));
    put("requestResource", resource_of(request.resource));
    if !request.subresource.is_empty() {
        put("requestSubResource", json!(request.subresource));
    }
    if !request.name.is_empty() {
        put("name", json!(request.name));
    }
    let is_namespace =
        request.resource.group.is_empty() && request.resource.resource == "namespaces";
    if is_namespace && !request.name.is_empty() {
        put("namespace", json!(request.name));
    } else if !request.namespace.is_empty() {
        put("namespace", json!(request.namespace));
    }
    put("operation", json!(request.operation.as_str()));
    put("userInfo", request.user.to_value());
    put("object", object_as(view.object.as_deref(), resource));
    put("oldObject", object_as(view.old_object.as_deref(), resource));
    put("dryRun", json!(request.dry_run));
    put("options", request.options.clone());
    Value::Object(review)
}

/// The whole review around a request.
pub(super) fn wrap(request: Value, version: &str) -> Value {
    json!({
        "kind": "AdmissionReview",
        "apiVersion": format!("admission.k8s.io/{version}"),
        "request": request,
    })
}

fn kind_of(resource: &ResourceInfo, subresource: &str) -> Value {
    let found = resource.subresource(subresource).filter(|_| !subresource.is_empty());
    match found {
        Some(found) if found.kind != resource.kind => {
            let group = if found.version.is_empty() { &resource.group } else { &found.group };
            let version = if found.version.is_empty() { &resource.version } else { &found.version };
            json!({ "group": group, "version": version, "kind": found.kind })
        }
        _ => json!({
            "group": resource.group, "version": resource.version, "kind": resource.kind,
        }),
    }
}

fn resource_of(resource: &ResourceInfo) -> Value {
    json!({
        "group": resource.group, "version": resource.version, "resource": resource.resource,
    })
}

/// The object in the version for the webhook. For built-in kinds, only the apiVersion changes.
fn object_as(object: Option<&Value>, resource: &ResourceInfo) -> Value {
    let Some(object) = object else { return Value::Null };
    let mut object = object.clone();
    if text(&object, &["kind"]) == resource.kind {
        object["apiVersion"] = json!(resource.api_version());
    }
    // Go's built-in types print a null creation time for new objects.
    if !resource.is_custom()
        && let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut)
    {
        metadata.entry("creationTimestamp").or_insert(Value::Null);
    }
    object
}

/// Reads the response of a webhook; the error says why it is invalid.
pub(super) fn read(
    review: &Value,
    uid: &str,
    version: &str,
    is_mutating: bool,
) -> Result<Answer, String> {
    let response = review
        .get("response")
        .filter(|response| response.is_object())
        .ok_or("webhook response was absent")?;
    if version == "v1" {
        check_envelope(review, response, uid)?;
    }
    let patch = text(response, &["patch"]);
    let patch_type = at(response, &["patchType"]).filter(|kind| !kind.is_null());
    if is_mutating && version == "v1" {
        if !patch.is_empty() && patch_type.is_none() {
            return Err("webhook returned response.patch but not response.patchType".into());
        }
        if patch.is_empty() && patch_type.is_some() {
            return Err("webhook returned response.patchType but not response.patch".into());
        }
    } else if !is_mutating && version == "v1" {
        if !patch.is_empty() {
            return Err("validating webhook may not return response.patch".into());
        }
        if patch_type.is_some() {
            return Err("validating webhook may not return response.patchType".into());
        }
    }
    let warnings = texts(response, &["warnings"]).into_iter().map(str::to_owned).collect();
    if !flag(response, &["allowed"]) {
        let status = response.get("status").cloned().unwrap_or(Value::Null);
        return Ok(Answer { warnings, verdict: Err(Denial { status }) });
    }
    let changes = if is_mutating && !patch.is_empty() {
        Some(decode_patch(patch, patch_type)?)
    } else {
        None
    };
    Ok(Answer { warnings, verdict: Ok(changes) })
}

fn check_envelope(review: &Value, response: &Value, uid: &str) -> Result<(), String> {
    let given = text(response, &["uid"]);
    if given != uid {
        return Err(format!("expected response.uid={uid:?}, got {given:?}"));
    }
    let (kind, api_version) = (text(review, &["kind"]), text(review, &["apiVersion"]));
    if kind != "AdmissionReview" || api_version != "admission.k8s.io/v1" {
        return Err(format!(
            "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, \
             got {api_version}, Kind={kind}"
        ));
    }
    Ok(())
}

fn decode_patch(patch: &str, patch_type: Option<&Value>) -> Result<Value, String> {
    let kind = patch_type.and_then(Value::as_str).unwrap_or("JSONPatch");
    if kind != "JSONPatch" {
        return Err(format!("unsupported patch type {kind:?}"));
    }
    let bytes = STANDARD.decode(patch).map_err(|error| error.to_string())?;
    serde_json::from_slice(&bytes).map_err(|error| error.to_string())
}

impl Denial {
    /// The error that the client receives.
    pub(super) fn into_error(self, webhook: &str) -> StatusError {
        let denied = format!("admission webhook {webhook:?} denied the request");
        let reason = text(&self.status, &["reason"]);
        let message = match (text(&self.status, &["message"]), reason) {
            ("", "") => format!("{denied} without explanation"),
            ("", reason) => format!("{denied}: {reason}"),
            (message, _) => format!("{denied}: {message}"),
        };
        let code = number(&self.status, &["code"])
            .and_then(|code| u16::try_from(code).ok())
            .filter(|code| (400..600).contains(code))
            .unwrap_or(400);
        let mut error = StatusError::new(code, reason, message);
        error.details =
            at(&self.status, &["details"]).filter(|found| found.is_object()).map(details);
        error
    }
}

fn details(value: &Value) -> Box<Details> {
    let own = |key: &str| text(value, &[key]).to_owned();
    let causes = crate::fields::items(value, &["causes"])
        .iter()
        .map(|cause| Cause {
            reason: text(cause, &["reason"]).to_owned(),
            message: text(cause, &["message"]).to_owned(),
            field: text(cause, &["field"]).to_owned(),
        })
        .collect();
    let retry =
        number(value, &["retryAfterSeconds"]).and_then(|seconds| u32::try_from(seconds).ok());
    Box::new(Details {
        name: own("name"),
        group: own("group"),
        kind: own("kind"),
        uid: own("uid"),
        causes,
        retry_after_seconds: retry.unwrap_or(0),
    })
}

#[cfg(test)]
mod tests;
