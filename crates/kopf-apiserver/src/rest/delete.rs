//! Deleting objects: finalizers, grace, propagation, preconditions, collections.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Call, admit, generation};
use crate::admission::Operation;
use crate::apply::Owned;
use crate::kinds::Kind;
use crate::meta::{self, metadata_mut};
use crate::query::{Query, parse_dry_run};
use crate::store::{Change, ObjectKey};
use crate::{FieldError, StatusError, Stored, convert, crd};

/// The options of a deletion.
#[derive(Debug, Clone, Default)]
pub(crate) struct DeleteRequest {
    /// `Background`, `Foreground`, `Orphan`, or `None`.
    pub(crate) propagation_policy: Option<String>,
    /// The deprecated form of `Orphan`.
    pub(crate) orphan_dependents: Option<bool>,
    /// The grace period.
    pub(crate) grace_period_seconds: Option<i64>,
    /// The uid that the object must have.
    pub(crate) uid: Option<String>,
    /// The version that the object must have.
    pub(crate) resource_version: Option<String>,
    /// Whether to process the request without deleting anything.
    pub(crate) dry_run: bool,
}

/// The result of a deletion.
pub(crate) enum Deleted {
    /// The object is gone; this is its last state.
    Gone(Arc<Stored>),
    /// The object still exists and is terminating.
    Pending(Arc<Stored>),
}

impl Deleted {
    /// The object in either case.
    pub(crate) fn into_object(self) -> Arc<Stored> {
        match self {
            Self::Gone(stored) | Self::Pending(stored) => stored,
        }
    }
}

impl DeleteRequest {
    /// Reads options from the query and the body; the body wins.
    pub(crate) fn parse(query: &Query, body: &Value) -> Result<Self, StatusError> {
        check_types(body)?;
        let text = |key: &str| {
            body[key].as_str().map(str::to_owned).or_else(|| query.get(key).map(str::to_owned))
        };
        let mut errors = Vec::new();
        let listed: Vec<&str> = match body["dryRun"].as_array() {
            Some(items) => items.iter().filter_map(Value::as_str).collect(),
            None => query.all("dryRun"),
        };
        let request = Self {
            propagation_policy: text("propagationPolicy").filter(|policy| !policy.is_empty()),
            orphan_dependents: body["orphanDependents"]
                .as_bool()
                .or_else(|| query.get("orphanDependents").map(|value| value != "false")),
            grace_period_seconds: body["gracePeriodSeconds"]
                .as_i64()
                .or(grace_in(query)?)
                // A negative value means the shortest grace period.
                .map(|seconds| if seconds < 0 { 1 } else { seconds }),
            uid: body["preconditions"]["uid"].as_str().map(str::to_owned),
            resource_version: body["preconditions"]["resourceVersion"].as_str().map(str::to_owned),
            dry_run: parse_dry_run(&listed, &mut errors),
        };
        request.check(&mut errors);
        if errors.is_empty() {
            return Ok(request);
        }
        Err(StatusError::invalid("meta.k8s.io", "DeleteOptions", "", &errors))
    }

    fn check(&self, errors: &mut Vec<FieldError>) {
        let Some(policy) = &self.propagation_policy else { return };
        let value: Value = policy.as_str().into();
        if self.orphan_dependents.is_some() {
            errors.push(FieldError::invalid(
                "propagationPolicy",
                &value,
                "orphanDependents and deletionPropagation cannot be both set",
            ));
        } else if !matches!(policy.as_str(), "Foreground" | "Background" | "Orphan") {
            errors.push(FieldError::not_supported(
                "propagationPolicy",
                &value,
                &["Foreground", "Background", "Orphan", "nil"],
            ));
        }
    }
}

/// Rejects options of the wrong type, with the messages of Go's decoder.
fn check_types(body: &Value) -> Result<(), StatusError> {
    type IsRight = fn(&Value) -> bool;
    const FIELDS: [(&str, &str, IsRight); 5] = [
        ("gracePeriodSeconds", "int64", Value::is_i64),
        ("orphanDependents", "bool", Value::is_boolean),
        ("propagationPolicy", "v1.DeletionPropagation", Value::is_string),
        ("preconditions", "v1.Preconditions", Value::is_object),
        ("dryRun", "[]string", Value::is_array),
    ];
    for (field, kind, is_right) in FIELDS {
        let value = &body[field];
        if value.is_null() || is_right(value) {
            continue;
        }
        let found = match value {
            Value::String(_) => "string".to_owned(),
            Value::Number(number) if kind == "int64" => format!("number {number}"),
            Value::Number(_) => "number".to_owned(),
            Value::Bool(_) => "bool".to_owned(),
            Value::Array(_) => "array".to_owned(),
            _ => "object".to_owned(),
        };
        let problem = format!(
            "json: cannot unmarshal {found} into Go struct field DeleteOptions.{field} of type \
             {kind}"
        );
        return Err(StatusError::new(500, "", problem));
    }
    Ok(())
}

/// The grace period in the query.
fn grace_in(query: &Query) -> Result<Option<i64>, StatusError> {
    let Some(text) = query.get("gracePeriodSeconds") else { return Ok(None) };
    text.parse().map(Some).map_err(|_| {
        let problem = format!("strconv.ParseInt: parsing {text:?}: invalid syntax");
        StatusError::bad_request(problem)
    })
}

/// How often a deletion is retried after conflicts.
const ATTEMPTS_MAX: usize = 100;

/// Deletes the object that the call names.
pub(crate) async fn delete(
    call: &mut Call,
    request: &DeleteRequest,
) -> Result<Deleted, StatusError> {
    let outcome = delete_newest(call, request).await;
    call.confirm(outcome).await
}

async fn delete_newest(call: &mut Call, request: &DeleteRequest) -> Result<Deleted, StatusError> {
    call.options.dry_run |= request.dry_run;
    check_protected(call)?;
    for _ in 0..ATTEMPTS_MAX {
        let stored = call.find_newest().ok_or_else(|| call.not_found())?;
        check_preconditions(call, request, &stored)?;
        let served = convert::served(&call.inner, &call.resource, &stored).await?;
        if admit::concerns(call) {
            let managed = served.managed();
            let old = Owned { object: served.content(), managed: &managed };
            admit::validate(call, Operation::Delete, None, Some(old)).await?;
        }
        if let Some(deleted) = attempt(call, request, &stored).await? {
            call.after_write().await;
            return Ok(deleted);
        }
    }
    Err(call.conflict(
        "the object has been modified; please apply your changes to the latest version and try \
         again",
    ))
}

/// Rejects the deletion of objects that must always exist.
fn check_protected(call: &Call) -> Result<(), StatusError> {
    let name = call.info.name.as_str();
    let protection = Kind::of(&call.resource).protection;
    match protection.filter(|protection| protection.names.contains(&name)) {
        Some(protection) => {
            let (group, resource) = (&call.resource.group, &call.resource.resource);
            Err(StatusError::forbidden(group, resource, name, protection.reason))
        }
        None => Ok(()),
    }
}

fn check_preconditions(
    call: &Call,
    request: &DeleteRequest,
    stored: &Stored,
) -> Result<(), StatusError> {
    let resource = &call.resource;
    let conflict = |problem: String| {
        StatusError::conflict(&resource.group, &resource.kind, &call.info.name, &problem)
    };
    // Namespaces have their own check, with another message.
    let is_own = Kind::of(resource).has_spec_finalizers;
    let own_conflict = |field: &str, wanted: &str, found: &str| {
        let problem = format!(
            "Precondition failed: {field} in precondition: {wanted}, {field} in object meta: {found}"
        );
        StatusError::conflict(&resource.group, &resource.resource, &call.info.name, &problem)
    };
    if let Some(uid) = &request.uid
        && uid != stored.uid()
    {
        if is_own {
            return Err(own_conflict("UID", uid, stored.uid()));
        }
        return Err(conflict(format!(
            "the UID in the precondition ({uid}) does not match the UID in record ({}). The \
             object might have been deleted and then recreated",
            stored.uid()
        )));
    }
    if let Some(version) = &request.resource_version
        && *version != stored.resource_version().to_string()
    {
        if is_own {
            let found = stored.resource_version().to_string();
            return Err(own_conflict("ResourceVersion", version, &found));
        }
        return Err(conflict(format!(
            "the ResourceVersion in the precondition ({version}) does not match the \
             ResourceVersion in record ({}). The object might have been modified",
            stored.resource_version()
        )));
    }
    Ok(())
}

/// One attempt; `None` means that another writer was faster.
async fn attempt(
    call: &Call,
    request: &DeleteRequest,
    stored: &Arc<Stored>,
) -> Result<Option<Deleted>, StatusError> {
    let old = stored.content();
    let finalizers = finalizers_after(call, request, old);
    let grace = grace_period(call, request, old);
    let held = !finalizers.is_empty() || grace > 0 || is_held_by_spec(call, old);
    let new = if held { Some(terminating(call, old, &finalizers, grace)) } else { None };
    if new.as_ref().is_some_and(|new| new == old) {
        return Ok(Some(Deleted::Pending(Arc::clone(stored))));
    }
    let managed = stored.managed();
    let new = match new {
        Some(new) if convert::has_versions(&call.resource) => {
            Some(convert::stored(&call.inner, &call.resource, new, &managed).await?)
        }
        new => new,
    };
    if call.options.dry_run {
        let at_version = |new| Stored::of_parts(new, &managed, stored.resource_version());
        return Ok(Some(match new {
            Some(new) => Deleted::Pending(Arc::new(at_version(new))),
            None => Deleted::Gone(Arc::clone(stored)),
        }));
    }
    let change = Change {
        table: Arc::clone(&call.resource.table),
        key: ObjectKey::new(call.namespace(), &call.info.name),
        expected: stored.resource_version(),
        value: new,
        managed: managed.clone(),
    };
    let Some(committed) = call.commit(change).await? else { return Ok(None) };
    if held {
        return Ok(Some(Deleted::Pending(committed)));
    }
    if !Kind::of(&call.resource).ends_gracefully {
        return Ok(Some(Deleted::Gone(committed)));
    }
    // A pod is marked as terminating without grace before it is removed, and clients see that
    // state.
    let version = committed.resource_version();
    let mut last = terminating(call, old, &[], 0);
    metadata_mut(&mut last).insert("resourceVersion".into(), version.to_string().into());
    Ok(Some(Deleted::Gone(Arc::new(Stored::of_parts(last, &managed, version)))))
}

fn is_held_by_spec(call: &Call, object: &Value) -> bool {
    let has_finalizers = Kind::of(&call.resource).has_spec_finalizers
        && object["spec"]["finalizers"].as_array().is_some_and(|items| !items.is_empty());
    has_finalizers || &*call.resource.table == crd::TABLE
}

/// The finalizers after applying the propagation policy.
fn finalizers_after(call: &Call, request: &DeleteRequest, old: &Value) -> Vec<String> {
    let present = meta::finalizers(old);
    let policy = match (&request.propagation_policy, request.orphan_dependents) {
        (Some(policy), _) => policy.as_str(),
        (None, Some(true)) => "Orphan",
        (None, Some(false)) => "Background",
        (None, None) if present.contains(&"orphan") => "Orphan",
        (None, None) if present.contains(&"foregroundDeletion") => "Foreground",
        // Kinds older than the garbage collector keep their old default.
        (None, None) if Kind::of(&call.resource).orphans_dependents => "Orphan",
        (None, None) => "Background",
    };
    let mut finalizers: Vec<String> = present
        .iter()
        .filter(|name| !matches!(**name, "orphan" | "foregroundDeletion"))
        .map(|name| (*name).to_owned())
        .collect();
    match policy {
        "Orphan" => finalizers.push("orphan".to_owned()),
        "Foreground" => finalizers.push("foregroundDeletion".to_owned()),
        _ => {}
    }
    finalizers
}

/// Only pods have a grace period; a second deletion can only shorten it.
fn grace_period(call: &Call, request: &DeleteRequest, old: &Value) -> i64 {
    const POD_GRACE_DEFAULT: i64 = 30;
    if !Kind::of(&call.resource).ends_gracefully {
        return 0;
    }
    let phase = old["status"]["phase"].as_str().unwrap_or_default();
    let unscheduled = old["spec"]["nodeName"].as_str().unwrap_or_default().is_empty();
    if unscheduled || matches!(phase, "Failed" | "Succeeded") {
        return 0;
    }
    let wanted = request
        .grace_period_seconds
        .or_else(|| old["spec"]["terminationGracePeriodSeconds"].as_i64())
        .unwrap_or(POD_GRACE_DEFAULT)
        .max(0);
    if !meta::is_deleting(old) {
        return wanted;
    }
    let present = old["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or(wanted);
    match request.grace_period_seconds {
        Some(_) => wanted.min(present),
        None => present,
    }
}

/// The object with its deletion started (or, if it had started, with the shorter grace period).
fn terminating(call: &Call, old: &Value, finalizers: &[String], grace: i64) -> Value {
    let mut object = old.clone();
    let begun = meta::is_deleting(old);
    if &*call.resource.table == crd::TABLE {
        if !begun {
            crd::begin_deletion(&mut object, &meta::format_time(call.inner.clock.now()));
        }
        return object;
    }
    let present = old["metadata"]["deletionGracePeriodSeconds"].as_i64();
    if !begun || present.unwrap_or(0) != grace {
        let span = jiff::SignedDuration::from_secs(grace);
        let now = call.inner.clock.now();
        let time = meta::format_time(now.saturating_add(span).unwrap_or(now));
        let metadata = metadata_mut(&mut object);
        metadata.insert("deletionTimestamp".into(), time.into());
        if !Kind::of(&call.resource).has_spec_finalizers {
            metadata.insert("deletionGracePeriodSeconds".into(), grace.into());
        }
    }
    if !begun {
        generation::advance_for_deletion(&mut object);
        if &*call.resource.table == "namespaces" {
            object["status"]["phase"] = json!("Terminating");
        }
    }
    let metadata = metadata_mut(&mut object);
    if finalizers.is_empty() {
        metadata.shift_remove("finalizers");
    } else if meta::finalizers(old) != finalizers {
        metadata.insert("finalizers".into(), json!(finalizers));
    }
    object
}

/// Deletes the selected objects.
pub(crate) async fn delete_collection(
    call: &mut Call,
    request: &DeleteRequest,
    selected: &[Arc<Stored>],
) -> Result<(), StatusError> {
    let collection = Arc::clone(&call.info);
    for stored in selected {
        let info = call.info_mut();
        info.name = stored.name().to_owned();
        info.namespace = stored.namespace().to_owned();
        match delete(call, request).await {
            Err(error) if !error.is_not_found() => {
                call.info = collection;
                return Err(error);
            }
            _ => {}
        }
    }
    call.info = collection;
    Ok(())
}
