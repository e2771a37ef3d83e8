//! Strategy `Webhook`: custom resources that a webhook converts.
//!
//! Implements the ConversionReview format and checks responses as the real server does, with its
//! messages. `custom` decides which objects have to be converted, and to which version.

use serde_json::{Map, Value, json};

use super::custom::ConversionError;
use super::set_type;
use crate::apply::{Owned, shown_kind};
use crate::fields::{text, texts};
use crate::go_print::go_type;
use crate::state::Inner;
use crate::{FieldError, meta};

/// The timeout of a webhook call.
const TIMEOUT_SECONDS: u64 = 30;

/// Converts objects to the version `desired` with one review; none of them may already have it.
pub(super) async fn convert(
    inner: &Inner,
    webhook: &Value,
    desired: &str,
    objects: &[Owned<'_>],
) -> Result<Vec<Value>, ConversionError> {
    let Some(first) = objects.first() else { return Ok(Vec::new()) };
    let version = texts(webhook, &["conversionReviewVersions"])
        .into_iter()
        .find(|version| matches!(*version, "v1" | "v1beta1"))
        .ok_or_else(|| ConversionError::new("no supported conversion review versions"))?;
    let uid = inner.ids.uid();
    let review = review(version, &uid, desired, objects);
    let kind = shown_kind(text(first.object, &["apiVersion"]), text(first.object, &["kind"]));
    let failed = |problem: String| {
        ConversionError::new(format!("conversion webhook for {kind} failed: {problem}"))
    };
    let client_config = &webhook["clientConfig"];
    let answer =
        inner.webhooks.ask(client_config, TIMEOUT_SECONDS, &review).await.map_err(failed)?;
    let answered = read(answer, version, &uid).map_err(failed)?;
    if answered.len() != objects.len() {
        return Err(ConversionError::new(format!(
            "conversion webhook for {kind} returned {} objects, expected {}",
            answered.len(),
            objects.len()
        )));
    }
    let pairs = objects.iter().zip(answered);
    pairs.map(|(original, answered)| check(original.object, answered, desired)).collect()
}

/// The whole review; includes an empty response, as in upstream.
fn review(version: &str, uid: &str, desired: &str, objects: &[Owned<'_>]) -> Value {
    let objects: Vec<Value> = objects.iter().map(|object| object.whole()).collect();
    json!({
        "kind": "ConversionReview",
        "apiVersion": format!("apiextensions.k8s.io/{version}"),
        "request": { "uid": uid, "desiredAPIVersion": desired, "objects": objects },
        "response": { "uid": "", "convertedObjects": null, "result": { "metadata": {} } },
    })
}

/// The objects of a response, or why it is invalid.
fn read(mut review: Value, version: &str, uid: &str) -> Result<Vec<Value>, String> {
    let is_checked = version == "v1";
    let found = shown_kind(text(&review, &["apiVersion"]), text(&review, &["kind"]));
    let expected = "apiextensions.k8s.io/v1, Kind=ConversionReview";
    if is_checked && found != expected {
        return Err(format!("expected webhook response of {expected}, got {found}"));
    }
    let response = &mut review["response"];
    if !response.is_object() {
        return Err("no response provided".to_owned());
    }
    let given = text(response, &["uid"]);
    if is_checked && given != uid {
        return Err(format!("expected response.uid={uid:?}, got {given:?}"));
    }
    let status = text(response, &["result", "status"]);
    if status != "Success" {
        return Err(match text(response, &["result", "message"]) {
            "" => format!("response.result.status was '{status}', not 'Success'"),
            message => message.to_owned(),
        });
    }
    match response["convertedObjects"].take() {
        Value::Array(objects) => Ok(objects),
        _ => Ok(Vec::new()),
    }
}

/// Checks one converted object: the right type, the same identity, the original's metadata.
fn check(original: &Value, mut answer: Value, desired: &str) -> Result<Value, ConversionError> {
    let kind = text(original, &["kind"]);
    let from = shown_kind(text(original, &["apiVersion"]), kind);
    let returned = |problem: String| {
        ConversionError::new(format!("conversion webhook for {from} returned {problem}"))
    };
    if text(&answer, &["kind"]).is_empty() {
        return Err(ConversionError::new(format!("Object 'Kind' is missing in '{answer}'")));
    }
    let (got_version, got_kind) = (text(&answer, &["apiVersion"]), text(&answer, &["kind"]));
    if got_version != desired {
        return Err(returned(format!(
            "invalid object at index 0: invalid groupVersion (expected {desired}, received \
             {got_version})"
        )));
    }
    if got_kind != kind {
        return Err(returned(format!(
            "invalid object at index 0: invalid kind (expected {kind}, received {got_kind})"
        )));
    }
    for (key, shown) in [("name", "name"), ("namespace", "namespace"), ("uid", "UID")] {
        let (expected, got) = (meta::text(original, key), meta::text(&answer, key));
        if expected != got {
            return Err(returned(format!(
                "invalid object: must have the same {shown}: {expected} != {got}"
            )));
        }
    }
    restore_metadata(original, &mut answer)
        .map_err(|problem| returned(format!("invalid metadata: {problem}")))?;
    set_type(&mut answer, kind, desired);
    Ok(answer)
}

/// Webhooks may change labels and annotations; the rest of the metadata is restored.
fn restore_metadata(original: &Value, answer: &mut Value) -> Result<(), String> {
    let given = match answer.get_mut("metadata").map(Value::take) {
        None => return Err("missing metadata in converted object".to_owned()),
        Some(Value::Object(given)) => given,
        Some(other) => {
            let found = go_type(&other);
            return Err(format!("invalid metadata of type {found} in converted object"));
        }
    };
    let mut metadata = original["metadata"].as_object().cloned().unwrap_or_default();
    for key in ["labels", "annotations"] {
        match given.get(key) {
            None | Some(Value::Null) => {
                metadata.shift_remove(key);
            }
            Some(Value::Object(texts)) => {
                check_texts(key, texts, &metadata)?;
                metadata.insert(key.to_owned(), Value::Object(texts.clone()));
            }
            Some(other) => {
                let found = go_type(other);
                return Err(format!("invalid metadata.{key} of type {found} in converted object"));
            }
        }
    }
    answer["metadata"] = Value::Object(metadata);
    meta::tidy(answer);
    Ok(())
}

/// Labels or annotations must be strings, and valid if anything changed.
fn check_texts(
    key: &str,
    texts: &Map<String, Value>,
    original: &Map<String, Value>,
) -> Result<(), String> {
    if let Some((name, other)) = texts.iter().find(|(_, value)| !value.is_string()) {
        let found = go_type(other);
        return Err(format!(
            "metadata.{key}[{name}] must be a string, but is {found} in converted object"
        ));
    }
    let before = original.get(key).and_then(Value::as_object);
    if before.map_or(texts.is_empty(), |before| before == texts) {
        return Ok(());
    }
    let mut errors = Vec::new();
    let texts = Value::Object(texts.clone());
    match key {
        "labels" => meta::validate_labels(&texts, "metadata.labels", &mut errors),
        // The path is the same as upstream's.
        _ => meta::validate_annotations(&texts, "metadata.annotation", &mut errors),
    }
    let problems: Vec<String> = errors.iter().map(FieldError::full_message).collect();
    match problems.as_slice() {
        [] => Ok(()),
        [single] => Err(single.clone()),
        several => Err(format!("[{}]", several.join(", "))),
    }
}
