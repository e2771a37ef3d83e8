//! Replaces objects: the loop behind PUT, every patch and the status endpoints.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;

use super::create::{CreateError, create_unless_taken};
use super::{Call, admit, generation, managers, scale, verdict};
use crate::admission::Operation;
use crate::apply::{self, ManagedFields, Owned};
use crate::kinds::{Kind, StatusMetadata};
use crate::lockstep::equal;
use crate::meta::{self, metadata_mut};
use crate::store::ObjectKey;
use crate::{FieldError, StatusError, Stored, convert, crd, kinds};

/// The origin of an update, which affects details of its checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// A PUT: the client sent the whole object.
    Put,
    /// A JSON, merge or strategic patch.
    Patch,
    /// Server-side apply, which has already tracked its fields.
    Apply,
}

/// The result of an update.
pub(crate) struct Made {
    object: Value,
    // `None` if they still have to be tracked.
    managed: Option<ManagedFields>,
}

impl Made {
    /// An object whose ownership has already been determined.
    pub(crate) fn tracked(object: Value, managed: ManagedFields) -> Self {
        Self { object, managed: Some(managed) }
    }
}

/// An object whose writer owns the fields that it changes.
impl From<Value> for Made {
    fn from(object: Value) -> Self {
        Self { object, managed: None }
    }
}

/// How often a write is retried after conflicts.
pub(super) const ATTEMPTS_MAX: usize = 100;

/// Replaces an object (or its status) with `object`, already typed and defaulted.
///
/// The flag is whether the object was created, which some kinds allow.
pub(crate) async fn update(
    call: &mut Call,
    object: Value,
) -> Result<(Arc<Stored>, bool), StatusError> {
    let mut object = object;
    check_address(call, &object)?;
    place(call, &mut object)?;
    let creates = creates(call);
    let warnings = call.warnings.len();
    for _ in 0..ATTEMPTS_MAX {
        let make = |_: &mut Call, _: Owned<'_>| Ok(object.clone().into());
        if let Some(stored) = update_present(call, Change::Put, make).await? {
            return Ok((stored, false));
        }
        check_precondition(call, meta::text(&object, "uid"), "")?;
        if !creates {
            return Err(call.not_found());
        }
        check_version_syntax(meta::text(&object, "resourceVersion"))?;
        let mut new = object.clone();
        metadata_mut(&mut new).shift_remove("resourceVersion");
        match create_unless_taken(call, new).await {
            Ok(stored) => return Ok((stored, true)),
            Err(CreateError::Refused(error)) => return Err(error),
            Err(CreateError::Taken(_)) => call.warnings.truncate(warnings),
        }
    }
    Err(modified(call))
}

/// Whether a write to an object that does not exist creates it, even through its status.
pub(super) fn creates(call: &Call) -> bool {
    Kind::of(&call.resource).creates_on_update
        && matches!(call.info.subresource.as_str(), "" | "status")
}

/// Rejects bodies whose name differs from the path.
pub(super) fn check_address(call: &Call, object: &Value) -> Result<(), StatusError> {
    let name = meta::text(object, "name");
    if name.is_empty() {
        return Err(StatusError::bad_request(format!(
            "the name of the object ({} based on URL) was undeterminable: name must be provided",
            call.info.name
        )));
    }
    if name != call.info.name {
        return Err(StatusError::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            call.info.name
        )));
    }
    Ok(())
}

/// Puts the object into the namespace of the request; rejects a different one.
pub(super) fn place(call: &Call, object: &mut Value) -> Result<(), StatusError> {
    let wanted = call.namespace();
    match meta::text(object, "namespace") {
        given if given == wanted => Ok(()),
        _ if wanted.is_empty() => {
            metadata_mut(object).shift_remove("namespace");
            Ok(())
        }
        "" => {
            metadata_mut(object).insert("namespace".into(), wanted.into());
            Ok(())
        }
        _ => Err(StatusError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the \
             request",
        )),
    }
}

/// Computes the new object from the current one and stores it; retries if another writer was
/// faster.
///
/// `make` receives the current object in the requested version and returns the typed new one.
pub(crate) async fn update_with(
    call: &mut Call,
    change: Change,
    make: impl FnMut(&mut Call, Owned<'_>) -> Result<Made, StatusError>,
) -> Result<Arc<Stored>, StatusError> {
    update_present(call, change, make).await?.ok_or_else(|| call.not_found())
}

/// Like [`update_with`]; `None` if the object does not exist, or no longer exists.
pub(super) async fn update_present(
    call: &mut Call,
    change: Change,
    make: impl FnMut(&mut Call, Owned<'_>) -> Result<Made, StatusError>,
) -> Result<Option<Arc<Stored>>, StatusError> {
    let outcome = update_newest(call, change, make).await;
    call.confirm(outcome).await
}

async fn update_newest(
    call: &mut Call,
    change: Change,
    mut make: impl FnMut(&mut Call, Owned<'_>) -> Result<Made, StatusError>,
) -> Result<Option<Arc<Stored>>, StatusError> {
    for _ in 0..ATTEMPTS_MAX {
        let Some(stored) = call.find_newest() else { return Ok(None) };
        let served = convert::served(&call.inner, &call.resource, &stored).await?;
        let (old, managed) = (in_requested_version(call, &served), stored.managed());
        let old = Owned { object: &old, managed: &managed };
        let warnings = call.warnings.len();
        let made = make(call, old)?;
        if let Some(outcome) = attempt(call, change, &stored, old, made).await? {
            call.after_write().await;
            return Ok(Some(outcome));
        }
        call.warnings.truncate(warnings);
    }
    Err(modified(call))
}

/// 409 for a writer that has seen another state of the object.
pub(super) fn modified(call: &Call) -> StatusError {
    call.conflict(
        "the object has been modified; please apply your changes to the latest version and try \
         again",
    )
}

fn in_requested_version<'a>(call: &Call, stored: &'a Stored) -> Cow<'a, Value> {
    let resource = &call.resource;
    if convert::is_as_stored(resource) {
        Cow::Borrowed(stored.content())
    } else {
        Cow::Owned(convert::from_storage(resource, stored.content().clone()))
    }
}

/// One attempt; `None` means that another writer was faster.
async fn attempt(
    call: &mut Call,
    change: Change,
    stored: &Arc<Stored>,
    before: Owned<'_>,
    made: Made,
) -> Result<Option<Arc<Stored>>, StatusError> {
    let Made { mut object, managed } = made;
    let old = before.object;
    let fixed = check_identity(call, change, &object, stored)?;
    // Before anything is undone: writers own what they intended to write.
    let is_settled = convert::has_versions(&call.resource) && !apply::resets_managers(&object);
    let managed = managed.unwrap_or_else(|| track(call, &mut object, before));
    let mut managed = of_own_group(call, managed);
    if is_settled && change == Change::Apply {
        Box::pin(managers::prune_restated(call, before, &mut object, &mut managed)).await?;
    }
    if is_settled {
        managed =
            Box::pin(managers::settle(call, change, stored, before, &object, managed)).await?;
    }
    restrict(call, &mut object, old);
    if &*call.resource.table == crd::TABLE && call.info.subresource.is_empty() {
        crd::note_storage_version(&mut object);
    }
    meta::carry_over(&mut object, old);
    let strategy = kinds::strategy_for(&call.resource);
    strategy.prepare_update(&call.kind_context(), &mut object, old);
    let is_concerned = admit::concerns(call);
    if is_concerned {
        admit::mutate(call, Operation::Update, &mut object, &mut managed, Some(before)).await?;
        meta::carry_over(&mut object, old);
    }
    call.forget_repeated_owners(&mut object, " after mutating admission happens");
    call.check_escalation(&call.info.name, &object, Some(old))?;
    if call.info.subresource != "binding" {
        generation::advance(&call.resource, &call.info.subresource, &mut object, old);
    }
    check(call, &object, old, fixed).await?;
    call.resource.settle_numbers(&mut object);
    if is_concerned {
        let after = Owned { object: &object, managed: &managed };
        admit::validate(call, Operation::Update, Some(after), Some(before)).await?;
    }
    strategy.finish(&mut object);
    if meta::field(&object, "resourceVersion") != meta::field(old, "resourceVersion") {
        metadata_mut(&mut object)
            .insert("resourceVersion".into(), old["metadata"]["resourceVersion"].clone());
    }
    // A new timestamp alone is not a change. Objects stored in an old version are written anyway.
    if equal(&object, old) && managed.is_same_but_times(before.managed) {
        if !is_deletion_complete(call, &object)
            && convert::is_current(&call.inner, &call.resource, stored)
        {
            return Ok(Some(Arc::clone(stored)));
        }
        managed.clone_from(before.managed);
    }
    let final_form = convert::to_storage(&call.inner, &call.resource, object, &managed).await?;
    let version = stored.resource_version();
    if call.options.dry_run {
        return Ok(Some(Arc::new(Stored::of_parts(final_form, &managed, version))));
    }
    // Clients see the state without finalizers, still at its old version.
    let (value, last_state) = match is_deletion_complete(call, &final_form) {
        true => (None, Some(final_form)),
        false => (Some(final_form), None),
    };
    let commit = crate::store::Change {
        table: Arc::clone(&call.resource.table),
        key: ObjectKey::new(call.namespace(), &call.info.name),
        expected: version,
        value,
        managed: managed.clone(),
    };
    let Some(committed) = call.commit(commit).await? else { return Ok(None) };
    let last_state = last_state.map(|state| Stored::of_parts(state, &managed, version));
    Ok(Some(last_state.map_or(committed, Arc::new)))
}

/// The managers without those of another group: the two groups of events do not convert into each
/// other here.
fn of_own_group(call: &Call, managed: ManagedFields) -> ManagedFields {
    match &*call.resource.table {
        "events" => apply::of_group(&managed, &call.resource.group),
        _ => managed,
    }
}

/// Whether the object is being deleted and has no finalizers left.
fn is_deletion_complete(call: &Call, object: &Value) -> bool {
    let held_by_spec = Kind::of(&call.resource).has_spec_finalizers
        && object["spec"]["finalizers"].as_array().is_some_and(|items| !items.is_empty());
    meta::is_deleting(object)
        && meta::finalizers(object).is_empty()
        && object["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or(0) == 0
        && !held_by_spec
}

fn check_identity(
    call: &Call,
    change: Change,
    object: &Value,
    stored: &Stored,
) -> Result<Vec<FieldError>, StatusError> {
    if change == Change::Put {
        check_precondition(call, meta::text(object, "uid"), stored.uid())?;
    }
    check_version(call, meta::text(object, "resourceVersion"), stored)?;
    // The status of custom resources is written without changing metadata.
    let spares_metadata = call.resource.is_custom() && call.info.subresource == "status";
    Ok(match change != Change::Put && !spares_metadata {
        true => fixed_metadata_problems(call, object, stored),
        false => Vec::new(),
    })
}

/// Rejects writes with an outdated version; some kinds require a version.
fn check_version(call: &Call, wanted: &str, stored: &Stored) -> Result<(), StatusError> {
    match wanted {
        "" | "0" if Kind::of(&call.resource).needs_version => {
            let error = FieldError::new(
                crate::FieldErrorReason::Invalid,
                "metadata.resourceVersion",
                "Invalid value: 0x0: must be specified for an update",
            );
            let resource = &call.resource;
            Err(StatusError::invalid(
                &resource.group,
                &resource.resource,
                &call.info.name,
                &[error],
            ))
        }
        "" | "0" => Ok(()),
        version if version == stored.resource_version().to_string() => Ok(()),
        version => {
            check_version_syntax(version)?;
            Err(modified(call))
        }
    }
}

/// A uid in a PUT is a precondition on the stored object, even on one that does not exist.
fn check_precondition(call: &Call, wanted: &str, stored: &str) -> Result<(), StatusError> {
    if wanted.is_empty() || wanted == stored {
        return Ok(());
    }
    let resource = &call.resource;
    let mut key = match &*resource.table {
        // Services and endpoints share a prefix in upstream's store.
        "services" => "services/specs".to_owned(),
        "endpoints" => "services/endpoints".to_owned(),
        _ => resource.resource.clone(),
    };
    if resource.is_custom() {
        key = format!("{}/{key}", resource.group);
    }
    if resource.namespaced {
        key = format!("{key}/{}", call.info.namespace);
    }
    Err(call.conflict(&format!(
        "StorageError: invalid object, Code: 4, Key: /registry/{key}/{}, ResourceVersion: 0, \
         AdditionalErrorMsg: Precondition failed: UID in precondition: {wanted}, UID in object \
         meta: {stored}",
        call.info.name
    )))
}

/// Versions are numbers; the real server has no specific status for others.
pub(super) fn check_version_syntax(version: &str) -> Result<(), StatusError> {
    if version.is_empty() || version.parse::<u64>().is_ok() {
        return Ok(());
    }
    let problem = format!("strconv.ParseUint: parsing {version:?}: invalid syntax");
    Err(StatusError::new(500, "", problem))
}

/// The changes of metadata that only the server may make.
fn fixed_metadata_problems(call: &Call, object: &Value, stored: &Stored) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let old = stored.content();
    let uid = meta::text(object, "uid");
    if !uid.is_empty() && uid != stored.uid() {
        errors.push(FieldError::invalid("metadata.uid", &uid.into(), "field is immutable"));
    }
    let deleted = meta::text(object, "deletionTimestamp");
    if !deleted.is_empty() && deleted != meta::text(old, "deletionTimestamp") {
        let shown = deleted.replace('T', " ").replace('Z', " +0000 UTC");
        errors.push(FieldError::new(
            crate::FieldErrorReason::Invalid,
            "metadata.deletionTimestamp",
            format!("Invalid value: {shown}: field is immutable"),
        ));
    }
    let checks = kinds::MetadataChecks::of(&call.resource, &call.info.subresource);
    std::iter::repeat_n(errors, 1 + checks.as_changed).flatten().collect()
}

/// Undoes changes that this endpoint may not make.
fn restrict(call: &Call, object: &mut Value, old: &Value) {
    match call.info.subresource.as_str() {
        "" if call.resource.has_status() => copy_field(object, old, "status"),
        "status" => {
            let status = object.get("status").cloned();
            let given = object["metadata"].clone();
            let mut restricted = old.clone();
            if let Some(fields) = restricted.as_object_mut() {
                match status {
                    Some(status) => fields.insert("status".into(), status),
                    None => fields.shift_remove("status"),
                };
            }
            if !call.resource.is_custom() {
                restricted["metadata"] = status_metadata(Kind::of(&call.resource), given, old);
            }
            *object = restricted;
        }
        _ => {}
    }
}

/// The metadata after a write to the status of a built-in kind; most kinds accept metadata there.
fn status_metadata(kind: &Kind, mut given: Value, old: &Value) -> Value {
    match kind.status_metadata {
        StatusMetadata::Stored => old["metadata"].clone(),
        StatusMetadata::Given => given,
        StatusMetadata::GivenBut(kept) => {
            copy_field(&mut given, &old["metadata"], kept);
            given
        }
    }
}

fn copy_field(object: &mut Value, from: &Value, key: &str) {
    let Some(fields) = object.as_object_mut() else { return };
    match from.get(key) {
        Some(value) => fields.insert(key.into(), value.clone()),
        None => fields.shift_remove(key),
    };
}

fn track(call: &Call, object: &mut Value, old: Owned<'_>) -> ManagedFields {
    let api_version = call.resource.api_version();
    let now = meta::format_time(call.inner.clock.now());
    let manager = call.field_manager(&api_version, &now);
    apply::track_update(&manager, call.resource.schema.as_deref(), Some(old), object)
}

/// The problems of metadata. Upstream checks it in the generic code and again for the kind, as that
/// of a new object, of a changed one, or of both, so causes occur several times.
fn metadata_problems(call: &Call, object: &Value, old: &Value) -> Vec<FieldError> {
    let checks = kinds::MetadataChecks::of(&call.resource, &call.info.subresource);
    let new = meta::validate(&call.resource, object);
    let changed = meta::validate_update(object, old);
    let new = std::iter::repeat_n(new, 1 + checks.as_new);
    new.chain(std::iter::repeat_n(changed, 1 + checks.as_changed)).flatten().collect()
}

async fn check(
    call: &mut Call,
    object: &Value,
    old: &Value,
    mut errors: Vec<FieldError>,
) -> Result<(), StatusError> {
    errors.extend(metadata_problems(call, object, old));
    let mut warnings = Vec::new();
    let verdict = verdict::of(call, object, Some(old)).await?;
    errors.extend(verdict.errors);
    warnings.extend(verdict.warnings);
    errors.extend(scale::validate(&call.resource, object));
    let strategy = kinds::strategy_for(&call.resource);
    let context = call.kind_context();
    errors.extend(strategy.validate_update(&context, object, old));
    if &*call.resource.table == crd::TABLE && call.info.subresource.is_empty() && !call.nested {
        errors.extend(crd::validation::validate(object, Some(old)));
    }
    warnings.extend(strategy.warnings(&context, object, Some(old)));
    if call.resource.is_custom() && call.info.subresource.is_empty() {
        warnings.extend(meta::finalizer_warnings(object, Some(old)));
    }
    if !errors.is_empty() {
        return Err(call.invalid(&call.info.name, &errors));
    }
    call.warnings.extend(warnings);
    Ok(())
}
