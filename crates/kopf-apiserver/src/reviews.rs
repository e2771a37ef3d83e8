//! Requests that look like creations but only query: access and token reviews.

mod selectors;

use serde_json::{Value, json};

use crate::access::{Attributes, Decision};
use crate::rest::Call;
use crate::tokens::AUDIENCE;
use crate::{FieldError, FieldErrorReason, StatusError, User, apply, meta};

/// The response to a review; `None` if the call is an ordinary creation.
pub(crate) fn answer(call: &Call, object: &Value) -> Result<Option<Value>, StatusError> {
    let mut review = object.clone();
    check(call, object)?;
    let status = match call.resource.kind.as_str() {
        "SelfSubjectReview" => json!({ "userInfo": call.user.to_value() }),
        "SelfSubjectAccessReview" => access(call, &call.user, &object["spec"]),
        "SubjectAccessReview" | "LocalSubjectAccessReview" => {
            access(call, &subject(&object["spec"]), &object["spec"])
        }
        "SelfSubjectRulesReview" => rules(call, &object["spec"]),
        "TokenReview" => token(call, &object["spec"])?,
        _ => return Ok(None),
    };
    let now = meta::format_time(call.inner.clock.now());
    if call.resource.kind == "SelfSubjectReview" {
        // The response does not repeat the metadata of the request.
        review["metadata"] = json!({});
    }
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
    if call.resource.kind == "SelfSubjectRulesReview" {
        // The response is a new object.
        review["metadata"] = json!({ "creationTimestamp": null });
        review["spec"] = json!({});
    }
    review["status"] = status;
    Ok(Some(review))
}

/// Rejects reviews that are empty, ask two things at once, or have metadata.
fn check(call: &Call, object: &Value) -> Result<(), StatusError> {
    let kind = call.resource.kind.as_str();
    let spec = &object["spec"];
    if kind == "SelfSubjectRulesReview" && text(spec, "namespace").is_empty() {
        return Err(StatusError::bad_request("no namespace on request"));
    }
    if !kind.ends_with("AccessReview") {
        return Ok(());
    }
    let mut errors = attribute_problems(spec);
    let has_subject = !text(spec, "user").is_empty()
        || spec["groups"].as_array().is_some_and(|groups| !groups.is_empty());
    if kind != "SelfSubjectAccessReview" && !has_subject {
        let detail = "at least one of user or group must be specified";
        errors.push(FieldError::invalid("spec.user", &"".into(), detail));
    }
    errors.extend(selectors::problems(&spec["resourceAttributes"]));
    let is_local = call.resource.namespaced;
    let metadata = object["metadata"].as_object().into_iter().flatten();
    let is_odd = |key: &str| !(key == "namespace" && is_local);
    if metadata.into_iter().any(|(key, value)| !value.is_null() && is_odd(key)) {
        let except = if is_local { " except for namespace" } else { "" };
        let shown = go_metadata(call, object);
        errors.push(FieldError::new(
            FieldErrorReason::Invalid,
            "metadata",
            format!("Invalid value: {shown}: must be empty{except}"),
        ));
    }
    let wanted = &spec["resourceAttributes"];
    if is_local && wanted.is_object() && text(wanted, "namespace") != call.info.namespace {
        let detail = "must match metadata.namespace";
        let path = "spec.resourceAttributes.namespace";
        errors.push(FieldError::invalid(path, &text(wanted, "namespace").into(), detail));
    }
    if is_local && spec["nonResourceAttributes"].is_object() {
        errors.push(path_problem(spec, "disallowed on this kind of request"));
    }
    if errors.is_empty() {
        return Ok(());
    }
    // Upstream omits the kind here.
    Err(StatusError::invalid(&call.resource.group, "", "", &errors))
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn attribute_problems(spec: &Value) -> Vec<FieldError> {
    let asks = |key: &str| spec.get(key).is_some_and(|value| !value.is_null());
    match (asks("resourceAttributes"), asks("nonResourceAttributes")) {
        (true, true) => {
            vec![path_problem(spec, "cannot be specified in combination with resourceAttributes")]
        }
        (false, false) => {
            let detail =
                "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            vec![FieldError::invalid("spec.resourceAttributes", &"null".into(), detail)]
        }
        _ => Vec::new(),
    }
}

fn path_problem(spec: &Value, detail: &str) -> FieldError {
    let asked = &spec["nonResourceAttributes"];
    let message = format!(
        "Invalid value: authorization.NonResourceAttributes{{Path:{:?}, Verb:{:?}}}: {detail}",
        text(asked, "path"),
        text(asked, "verb")
    );
    FieldError::new(FieldErrorReason::Invalid, "spec.nonResourceAttributes", message)
}

/// The metadata of a review as Go prints the struct.
fn go_metadata(call: &Call, object: &Value) -> String {
    let metadata = &object["metadata"];
    let map = |key: &str| match metadata[key].as_object() {
        None => "map[string]string(nil)".to_owned(),
        Some(fields) => {
            let pairs: Vec<String> =
                fields.iter().map(|(key, value)| format!("{key:?}:{value}")).collect();
            format!("map[string]string{{{}}}", pairs.join(", "))
        }
    };
    let now = call.inner.clock.now().to_zoned(jiff::tz::TimeZone::UTC);
    format!(
        "v1.ObjectMeta{{Name:{:?}, GenerateName:{:?}, Namespace:{:?}, SelfLink:\"\", UID:{:?}, \
         ResourceVersion:{:?}, Generation:0, CreationTimestamp:time.Date(1, time.January, 1, 0, 0, \
         0, 0, time.UTC), DeletionTimestamp:<nil>, DeletionGracePeriodSeconds:(*int64)(nil), \
         Labels:{}, Annotations:{}, OwnerReferences:[]v1.OwnerReference(nil), \
         Finalizers:[]string(nil), ManagedFields:[]v1.ManagedFieldsEntry{{v1.ManagedFieldsEntry{{\
         Manager:{:?}, Operation:\"Update\", APIVersion:{:?}, Time:time.Date({}, time.{}, {}, {}, \
         {}, {}, {}, time.UTC), FieldsType:\"FieldsV1\", FieldsV1:(*v1.FieldsV1)(0xc000000000), \
         Subresource:\"\"}}}}}}",
        text(metadata, "name"),
        text(metadata, "generateName"),
        text(metadata, "namespace"),
        text(metadata, "uid"),
        text(metadata, "resourceVersion"),
        map("labels"),
        map("annotations"),
        call.manager(),
        call.resource.api_version(),
        now.year(),
        now.strftime("%B"),
        now.day(),
        now.hour(),
        now.minute(),
        now.second(),
        now.subsec_nanosecond(),
    )
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
            "user": found.user.to_value(),
            "audiences": found.audiences,
        }),
        Err(problem) => json!({ "user": {}, "error": problem }),
    })
}
