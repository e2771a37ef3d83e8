//! Any resource of the cluster, as kubectl would list it, and events.

use kopf_engine::journal::resource_name;
use kopf_model::Resource;
use serde_json::{Value, json};

use crate::children::{collection_path, resource_of};
use crate::request::PageRequest;
use crate::response::{ApiError, ApiResult};
use crate::shared::Shared;

/// The maximum number of objects shown per kind.
const LISTED_MAX: usize = 1000;
/// Requests lists with the columns of kubectl.
const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1,application/json";

/// All resources that can be listed.
pub(crate) async fn kinds(shared: &Shared) -> ApiResult {
    let resources = shared.kinds.all().await?;
    let is_listed = |it: &&std::sync::Arc<Resource>| it.preferred && it.verbs.contains("list");
    let mut kinds: Vec<Value> = resources
        .iter()
        .filter(is_listed)
        .map(|it| {
            json!({
                "resource": resource_name(it),
                "kind": it.kind,
                "group": it.group,
                "version": it.version,
                "namespaced": it.namespaced,
            })
        })
        .collect();
    kinds.sort_by_key(|kind| kind["resource"].as_str().unwrap_or_default().to_owned());
    Ok(kinds.into())
}

/// The objects of a resource, with the server's columns.
pub(crate) async fn list(shared: &Shared, request: &PageRequest) -> ApiResult {
    let resource = resource_of(shared, request).await?;
    let namespace = request.optional_name("namespace")?;
    let path = format!("{}?limit={LISTED_MAX}", collection_path(&resource, namespace));
    let request = http::Request::get(path).header(http::header::ACCEPT, TABLE).body(Vec::new());
    let request = request.map_err(|error| ApiError::BadRequest(error.to_string()))?;
    let table: Value = shared.cluster.client().await?.request(request).await?;
    let columns = table["columnDefinitions"].as_array().cloned().unwrap_or_default();
    let is_narrow = |column: &Value| column["priority"].as_i64().unwrap_or(0) == 0;
    let shown: Vec<usize> =
        (0..columns.len()).filter(|index| is_narrow(&columns[*index])).collect();
    let rows = table["rows"].as_array().into_iter().flatten().map(|row| {
        let metadata = &row["object"]["metadata"];
        json!({
            "namespace": metadata["namespace"],
            "name": metadata["name"],
            "cells": shown.iter().map(|index| row["cells"][*index].clone()).collect::<Vec<_>>(),
        })
    });
    let rows: Vec<Value> = rows.collect();
    Ok(json!({
        "kind": resource.kind,
        "namespaced": resource.namespaced,
        "columns": shown.iter().map(|index| columns[*index]["name"].clone()).collect::<Vec<_>>(),
        "rows": rows,
        "more": table["metadata"]["remainingItemCount"],
    }))
}

/// The events of the cluster, the newest first.
pub(crate) async fn events(shared: &Shared, request: &PageRequest) -> ApiResult {
    let place = match request.optional_name("namespace")? {
        Some(namespace) => format!("/api/v1/namespaces/{namespace}/events"),
        None => "/api/v1/events".to_owned(),
    };
    let request = http::Request::get(format!("{place}?limit={LISTED_MAX}")).body(Vec::new());
    let request = request.map_err(|error| ApiError::BadRequest(error.to_string()))?;
    let list: Value = shared.cluster.client().await?.request(request).await?;
    Ok(event_rows(&list).into())
}

/// The relevant fields of events, newest first.
pub(crate) fn event_rows(list: &Value) -> Vec<Value> {
    let events = list["items"].as_array().into_iter().flatten();
    let mut rows: Vec<(String, Value)> = events
        .map(|event| {
            let last = [&event["lastTimestamp"], &event["eventTime"], &event["firstTimestamp"]];
            let at = last.into_iter().find_map(Value::as_str).unwrap_or_default().to_owned();
            let object = &event["involvedObject"];
            let row = json!({
                "at": at,
                "type": event["type"],
                "reason": event["reason"],
                "message": event["message"],
                "count": event["count"].as_u64().unwrap_or(1),
                "source": event["reportingComponent"].as_str().filter(|it| !it.is_empty())
                    .or_else(|| event["source"]["component"].as_str()),
                "kind": object["kind"],
                "namespace": object["namespace"],
                "name": object["name"],
            });
            (at, row)
        })
        .collect();
    rows.sort_by(|one, other| other.0.cmp(&one.0));
    rows.into_iter().map(|(_, row)| row).collect()
}
