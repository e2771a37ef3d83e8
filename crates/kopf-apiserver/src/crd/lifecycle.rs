//! The life of a CRD: accepted, established, terminating, gone.

use std::sync::Arc;

use serde_json::{Value, json};

use super::served::{has_condition, refresh};
use super::{CLEANUP_FINALIZER, TABLE, names};
use crate::StatusError;
use crate::meta::{self, metadata_mut};
use crate::request::{RequestInfo, Verb};
use crate::resource::ResourceInfo;
use crate::rest::{self, Call, Change, DeleteRequest};
use crate::server::Inner;

/// Fills in names and the conversion strategy that a CRD may leave out.
pub(crate) fn fill_defaults(crd: &mut Value) {
    let kind = crd["spec"]["names"]["kind"].as_str().unwrap_or_default().to_owned();
    if let Some(names) = crd["spec"]["names"].as_object_mut() {
        if !names.contains_key("singular") {
            names.insert("singular".into(), kind.to_lowercase().into());
        }
        if !names.contains_key("listKind") && !kind.is_empty() {
            names.insert("listKind".into(), format!("{kind}List").into());
        }
    }
    if let Some(spec) = crd["spec"].as_object_mut()
        && !spec.contains_key("conversion")
    {
        spec.insert("conversion".into(), json!({"strategy": "None"}));
    }
}

/// The status of a CRD that was just created.
pub(crate) fn initial_status(crd: &mut Value) {
    let stored = storage_version(crd);
    crd["status"] = json!({
        "conditions": null,
        "acceptedNames": {"plural": "", "kind": ""},
        "storedVersions": [stored],
    });
}

fn storage_version(crd: &Value) -> String {
    crd["spec"]["versions"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|version| version["storage"] == true)
        .and_then(|version| version["name"].as_str())
        .unwrap_or_default()
        .to_owned()
}

/// Marks a CRD for deletion: finalizer, timestamp, condition. No generation, no grace.
pub(crate) fn begin_deletion(crd: &mut Value, now: &str) {
    let mut finalizers: Vec<Value> =
        crd["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
    if !finalizers.iter().any(|name| name == CLEANUP_FINALIZER) {
        finalizers.push(CLEANUP_FINALIZER.into());
    }
    let metadata = metadata_mut(crd);
    metadata.insert("deletionTimestamp".into(), now.into());
    metadata.insert("finalizers".into(), Value::Array(finalizers));
    set_condition(
        crd,
        now,
        ("Terminating", "True"),
        "InstanceDeletionPending",
        "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
    );
}

/// Does what a write of a CRD, or of an object of a dying CRD, entails.
pub(crate) async fn after_write(inner: &Arc<Inner>, resource: &ResourceInfo, name: &str) {
    if &*resource.table == TABLE {
        refresh(inner);
        if let Err(error) = Box::pin(reconcile(inner, name)).await {
            tracing::warn!(crd = name, %error, "could not update a custom resource definition");
        }
        refresh(inner);
        return;
    }
    let Some(custom) = resource.custom.as_ref() else { return };
    // The caller's view of the resource may be older than the deletion of the CRD.
    let dying = inner.store.get(TABLE, "", &custom.crd_name);
    if dying.is_some_and(|crd| meta::is_deleting(crd.content())) {
        let outcome = Box::pin(finish_deletion(inner, resource, &custom.crd_name)).await;
        if let Err(error) = outcome {
            tracing::warn!(crd = custom.crd_name, %error, "could not finish a deletion");
        }
        refresh(inner);
    }
}

/// Brings the status of a CRD up to date and, when it is being deleted, its objects to an end.
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

/// Lists the storage version among those in which objects may be stored.
pub(crate) fn note_storage_version(crd: &mut Value) {
    let storage = storage_version(crd);
    let stored = crd["status"]["storedVersions"].as_array().cloned().unwrap_or_default();
    if !stored.iter().any(|version| *version == storage.as_str()) {
        let mut stored = stored;
        stored.push(storage.into());
        crd["status"]["storedVersions"] = Value::Array(stored);
    }
}

fn set_condition(
    crd: &mut Value,
    now: &str,
    (kind, status): (&str, &str),
    reason: &str,
    message: &str,
) {
    let mut conditions = crd["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let present = conditions.iter_mut().find(|condition| condition["type"] == kind);
    match present {
        Some(condition) => {
            if condition["status"] != status {
                condition["lastTransitionTime"] = json!(now);
            }
            condition["status"] = json!(status);
            condition["reason"] = json!(reason);
            condition["message"] = json!(message);
        }
        None => conditions.push(json!({
            "type": kind, "status": status, "lastTransitionTime": now,
            "reason": reason, "message": message,
        })),
    }
    crd["status"]["conditions"] = Value::Array(conditions);
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
    rest::update_with(&mut call, Change::Patch, |call, old| {
        let mut crd = old.object.clone();
        change(&call.inner, &mut crd)?;
        Ok(crd.into())
    })
    .await
    .map(|_| ())
}

/// Begins the deletion of every object of a CRD.
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
        match rest::delete(&mut call, &DeleteRequest::default()).await {
            Err(error) if !error.is_not_found() => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Lets the CRD go once no object of it is left.
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
    let outcome = rest::update_with(&mut call, Change::Patch, |_, old| {
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
