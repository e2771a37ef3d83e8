//! The consequences of CRD writes: accepted, established, terminating, gone.

use std::sync::Arc;

use serde_json::Value;

use super::{Call, Change, DeleteRequest};
use crate::StatusError;
use crate::crd::{
    CLEANUP_FINALIZER, TABLE, has_condition, names, note_storage_version, refresh, set_condition,
};
use crate::meta::{self, metadata_mut};
use crate::request::{RequestInfo, Verb};
use crate::resource::ResourceInfo;
use crate::state::Inner;

/// Handles the consequences of writing a CRD or an object of a terminating CRD.
pub(crate) async fn after_write(inner: &Arc<Inner>, resource: &ResourceInfo, name: &str) {
    if &*resource.table == TABLE {
        refresh(inner);
        if let Err(error) = Box::pin(reconcile(inner, name)).await {
            tracing::warn!(crd = name, %error, "could not update a custom resource definition");
        }
        Box::pin(reconsider_names(inner, name)).await;
        refresh(inner);
        return;
    }
    let Some(custom) = resource.custom.as_ref() else { return };
    // The caller's copy of the resource may be older than the deletion of the CRD.
    let dying = inner.store.get(TABLE, "", &custom.crd_name);
    if dying.is_some_and(|crd| meta::is_deleting(crd.content())) {
        let outcome = Box::pin(finish_deletion(inner, resource, &custom.crd_name)).await;
        if let Err(error) = outcome {
            tracing::warn!(crd = custom.crd_name, %error, "could not finish a deletion");
        }
        Box::pin(reconsider_names(inner, &custom.crd_name)).await;
        refresh(inner);
    }
}

/// Lets other CRDs of the group take names that a CRD may have given up.
async fn reconsider_names(inner: &Arc<Inner>, name: &str) {
    let group = name.split_once('.').map_or("", |(_, group)| group);
    let is_waiting = |crd: &Value| {
        crd["spec"]["group"] == group
            && crd["metadata"]["name"] != name
            && !meta::is_deleting(crd)
            && !has_condition(crd, "NamesAccepted")
    };
    let snapshot = inner.store.snapshot();
    let waiting: Vec<String> = snapshot
        .list(TABLE, "")
        .filter(|(_, crd)| is_waiting(crd.content()))
        .map(|(key, _)| key.name.to_string())
        .collect();
    for name in waiting {
        if let Err(error) = reconcile(inner, &name).await {
            tracing::warn!(crd = name, %error, "could not update a custom resource definition");
        }
    }
}

/// Updates the status of a CRD; if it is being deleted, deletes its objects.
async fn reconcile(inner: &Arc<Inner>, name: &str) -> Result<(), StatusError> {
    let Some(stored) = inner.store.get(TABLE, "", name) else { return Ok(()) };
    if !meta::is_deleting(stored.content()) {
        return update_status(inner, name, |inner, crd| {
            establish(inner, crd);
            Ok(())
        })
        .await;
    }
    let established = has_condition(stored.content(), "Established");
    if established && !condition_reason(stored.content()).contains("InProgress") {
        let now = meta::format_time(inner.clock.now());
        update_status(inner, name, |_, crd| {
            let text = "CustomResource deletion is in progress";
            let kind = ("Terminating", "True");
            set_condition(crd, &now, kind, "InstanceDeletionInProgress", text);
            Ok(())
        })
        .await?;
        refresh(inner);
        delete_objects(inner, stored.content()).await?;
    }
    let registry = inner.registry();
    let table = format!(
        "{}.{}",
        stored.content()["spec"]["names"]["plural"].as_str().unwrap_or_default(),
        stored.content()["spec"]["group"].as_str().unwrap_or_default()
    );
    match registry.of_table(&table).filter(|_| established) {
        Some(resource) => finish_deletion(inner, resource, name).await,
        None => remove_finalizer(inner, name).await,
    }
}

fn condition_reason(crd: &Value) -> String {
    crd["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|condition| condition["type"] == "Terminating")
        .and_then(|condition| condition["reason"].as_str())
        .unwrap_or_default()
        .to_owned()
}

/// Sets names, conditions and stored versions.
fn establish(inner: &Inner, crd: &mut Value) {
    let now = meta::format_time(inner.clock.now());
    let (accepted, conflict) = names::accept(crd, &inner.store.snapshot_with_pending(TABLE));
    crd["status"]["acceptedNames"] = accepted;
    let established = has_condition(crd, "Established");
    match conflict {
        Some(conflict) => {
            let kind = ("NamesAccepted", "False");
            set_condition(crd, &now, kind, conflict.reason, &conflict.message);
            if !established {
                let kind = ("Established", "False");
                set_condition(crd, &now, kind, "NotAccepted", "not all names are accepted");
            }
        }
        None => {
            let kind = ("NamesAccepted", "True");
            set_condition(crd, &now, kind, "NoConflicts", "no conflicts found");
            let text = "the initial names have been accepted";
            set_condition(crd, &now, ("Established", "True"), "InitialNamesAccepted", text);
        }
    }
    note_storage_version(crd);
}

fn crd_call(inner: &Arc<Inner>, name: &str, subresource: &str) -> Result<Call, StatusError> {
    let resource = inner.resource_of_table(TABLE)?;
    let info = RequestInfo {
        verb: Verb::Update,
        group: resource.group.clone(),
        version: resource.version.clone(),
        resource: resource.resource.clone(),
        subresource: subresource.to_owned(),
        namespace: String::new(),
        name: name.to_owned(),
    };
    Ok(Call::internal(inner, &resource, info, "kube-apiserver"))
}

async fn update_status(
    inner: &Arc<Inner>,
    name: &str,
    mut change: impl FnMut(&Inner, &mut Value) -> Result<(), StatusError> + Send,
) -> Result<(), StatusError> {
    let mut call = crd_call(inner, name, "status")?;
    call.nested = true;
    super::update_with(&mut call, Change::Patch, |call, old| {
        let mut crd = old.object.clone();
        change(&call.inner, &mut crd)?;
        Ok(crd.into())
    })
    .await
    .map(|_| ())
}

/// Starts the deletion of every object of a CRD.
async fn delete_objects(inner: &Arc<Inner>, crd: &Value) -> Result<(), StatusError> {
    let table = format!(
        "{}.{}",
        crd["spec"]["names"]["plural"].as_str().unwrap_or_default(),
        crd["spec"]["group"].as_str().unwrap_or_default()
    );
    let Ok(resource) = inner.resource_of_table(&table) else { return Ok(()) };
    let keys: Vec<(String, String)> = inner
        .store
        .snapshot()
        .list(&table, "")
        .map(|(key, _)| (key.namespace.to_string(), key.name.to_string()))
        .collect();
    for (namespace, name) in keys {
        let info = RequestInfo {
            verb: Verb::Delete,
            group: resource.group.clone(),
            version: resource.version.clone(),
            resource: resource.resource.clone(),
            subresource: String::new(),
            namespace,
            name,
        };
        let mut call = Call::internal(inner, &resource, info, "kube-apiserver");
        call.nested = true;
        match super::delete(&mut call, &DeleteRequest::default()).await {
            Err(error) if !error.is_not_found() => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Removes the CRD once none of its objects is left.
async fn finish_deletion(
    inner: &Arc<Inner>,
    resource: &ResourceInfo,
    crd_name: &str,
) -> Result<(), StatusError> {
    if inner.store.snapshot_with_pending(&resource.table).list(&resource.table, "").next().is_some()
    {
        return Ok(());
    }
    remove_finalizer(inner, crd_name).await
}

async fn remove_finalizer(inner: &Arc<Inner>, name: &str) -> Result<(), StatusError> {
    let mut call = crd_call(inner, name, "")?;
    call.nested = true;
    let outcome = super::update_with(&mut call, Change::Patch, |_, old| {
        let mut crd = old.object.clone();
        let kept: Vec<Value> = meta::finalizers(old.object)
            .into_iter()
            .filter(|finalizer| *finalizer != CLEANUP_FINALIZER)
            .map(Value::from)
            .collect();
        metadata_mut(&mut crd).insert("finalizers".into(), Value::Array(kept));
        meta::tidy(&mut crd);
        Ok(crd.into())
    })
    .await;
    match outcome {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}
