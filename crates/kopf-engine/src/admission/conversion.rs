//! One conversion review: converts objects from one version to another.
//!
//! `kopf_core::convert` decides which handlers to use and what is kept of an object. Either all
//! objects are converted, or none.

use std::sync::Arc;

use kopf_core::convert::{self, Chart, NoRoute, NotAnObject};
use kopf_core::handler::{Handler, HandlerId};
use kopf_core::invoke::{HandlerError, Output};
use kopf_core::occasion::{Occasion, Subject};
use kopf_model::{Object, Resource};
use serde_json::{Value, json};
use tokio::task::coop::consume_budget;
use tracing::Instrument as _;

use super::Admission;
use super::review::ReviewError;
use crate::attempt::{self, Attempted, Cancelled, Request};
use crate::context::shared::object_span;

/// Why an object is not converted.
#[derive(Debug, thiserror::Error)]
enum ConversionError {
    #[error("there are no conversions of {kind} in {group}")]
    Unknown { kind: String, group: String },
    #[error("cannot convert from {from} to {to}: the API groups differ")]
    OtherGroup { from: String, to: String },
    #[error(transparent)]
    NoRoute(#[from] NoRoute),
    #[error("conversion '{id}' failed: {source}")]
    Failed { id: HandlerId, source: HandlerError },
    #[error("conversion '{id}' returned an invalid object: {source}")]
    NotAnObject { id: HandlerId, source: NotAnObject },
}

/// The target of all objects in a review.
struct Destination<'a> {
    group: &'a str,
    version: &'a str,
    /// The name of the definition, if it is in the path of the request.
    definition: Option<&'a str>,
}

/// Responds to a review about a definition, if known.
pub(crate) async fn convert(
    admission: &Admission,
    mut review: Value,
    definition: Option<&str>,
) -> Result<Value, ReviewError> {
    let mut request = review["request"].take();
    if !request.is_object() {
        return Err(ReviewError::Incomplete("request"));
    }
    let Value::Array(objects) = request["objects"].take() else {
        return Err(ReviewError::Incomplete("objects"));
    };
    let wanted = request["desiredAPIVersion"].as_str();
    let wanted = wanted.ok_or(ReviewError::Incomplete("desiredAPIVersion"))?;
    let (group, version) = split(wanted);
    let destination = Destination { group, version, definition };
    let mut converted = Vec::with_capacity(objects.len());
    let mut result = json!({"status": "Success"});
    for object in objects {
        let object = Object::from_value(object);
        let about = format!("{} {}", object.kind(), object.key());
        match convert_object(admission, object, &destination).await {
            Ok(object) => converted.push(object),
            Err(error) => {
                let message = format!("{about} cannot be converted to {wanted}: {error}");
                tracing::error!("{message}");
                result = json!({"status": "Failed", "message": message});
                converted.clear();
                break;
            }
        }
        // Lists are long, and functions that are not async never yield.
        consume_budget().await;
    }
    Ok(json!({
        "apiVersion": review["apiVersion"].as_str().unwrap_or("apiextensions.k8s.io/v1"),
        "kind": "ConversionReview",
        "response": {"uid": request["uid"], "convertedObjects": converted, "result": result},
    }))
}

async fn convert_object(
    admission: &Admission,
    object: Object,
    to: &Destination<'_>,
) -> Result<Value, ConversionError> {
    let (group, version) = split(object.api_version());
    if group != to.group {
        let (from, to) = (group.to_owned(), to.group.to_owned());
        return Err(ConversionError::OtherGroup { from, to });
    }
    if version == to.version {
        return Ok(object.value().clone());
    }
    let chart = chart(admission, to, object.kind()).ok_or_else(|| {
        let (kind, group) = (object.kind().to_owned(), group.to_owned());
        ConversionError::Unknown { kind, group }
    })?;
    let mut converted = object.clone();
    for (version, handler) in chart.route(version, to.version)? {
        let result = run_conversion(admission, chart, handler, &converted).await?;
        let completed = convert::completed(converted.value(), result, group, version);
        let completed = completed.map_err(|source| {
            let id = Arc::clone(&handler.id);
            ConversionError::NotAnObject { id, source }
        })?;
        converted = Object::from_value(completed);
    }
    Ok(converted.value().clone())
}

async fn run_conversion(
    admission: &Admission,
    chart: &Chart,
    handler: &Arc<Handler>,
    object: &Object,
) -> Result<Value, ConversionError> {
    let resource = resource_of(admission, chart, object);
    let subject = Subject { resource, object: object.clone() };
    let span = object_span(&subject);
    // Nothing is remembered between two conversions.
    let request = Request {
        subject: Some(&subject),
        ..admission.request(handler, Occasion::Conversion, Arc::default())
    };
    let source = match attempt::run(&admission.runtime, request).instrument(span).await {
        Ok(Attempted { error: Some(error), .. }) => error,
        Ok(Attempted { outcome, .. }) => match outcome.output {
            Output::Json(value) => return Ok(value),
            _ => return Ok(Value::Null),
        },
        Err(Cancelled) => HandlerError::Cancelled,
    };
    Err(ConversionError::Failed { id: Arc::clone(&handler.id), source })
}

/// The conversions of a resource: by the name in the path, otherwise by the kind of its objects.
fn chart<'a>(admission: &'a Admission, to: &Destination<'_>, kind: &str) -> Option<&'a Chart> {
    let named = admission.charts.iter().find(|chart| Some(chart.name().as_str()) == to.definition);
    let is_of_kind = |chart: &&Chart| {
        let resources = admission.resources.read();
        let mut all = resources.values();
        all.any(|it| it.group == chart.group && it.plural == chart.plural && it.kind == kind)
    };
    let mut of_group = admission.charts.iter().filter(|chart| chart.group == to.group);
    let by_kind = || of_group.clone().find(is_of_kind);
    let only = match (by_kind(), of_group.next(), of_group.next()) {
        (Some(chart), ..) => Some(chart),
        (None, only, None) => only,
        _ => None,
    };
    named.or(only)
}

/// The resource in the version of an object, which may no longer be served.
fn resource_of(admission: &Admission, chart: &Chart, object: &Object) -> Arc<Resource> {
    let (group, version) = split(object.api_version());
    let id = (group.to_owned(), version.to_owned(), chart.plural.clone());
    let known = admission.resources.read().get(&id).cloned();
    known.unwrap_or_else(|| {
        Arc::new(Resource {
            version: version.to_owned(),
            namespaced: object.namespace().is_some(),
            preferred: false,
            ..Resource::cluster_wide(group, &chart.plural, object.kind())
        })
    })
}

fn split(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}
