//! One object: its state in the cluster, in the operator's memory, and its events.

use jiff::Timestamp;
use kopf_client::Failure;
use kopf_engine::journal::Chronicle;
use kopf_model::ProgressRecord;
use kopf_model::record::Absent;
use serde_json::{Value, json};

use crate::answers::{Answered, Refused, plain};
use crate::asked::Asked;
use crate::children::{address, target};
use crate::desk::Desk;
use crate::notes::Places;
use crate::object_state::standing;
use crate::operator::Answer;

/// Everything about an object.
pub(crate) async fn object(desk: &Desk, asked: &Asked) -> Answered {
    let resource = address(desk, asked).await?;
    let (namespace, name) = (asked.optional_name("namespace")?, asked.name("name")?);
    let place = asked.required("resource")?;
    let found = desk.cluster.get(target(&resource, namespace, name)).await;
    let object = match found {
        Ok(object) => Some(object),
        Err(error) if error.failure == Failure::NotFound => None,
        Err(error) => return Err(error.into()),
    };
    let (chronicle, unknown, silence) = match desk.operator.ask(place, namespace, name).await {
        Ok(Answer::Known(chronicle)) => (Some(chronicle), None, None),
        Ok(Answer::Unknown(unknown)) => (None, Some(unknown), None),
        Err(error) => (None, None, Some(error.to_string())),
    };
    if object.is_none() && chronicle.is_none() {
        let text = format!("there is no {} {}", resource.kind, full_name(namespace, name));
        return Err(Refused::Absent(text));
    }
    let places = desk.known.lock().report.as_ref().map(Places::of);
    let notes = object.as_ref().zip(places.as_ref()).map(|(object, places)| places.read(object));
    let differences = object.as_ref().zip(places.as_ref());
    let differences = differences.and_then(|(object, places)| places.differences(object));
    Ok(json!({
        "now": Timestamp::now(),
        "kind": resource.kind,
        "plural": resource.plural,
        "group": resource.group,
        "version": resource.version,
        "standing": notes.as_ref().map(|notes| standing(notes, chronicle.as_deref())),
        "handled": notes.as_ref().map(|notes| notes.handled),
        "held": notes.as_ref().map(|notes| notes.held),
        "records": notes.as_ref().map(|notes| records(&notes.records)),
        "differences": differences.flatten(),
        "object": object.map(|object| shown(object.value().clone())),
        "chronicle": chronicle.as_deref().map(remembered),
        "unknown": unknown.map(plain),
        "silence": silence,
        "events": events(desk, namespace, name).await.unwrap_or_default(),
    }))
}

fn full_name(namespace: Option<&str>, name: &str) -> String {
    namespace.map_or_else(|| name.to_owned(), |namespace| format!("{namespace}/{name}"))
}

fn remembered(chronicle: &Chronicle) -> Value {
    plain(chronicle)
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
async fn events(desk: &Desk, namespace: Option<&str>, name: &str) -> Result<Vec<Value>, Refused> {
    let namespace = namespace.unwrap_or("default");
    let selector = format!("involvedObject.name%3D{name}");
    let path = format!("/api/v1/namespaces/{namespace}/events?fieldSelector={selector}&limit=100");
    let request = http::Request::get(path).body(Vec::new());
    let request = request.map_err(|error| Refused::Mistake(error.to_string()))?;
    let list: Value = desk.cluster.client().await?.request(request).await?;
    Ok(super::cluster::event_rows(&list))
}
