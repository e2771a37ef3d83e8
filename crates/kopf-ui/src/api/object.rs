//! One object: its state in the cluster, in the operator's memory, and its events.

use jiff::Timestamp;
use kopf_client::Failure;
use kopf_engine::journal::Chronicle;
use kopf_model::ProgressRecord;
use kopf_model::record::Absent;
use serde_json::{Value, json};

use crate::children::{resource_of, target};
use crate::object_state::state_of;
use crate::operator::ObjectAnswer;
use crate::request::PageRequest;
use crate::response::{ApiError, ApiResult, to_json};
use crate::shared::Shared;
use crate::stored_state::StorageLayout;

/// Everything about an object.
pub(crate) async fn object(shared: &Shared, request: &PageRequest) -> ApiResult {
    let resource = resource_of(shared, request).await?;
    let (namespace, name) = (request.optional_name("namespace")?, request.name("name")?);
    let place = request.required("resource")?;
    let found = shared.cluster.get(target(&resource, namespace, name)).await;
    let object = match found {
        Ok(object) => Some(object),
        Err(error) if error.failure == Failure::NotFound => None,
        Err(error) => return Err(error.into()),
    };
    let (chronicle, unknown, operator_error) =
        match shared.operator.object(place, namespace, name).await {
            Ok(ObjectAnswer::Known(chronicle)) => (Some(chronicle), None, None),
            Ok(ObjectAnswer::Unknown(unknown)) => (None, Some(unknown), None),
            Err(error) => (None, None, Some(error.to_string())),
        };
    if object.is_none() && chronicle.is_none() {
        let text = format!("there is no {} {}", resource.kind, full_name(namespace, name));
        return Err(ApiError::NotFound(text));
    }
    let layout = shared.known.lock().report.as_ref().map(StorageLayout::of);
    let stored = object.as_ref().zip(layout.as_ref()).map(|(object, layout)| layout.read(object));
    let differences = object.as_ref().zip(layout.as_ref());
    let differences = differences.and_then(|(object, layout)| layout.differences(object));
    Ok(json!({
        "now": Timestamp::now(),
        "kind": resource.kind,
        "plural": resource.plural,
        "group": resource.group,
        "version": resource.version,
        "state": stored.as_ref().map(|stored| state_of(stored, chronicle.as_deref())),
        "handled": stored.as_ref().map(|stored| stored.handled),
        "held": stored.as_ref().map(|stored| stored.held),
        "records": stored.as_ref().map(|stored| records(&stored.records)),
        "differences": differences.flatten(),
        "object": object.map(|object| shown(object.value().clone())),
        "chronicle": chronicle.as_deref().map(remembered),
        "unknown": unknown.map(to_json),
        "operator_error": operator_error,
        "events": events(shared, namespace, name).await.unwrap_or_default(),
    }))
}

fn full_name(namespace: Option<&str>, name: &str) -> String {
    namespace.map_or_else(|| name.to_owned(), |namespace| format!("{namespace}/{name}"))
}

fn remembered(chronicle: &Chronicle) -> Value {
    to_json(chronicle)
}

fn records(records: &[(String, ProgressRecord)]) -> Value {
    let records = records.iter().map(|(id, record)| {
        let mut value = record.to_value(Absent::Omitted);
        value["id"] = id.as_str().into();
        value
    });
    records.collect()
}

/// The object for display: without managed fields and secrets.
pub(crate) fn shown(mut object: Value) -> Value {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.shift_remove("managedFields");
    }
    if object["kind"] == "Secret" {
        for key in ["data", "stringData"] {
            for (_, value) in object[key].as_object_mut().into_iter().flatten() {
                *value = "••••••".into();
            }
        }
        let annotations = object["metadata"]["annotations"].as_object_mut();
        if let Some(annotations) = annotations {
            annotations.shift_remove("kubectl.kubernetes.io/last-applied-configuration");
        }
    }
    object
}

/// The cluster's events about the object, newest first.
async fn events(
    shared: &Shared,
    namespace: Option<&str>,
    name: &str,
) -> Result<Vec<Value>, ApiError> {
    let namespace = namespace.unwrap_or("default");
    let selector = format!("involvedObject.name%3D{name}");
    let path = format!("/api/v1/namespaces/{namespace}/events?fieldSelector={selector}&limit=100");
    let request = http::Request::get(path).body(Vec::new());
    let request = request.map_err(|error| ApiError::BadRequest(error.to_string()))?;
    let list: Value = shared.cluster.client().await?.request(request).await?;
    Ok(super::cluster::event_rows(&list))
}
