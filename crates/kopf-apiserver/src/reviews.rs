//! Requests that look like creations but only ask: access and token reviews.

use serde_json::{Value, json};

use crate::access::{Attributes, Decision};
use crate::rest::Call;
use crate::tokens::AUDIENCE;
use crate::{FieldError, FieldErrorReason, StatusError, User, apply, meta};

/// The answer to a review, or none if the call is an ordinary creation.
pub(crate) fn answer(call: &Call, object: &Value) -> Result<Option<Value>, StatusError> {
    let mut review = object.clone();
    check(call, object)?;
    let status = match call.resource.kind.as_str() {
        "SelfSubjectReview" => json!({ "userInfo": user_info(&call.user) }),
        "SelfSubjectAccessReview" => access(call, &call.user, &object["spec"]),
        "SubjectAccessReview" | "LocalSubjectAccessReview" => {
            access(call, &subject(&object["spec"]), &object["spec"])
        }
        "SelfSubjectRulesReview" => rules(call, &object["spec"]),
        "TokenReview" => token(call, &object["spec"])?,
        _ => return Ok(None),
    };
    let now = meta::format_time(call.inner.clock.now());
    let api_version = call.resource.api_version();
    let manager = call.field_manager(&api_version, &now);
    review.as_object_mut().and_then(|fields| fields.shift_remove("status"));
    apply::track_update(&manager, call.resource.schema.as_deref(), None, &mut review)
        .put_into(&mut review);
    let created = match call.resource.kind.as_str() {
        "SelfSubjectReview" => now.into(),
        _ => Value::Null,
    };
    review["metadata"]["creationTimestamp"] = created;
    if call.resource.namespaced {
        review["metadata"]["namespace"] = call.info.namespace.as_str().into();
    }
    review["status"] = status;
    Ok(Some(review))
}

/// Refuses reviews that ask nothing, or two things at once.
fn check(call: &Call, object: &Value) -> Result<(), StatusError> {
    if !call.resource.kind.ends_with("AccessReview") {
        return Ok(());
    }
    let spec = &object["spec"];
    let asks = |key: &str| spec.get(key).is_some_and(|value| !value.is_null());
    let mut errors = Vec::new();
    if asks("resourceAttributes") == asks("nonResourceAttributes") {
        let detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
        errors.push(FieldError::new(
            FieldErrorReason::Invalid,
            "spec.resourceAttributes",
            format!("Invalid value: \"null\": {detail}"),
        ));
    }
    let has_subject = spec["user"].as_str().is_some_and(|name| !name.is_empty())
        || spec["groups"].as_array().is_some_and(|groups| !groups.is_empty());
    if call.resource.kind != "SelfSubjectAccessReview" && !has_subject {
        let detail = "at least one of user or group must be specified";
        errors.push(FieldError::invalid("spec.user", &"".into(), detail));
    }
    if errors.is_empty() {
        return Ok(());
    }
    // Upstream leaves the kind out of these.
    Err(StatusError::invalid(&call.resource.group, "", "", &errors))
}

/// A user as reviews and the audit log tell it.
pub(crate) fn user_info(user: &User) -> Value {
    let mut info = json!({ "username": user.name });
    if !user.uid.is_empty() {
        info["uid"] = json!(user.uid);
    }
    if !user.groups.is_empty() {
        info["groups"] = json!(user.groups);
    }
    if !user.extra.is_empty() {
        info["extra"] = json!(user.extra);
    }
    info
}

fn subject(spec: &Value) -> User {
    let groups = spec["groups"].as_array().into_iter().flatten().filter_map(Value::as_str);
    User::new(spec["user"].as_str().unwrap_or_default(), groups)
}

fn access(call: &Call, user: &User, spec: &Value) -> Value {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let attributes = if let Some(wanted) = spec.get("resourceAttributes") {
        Attributes {
            verb: text(&wanted["verb"]),
            group: text(&wanted["group"]),
            version: text(&wanted["version"]),
            resource: text(&wanted["resource"]),
            subresource: text(&wanted["subresource"]),
            namespace: text(&wanted["namespace"]),
            name: text(&wanted["name"]),
            path: String::new(),
        }
    } else {
        Attributes {
            verb: text(&spec["nonResourceAttributes"]["verb"]),
            path: text(&spec["nonResourceAttributes"]["path"]),
            ..Attributes::default()
        }
    };
    let snapshot = call.inner.store.snapshot();
    let (allowed, reason) = match call.inner.authorizer.authorize(&snapshot, user, &attributes) {
        Decision::Allow(reason) => (true, reason),
        Decision::Deny(reason) => (false, reason),
    };
    let mut status = json!({ "allowed": allowed });
    if !reason.is_empty() {
        status["reason"] = json!(reason);
    }
    status
}

fn rules(call: &Call, spec: &Value) -> Value {
    let namespace = spec["namespace"].as_str().unwrap_or_default();
    let snapshot = call.inner.store.snapshot();
    let permissions = call.inner.authorizer.permissions(&snapshot, &call.user, namespace);
    json!({
        "resourceRules": permissions.resource_rules,
        "nonResourceRules": permissions.path_rules,
        "incomplete": false,
    })
}

fn token(call: &Call, spec: &Value) -> Result<Value, StatusError> {
    let token = spec["token"].as_str().unwrap_or_default();
    if token.is_empty() {
        let problem = "token is required for TokenReview in authentication";
        return Err(StatusError::bad_request(problem));
    }
    let asked: Vec<&str> =
        spec["audiences"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let audiences = if asked.is_empty() { vec![AUDIENCE] } else { asked };
    Ok(match call.inner.authenticator.identify(token, &audiences, call.inner.present()) {
        Ok(found) => json!({
            "authenticated": true,
            "user": user_info(&found.user),
            "audiences": found.audiences,
        }),
        Err(problem) => json!({ "user": {}, "error": problem }),
    })
}
