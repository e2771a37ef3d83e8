//! Creating objects.

use std::sync::Arc;

use serde_json::Value;

use super::{Call, admit, generation, scale, verdict};
use crate::admission::Operation;
use crate::apply::{self, ManagedFields, Owned};
use crate::lockstep::remove_rare;
use crate::meta::{self, metadata_mut};
use crate::store::{Change, ObjectKey};
use crate::{FieldError, StatusError, Stored, convert, crd, kinds};

/// How often another name is generated if the first one is taken.
const NAME_ATTEMPTS_MAX: usize = 8;

/// Why an object was not created.
pub(super) enum CreateError {
    /// An object with this name already exists.
    Taken(StatusError),
    /// The object is invalid or cannot be created now.
    Refused(StatusError),
}

impl From<StatusError> for CreateError {
    fn from(error: StatusError) -> Self {
        Self::Refused(error)
    }
}

impl From<CreateError> for StatusError {
    fn from(error: CreateError) -> Self {
        match error {
            CreateError::Taken(error) | CreateError::Refused(error) => error,
        }
    }
}

/// Creates an object that is already typed and defaulted.
pub(crate) async fn create(call: &mut Call, object: Value) -> Result<Arc<Stored>, StatusError> {
    Ok(create_unless_taken(call, object).await?)
}

/// Like [`create`], for callers that continue with an existing object.
pub(super) async fn create_unless_taken(
    call: &mut Call,
    object: Value,
) -> Result<Arc<Stored>, CreateError> {
    let outcome = attempt(call, object).await;
    call.confirm(outcome).await
}

async fn attempt(call: &mut Call, mut object: Value) -> Result<Arc<Stored>, CreateError> {
    place(call, &mut object)?;
    if !meta::text(&object, "resourceVersion").is_empty() {
        let problem = "resourceVersion should not be set on objects to be created";
        return Err(StatusError::new(500, "", problem).into());
    }
    let name = meta::text(&object, "name").to_owned();
    let path_name = std::mem::replace(&mut call.info_mut().name, name);
    admit::check_namespace(call)?;
    drop_status(call, &mut object);
    let identity = if call.keeps_identity { object["metadata"].clone() } else { Value::Null };
    drop_owned_metadata(&mut object);
    if &*call.resource.table == crd::TABLE {
        crd::initial_status(&mut object);
    }
    let strategy = kinds::strategy_for(&call.resource);
    let now = meta::format_time(call.inner.clock.now());
    let mut managed = match call.tracked {
        true => ManagedFields::take_from(&mut object),
        false => track(call, &mut object, &now),
    };
    strategy.admit(&call.kind_context(), &mut object);
    let is_concerned = admit::concerns(call);
    if is_concerned {
        admit::mutate(call, Operation::Create, &mut object, &mut managed, None).await?;
        // Webhooks may change the name, but not the namespace.
        place(call, &mut object)?;
        meta::text(&object, "name").clone_into(&mut call.info_mut().name);
    }
    if &*call.resource.table == kinds::CERTIFICATE_REQUESTS {
        kinds::name_requester(&mut object, &call.user);
    }
    call.check_escalation(&path_name, &object, None)?;
    generation::start(&call.resource, &mut object);
    let metadata = metadata_mut(&mut object);
    let given = |key: &str| identity.get(key).filter(|value| value.is_string()).cloned();
    let uid = given("uid").unwrap_or_else(|| call.inner.ids.uid().into());
    metadata.insert("uid".into(), uid);
    let created = given("creationTimestamp").unwrap_or_else(|| now.into());
    metadata.insert("creationTimestamp".into(), created);
    for _ in 0..NAME_ATTEMPTS_MAX {
        let generated = generate_name(call, &mut object);
        // Only a generated name can be retried, so only then is the object needed again.
        let mut candidate = if generated { object.clone() } else { std::mem::take(&mut object) };
        let early = strategy.early_warnings(&call.kind_context(), &candidate);
        call.warnings.extend(early);
        strategy.prepare_create(&call.kind_context(), &mut candidate);
        check(call, &candidate).await?;
        call.resource.settle_numbers(&mut candidate);
        if is_concerned {
            let owned = Owned { object: &candidate, managed: &managed };
            admit::validate(call, Operation::Create, Some(owned), None).await?;
        }
        strategy.finish(&mut candidate);
        match commit(call, candidate, &managed).await {
            Err(CreateError::Taken(_)) if generated => {
                metadata_mut(&mut object).shift_remove("name");
            }
            outcome => return outcome,
        }
    }
    let resource = &call.resource;
    let (group, kind) = (&resource.group, &resource.resource);
    Err(CreateError::Taken(StatusError::already_exists(group, kind, &call.info.name)))
}

/// Removes the status, which clients may not set on creation; readers get its default.
fn drop_status(call: &Call, object: &mut Value) {
    if call.resource.has_status()
        && !kinds::Kind::of(&call.resource).keeps_status_on_create
        && let Some(fields) = object.as_object_mut()
    {
        fields.shift_remove("status");
    }
}

/// Removes fields that only the server may set.
fn drop_owned_metadata(object: &mut Value) {
    let metadata = metadata_mut(object);
    for key in
        ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"]
    {
        remove_rare(metadata, key);
    }
}

fn track(call: &Call, object: &mut Value, now: &str) -> ManagedFields {
    let api_version = call.resource.api_version();
    let manager = call.field_manager(&api_version, now);
    apply::track_update(&manager, call.resource.schema.as_deref(), None, object)
}

/// Puts the object into the namespace of the request.
pub(super) fn place(call: &Call, object: &mut Value) -> Result<(), StatusError> {
    let wanted = call.namespace().to_owned();
    let metadata = metadata_mut(object);
    match metadata.get("namespace").and_then(Value::as_str).unwrap_or_default() {
        "" if wanted.is_empty() && call.resource.namespaced => {
            metadata.shift_remove("namespace");
            return Err(StatusError::bad_request(
                "an empty namespace may not be set during creation",
            ));
        }
        // Cluster-scoped objects have no namespace, even if a client sends one.
        _ if wanted.is_empty() => {
            metadata.shift_remove("namespace");
        }
        "" => {
            metadata.insert("namespace".into(), wanted.into());
        }
        given if given == wanted => {}
        _ => {
            return Err(StatusError::bad_request(
                "the namespace of the provided object does not match the namespace sent on the \
                 request",
            ));
        }
    }
    Ok(())
}

/// Fills in a generated name; returns whether it did.
fn generate_name(call: &mut Call, object: &mut Value) -> bool {
    const GENERATED_PREFIX_MAX: usize = 58;
    if !meta::text(object, "name").is_empty() {
        return false;
    }
    let prefix = meta::text(object, "generateName");
    if prefix.is_empty() {
        return false;
    }
    let kept: String = prefix.chars().take(GENERATED_PREFIX_MAX).collect();
    let name = format!("{kept}{}", call.inner.ids.suffix());
    call.info_mut().name.clone_from(&name);
    metadata_mut(object).insert("name".into(), name.into());
    true
}

async fn check(call: &mut Call, object: &Value) -> Result<(), StatusError> {
    let mut errors = meta::validate(&call.resource, object);
    let mut warnings = Vec::new();
    let verdict = verdict::of(call, object, None).await?;
    errors.extend(verdict.errors);
    warnings.extend(verdict.warnings);
    errors.extend(scale::validate(&call.resource, object));
    let strategy = kinds::strategy_for(&call.resource);
    let context = call.kind_context();
    errors.extend(strategy.validate_create(&context, object));
    if &*call.resource.table == crd::TABLE {
        errors.extend(crd::validation::validate(object, None));
    }
    warnings.extend(strategy.warnings(&context, object, None));
    if call.resource.is_custom() {
        warnings.extend(meta::finalizer_warnings(object, None));
    }
    if let Some(kind) = &call.wrong_kind {
        let detail = format!("must be {}", call.resource.kind);
        errors.insert(0, FieldError::invalid("kind", &kind.as_str().into(), &detail));
        let name = meta::text(object, "name");
        return Err(StatusError::invalid(&call.resource.group, kind, name, &errors));
    }
    if !errors.is_empty() {
        return Err(call.invalid(meta::text(object, "name"), &errors));
    }
    call.warnings.extend(warnings);
    Ok(())
}

async fn commit(
    call: &mut Call,
    object: Value,
    managed: &ManagedFields,
) -> Result<Arc<Stored>, CreateError> {
    let stored_form = convert::to_storage(&call.inner, &call.resource, object, managed)
        .await
        .map_err(StatusError::from)?;
    if call.options.dry_run {
        let existing = call.find_newest();
        if existing.is_some() {
            return Err(taken(call, existing.as_deref()));
        }
        return Ok(Arc::new(Stored::of_parts(stored_form, managed, 0)));
    }
    let change = Change {
        table: Arc::clone(&call.resource.table),
        key: ObjectKey::new(call.namespace(), &call.info.name),
        expected: 0,
        value: Some(stored_form),
        managed: managed.clone(),
    };
    let Some(stored) = call.commit(change).await? else {
        let existing = call.find_newest();
        return Err(taken(call, existing.as_deref()));
    };
    call.after_write().await;
    Ok(stored)
}

/// 409 for a name that another object has, or had until recently.
fn taken(call: &Call, existing: Option<&Stored>) -> CreateError {
    let resource = &call.resource;
    let mut error =
        StatusError::already_exists(&resource.group, &resource.resource, &call.info.name);
    if existing.is_some_and(|stored| meta::is_deleting(stored.content())) {
        error.message = format!("object is being deleted: {}", error.message);
    }
    CreateError::Taken(error)
}
