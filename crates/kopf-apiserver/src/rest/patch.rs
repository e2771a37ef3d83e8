//! Patches objects, with all four patch types.

use std::sync::Arc;

use serde_json::{Value, json};

use super::create::{CreateError, create_unless_taken};
use super::object::{finish, finish_applied, forget_empty_managers, is_clean};
use super::update::{ATTEMPTS_MAX, check_version_syntax, modified, update_present};
use super::{Call, Change, Made, admit, update_with};
use crate::apply::{self, ManagedFields, Owned};
use crate::decode::{Decoded, media_type};
use crate::query::{FieldValidation, Query};
use crate::request::{RequestInfo, Verb};
use crate::schema::decode::{json as json_body, yaml as yaml_body};
use crate::{FieldError, StatusError, Stored, meta, patch as patches, schema};

/// The type of a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PatchKind {
    /// JSON patch.
    Json,
    /// Merge patch.
    Merge,
    /// Strategic merge patch.
    Strategic,
    /// Server-side apply.
    Apply,
}

impl PatchKind {
    /// The type for a media type; 415 for anything else.
    pub(crate) fn parse(content_type: &str, custom: bool) -> Result<Self, StatusError> {
        match media_type(content_type) {
            "application/json-patch+json" => Ok(Self::Json),
            "application/merge-patch+json" => Ok(Self::Merge),
            "application/strategic-merge-patch+json" if !custom => Ok(Self::Strategic),
            "application/apply-patch+yaml" => Ok(Self::Apply),
            "application/strategic-merge-patch+json" => Err(unsupported(
                "the body of the request was in an unknown format - accepted media types \
                 include: application/json-patch+json, application/merge-patch+json, \
                 application/apply-patch+yaml",
                false,
            )),
            _ => Err(unsupported("415: Unsupported Media Type", true)),
        }
    }

    /// Decodes the body of a patch of this type.
    pub(crate) fn decode(self, bytes: &[u8]) -> Result<Decoded, StatusError> {
        match self {
            Self::Apply => yaml_body(bytes).map_err(|problem| {
                let problem = format!("error converting YAML to JSON: {problem}");
                StatusError::bad_request(format!("error decoding YAML: {problem}"))
            }),
            Self::Json | Self::Merge | Self::Strategic => {
                json_body(bytes).map_err(|problem| self.malformed(&problem.to_string()))
            }
        }
    }

    /// 400 for a malformed patch.
    fn malformed(self, problem: &str) -> StatusError {
        match self {
            Self::Strategic => StatusError::bad_request(problem),
            _ => StatusError::bad_request(format!("error decoding patch: {problem}")),
        }
    }

    /// Rejects bodies that cannot be patches of this type.
    fn check(self, body: &Value) -> Result<(), StatusError> {
        let (is_right, target) = match self {
            Self::Json => (body.is_array(), "[]handlers.jsonPatchOp"),
            Self::Merge | Self::Strategic => (body.is_object(), "map[string]interface {}"),
            Self::Apply => (true, ""),
        };
        if is_right {
            return Ok(());
        }
        let found = match body {
            Value::Object(_) => "object",
            Value::Array(_) => "array",
            Value::String(_) => "string",
            Value::Number(_) => "number",
            Value::Bool(_) => "bool",
            Value::Null => "null",
        };
        let problem = format!("json: cannot unmarshal {found} into Go value of type {target}");
        Err(self.malformed(&problem))
    }
}

fn unsupported(message: &str, with_details: bool) -> StatusError {
    let error = StatusError::new(415, "UnsupportedMediaType", message);
    if with_details { error.about("", "", "") } else { error }
}

/// Applies a patch; the flag is whether the object was created (apply only).
pub(crate) async fn patch(
    call: &mut Call,
    kind: PatchKind,
    body: Result<Decoded, StatusError>,
) -> Result<(Arc<Stored>, bool), StatusError> {
    check_options(call, kind)?;
    if kind == PatchKind::Apply {
        return server_side_apply(call, body?).await;
    }
    // Upstream decodes a patch after it has found the object.
    let body = body.and_then(|body| kind.check(&body.value).map(|()| body));
    let outcome = update_with(call, Change::Patch, |call, old| {
        let body = body.as_ref().map_err(StatusError::clone)?;
        let sent = Sent { kind, patch: body };
        if sent.spares_managed_fields(call) {
            let mut object = old.object.clone();
            let warnings = call.warnings.len();
            if sent.apply(call, &mut object).is_ok()
                && let Ok(object) = retype(call, object, &sent)
            {
                return Ok(object.into());
            }
            // Error messages quote the whole object.
            call.warnings.truncate(warnings);
        }
        let mut object = old.whole();
        sent.apply(call, &mut object)?;
        retype(call, object, &sent).map(Made::from)
    })
    .await?;
    Ok((outcome, false))
}

/// Rejects options that do not apply to this type of patch.
pub(super) fn check_options(call: &Call, kind: PatchKind) -> Result<(), StatusError> {
    let mut errors = Vec::new();
    if kind == PatchKind::Apply && call.options.field_manager.is_empty() {
        errors.push(FieldError::required("fieldManager", "is required for apply patch"));
    }
    if kind != PatchKind::Apply && call.options.force.is_some() {
        errors.push(FieldError::forbidden("force", "may not be specified for non-apply patch"));
    }
    if errors.is_empty() {
        return Ok(());
    }
    Err(StatusError::invalid("meta.k8s.io", "PatchOptions", "", &errors))
}

/// A patch as sent, for error messages that quote it.
struct Sent<'a> {
    kind: PatchKind,
    patch: &'a Decoded,
}

/// Checks that a patch has kept the type of a custom resource; writes of the status ignore it.
fn check_custom_type(
    call: &Call,
    object: &mut Value,
    bad_result: &dyn Fn(&Value, &str) -> StatusError,
) -> Result<(), StatusError> {
    let text = |field: &str| object[field].as_str().unwrap_or_default().to_owned();
    let (kind, api_version) = (text("kind"), text("apiVersion"));
    let (wanted_kind, wanted_version) = (&call.resource.kind, call.resource.api_version());
    for (field, value) in [("Kind", &kind), ("apiVersion", &api_version)] {
        if value.is_empty() {
            let shown = sorted(object);
            return Err(bad_result(object, &format!("Object '{field}' is missing in '{shown}'")));
        }
    }
    if !call.info.subresource.is_empty() {
        object["kind"] = wanted_kind.clone().into();
        object["apiVersion"] = wanted_version.into();
        return Ok(());
    }
    let mut errors = Vec::new();
    if kind != *wanted_kind {
        let detail = format!("must be {wanted_kind}");
        errors.push(FieldError::invalid("kind", &kind.as_str().into(), &detail));
    }
    if api_version != wanted_version {
        let detail = format!("must be {wanted_version}");
        errors.push(FieldError::invalid("apiVersion", &api_version.as_str().into(), &detail));
    }
    if errors.is_empty() {
        return Ok(());
    }
    let (group, _) = crate::resource::split_api_version(&api_version);
    Err(StatusError::invalid(group, &kind, &call.info.name, &errors))
}

/// Checks the result of a patch as if it had been decoded, with a patch's error messages.
fn retype(call: &mut Call, mut object: Value, sent: &Sent<'_>) -> Result<Value, StatusError> {
    let resource = Arc::clone(&call.resource);
    let is_custom = resource.is_custom();
    let bad_result = |object: &Value, problem: &str| sent.bad_result(object, problem, is_custom);
    let kind = object["kind"].as_str().unwrap_or_default().to_owned();
    let api_version = object["apiVersion"].as_str().unwrap_or_default().to_owned();
    if !object.is_object() {
        return Err(bad_result(&object, "json: cannot unmarshal into Go value"));
    }
    if is_custom {
        check_custom_type(call, &mut object, &bad_result)?;
    } else if api_version != resource.api_version() || kind != resource.kind {
        let problem = format!(
            "no kind {kind:?} is registered for version {api_version:?} in scheme \
             \"pkg/api/legacyscheme/scheme.go:30\""
        );
        return Err(bad_result(&object, &problem));
    }
    let is_clean = is_clean(call, &object);
    if let Some(schema) = resource.schema.as_deref() {
        if !resource.is_custom() {
            match sent.kind {
                PatchKind::Strategic => schema::check_conversion(schema, &object),
                _ => schema::check_types(schema, &object),
            }
            .map_err(|problem| bad_result(&object, &problem))?;
        }
        if call.options.field_validation != FieldValidation::Ignore {
            let unknown = match is_clean {
                true => Vec::new(),
                false => schema::unknown_fields(schema, &object),
            };
            let mut problems = match sent.kind {
                PatchKind::Json => json_patch_problems(sent.patch),
                _ => sent.patch.duplicates.clone(),
            };
            // The patched object is written with sorted fields before it is decoded.
            let mut unknown = unknown;
            unknown.sort_by_cached_key(|path| sort_key(path));
            problems.extend(unknown.iter().map(|path| format!("unknown field \"{path}\"")));
            if !problems.is_empty() && call.options.field_validation == FieldValidation::Strict {
                let problem = format!("strict decoding error: {}", problems.join(", "));
                return Err(bad_result(&object, &problem));
            }
            call.warnings.extend(problems);
        }
    }
    if is_clean {
        forget_empty_managers(call, &mut object);
        finish_applied(call, &mut object);
    } else {
        finish(call, &mut object);
    }
    super::update::check_address(call, &object)?;
    super::update::place(call, &mut object)?;
    Ok(object)
}

/// The unknown and duplicate fields of the operations of a JSON patch.
fn json_patch_problems(patch: &Decoded) -> Vec<String> {
    const FIELDS: [&str; 4] = ["op", "path", "from", "value"];
    let mut problems: Vec<String> =
        patch.duplicates.iter().map(|problem| format!("json patch {problem}")).collect();
    for (index, operation) in patch.value.as_array().into_iter().flatten().enumerate() {
        let names = operation.as_object().into_iter().flatten().map(|(name, _)| name.as_str());
        let unknown = names.filter(|name| !FIELDS.contains(name));
        problems
            .extend(unknown.map(|name| format!("json patch unknown field \"[{index}].{name}\"")));
    }
    problems
}

/// The place of a path such as `spec.list[3].name` in a document with sorted fields.
fn sort_key(path: &str) -> Vec<(String, usize)> {
    let step = |step: &str| {
        let (name, index) = step.split_once('[').unwrap_or((step, ""));
        let index = index.split(']').next().unwrap_or_default().parse().unwrap_or(0);
        (name.to_owned(), index)
    };
    path.split('.').map(step).collect()
}

impl Sent<'_> {
    /// Applies the patch to an object; server-side apply is handled elsewhere.
    fn apply(&self, call: &Call, object: &mut Value) -> Result<(), patches::PatchError> {
        let patch = &self.patch.value;
        match self.kind {
            PatchKind::Json => patches::json::apply(object, patch),
            PatchKind::Merge => {
                patches::merge::apply(object, patch);
                Ok(())
            }
            PatchKind::Strategic => {
                patches::strategic::apply(object, patch, call.resource.schema.as_deref())
            }
            PatchKind::Apply => Ok(()),
        }
    }

    /// Whether the patch does not need the object's managed fields.
    fn spares_managed_fields(&self, call: &Call) -> bool {
        let patch = &self.patch.value;
        let is_spared = match self.kind {
            PatchKind::Merge => {
                patch.get("metadata").is_none_or(|metadata| metadata.get("managedFields").is_none())
            }
            PatchKind::Json => {
                let mut operations = patch.as_array().into_iter().flatten();
                operations.all(|operation| {
                    let mut places = ["path", "from"].iter().filter_map(|key| operation.get(key));
                    places.all(|place| place.as_str().is_some_and(is_beside_managed_fields))
                })
            }
            PatchKind::Strategic | PatchKind::Apply => false,
        };
        is_spared && matches!(&*call.info.subresource, "" | "status")
    }

    /// 422 that quotes the patched object, or a strategic patch itself.
    fn bad_result(&self, object: &Value, problem: &str, is_custom: bool) -> StatusError {
        let object = &with_ordered_metadata(object);
        let patch = &self.patch.value;
        let text = match self.kind {
            PatchKind::Strategic => crate::go_print::go_map(patch),
            // Custom resources are maps, whose keys Go sorts.
            _ if is_custom => sorted(object).to_string(),
            // Upstream prints the objects that a patch has touched with sorted keys, the rest
            // unchanged.
            PatchKind::Merge => sorted_along(object, patch).to_string(),
            _ => {
                let mut touched = json!({});
                let operations = patch.as_array().into_iter().flatten();
                for pointer in operations.filter_map(|operation| operation["path"].as_str()) {
                    touch(&mut touched, pointer);
                }
                sorted_along(object, &touched).to_string()
            }
        };
        let error = FieldError::invalid("patch", &text.into(), problem);
        StatusError::invalid("", "", "", &[error])
    }
}

/// An object whose metadata has the order of upstream's struct.
fn with_ordered_metadata(object: &Value) -> Value {
    const ORDER: [&str; 8] = [
        "name",
        "generateName",
        "namespace",
        "selfLink",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
    ];
    let mut object = object.clone();
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        let mut ordered = serde_json::Map::new();
        for key in ORDER {
            if let Some(value) = metadata.shift_remove(key) {
                ordered.insert(key.to_owned(), value);
            }
        }
        ordered.append(metadata);
        *metadata = ordered;
    }
    object
}

/// Whether a JSON pointer leads to something outside of managed fields.
fn is_beside_managed_fields(pointer: &str) -> bool {
    let mut steps = pointer.split('/').skip(1);
    match (steps.next(), steps.next()) {
        (None, _) | (Some("metadata"), None | Some("managedFields")) => false,
        (Some(_), _) => true,
    }
}

/// Marks the objects along the path of a JSON pointer.
fn touch(touched: &mut Value, pointer: &str) {
    let mut place = touched;
    let mut steps = pointer.split('/').skip(1).peekable();
    while let Some(step) = steps.next() {
        if steps.peek().is_some() {
            let step = step.replace("~1", "/").replace("~0", "~");
            place = &mut place[step];
            if place.is_null() {
                *place = json!({});
            }
        }
    }
}

/// The value with sorted keys in every object.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<(&String, &Value)> = fields.iter().collect();
            fields.sort_by_key(|(key, _)| *key);
            fields.into_iter().map(|(key, value)| (key.clone(), sorted(value))).collect()
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        scalar => scalar.clone(),
    }
}

/// The value with sorted keys in every object that `touched` also has; items are named by index.
fn sorted_along(value: &Value, touched: &Value) -> Value {
    let Value::Object(below) = touched else { return value.clone() };
    let step = |key: &str, value: &Value| match below.get(key) {
        Some(touched) => sorted_along(value, touched),
        None => value.clone(),
    };
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<(&String, &Value)> = fields.iter().collect();
            fields.sort_by_key(|(key, _)| *key);
            fields.into_iter().map(|(key, value)| (key.clone(), step(key, value))).collect()
        }
        Value::Array(items) => {
            items.iter().enumerate().map(|(index, item)| step(&index.to_string(), item)).collect()
        }
        scalar => scalar.clone(),
    }
}

async fn server_side_apply(
    call: &mut Call,
    body: Decoded,
) -> Result<(Arc<Stored>, bool), StatusError> {
    let applied = check_applied(call, body)?;
    let warnings = call.warnings.len();
    for _ in 0..ATTEMPTS_MAX {
        let present = update_present(call, Change::Apply, |call, old| {
            let (mut object, managed) = run_apply(call, Some(old), &applied)?;
            finish_merged(call, &mut object);
            Ok(Made::tracked(object, managed))
        });
        if let Some(stored) = present.await? {
            return Ok((stored, false));
        }
        match apply_to_nothing(call, &applied).await {
            Ok(stored) => return Ok((stored, true)),
            Err(CreateError::Refused(error)) => return Err(error),
            // Another writer created the object first: apply the configuration to it.
            Err(CreateError::Taken(_)) => call.warnings.truncate(warnings),
        }
    }
    Err(modified(call))
}

/// Creates an object from an applied configuration.
async fn apply_to_nothing(call: &mut Call, applied: &Value) -> Result<Arc<Stored>, CreateError> {
    if !super::update::creates(call) && !call.info.subresource.is_empty() {
        return Err(call.not_found().into());
    }
    let (mut object, managed) = run_apply(call, None, applied)?;
    if meta::text(applied, "name").is_empty() {
        return Err(StatusError::bad_request(format!(
            "the name of the object ({} based on URL) was undeterminable: name must be provided",
            call.info.name
        ))
        .into());
    }
    let uid = meta::text(applied, "uid");
    if !uid.is_empty() {
        let error = call.conflict(&format!(
            "uid mismatch: the provided object specified uid {uid}, and no existing object was \
             found"
        ));
        return Err(error.into());
    }
    let checked = admit::check_namespace(call);
    call.confirm(checked).await?;
    // The version of an object that is gone is not a conflict.
    check_version_syntax(meta::text(applied, "resourceVersion"))?;
    meta::metadata_mut(&mut object).shift_remove("resourceVersion");
    finish_merged(call, &mut object);
    managed.put_into(&mut object);
    call.tracked = true;
    // Users who may only patch must not create objects this way.
    let creation = RequestInfo { verb: Verb::Create, ..RequestInfo::clone(&call.info) };
    crate::authorize::authorize(&call.inner, &call.user, &creation, &Query::default())?;
    create_unless_taken(call, object).await
}

/// Fills in defaults. Undeclared fields of a custom resource can be applied if an ancestor
/// preserves them, but they are not stored.
fn finish_merged(call: &Call, object: &mut Value) {
    if let Some(schema) = call.resource.schema.as_deref().filter(|_| call.resource.is_custom()) {
        schema::prune_unknown(schema, object);
    }
    finish_applied(call, object);
}

/// The object and its managed fields after applying a configuration.
fn run_apply(
    call: &Call,
    live: Option<Owned<'_>>,
    applied: &Value,
) -> Result<(Value, ManagedFields), StatusError> {
    let api_version = call.resource.api_version();
    let now = meta::format_time(call.inner.clock.now());
    let manager = call.field_manager(&api_version, &now);
    let force = call.options.force.unwrap_or(false);
    apply::apply(&manager, force, call.resource.schema.as_deref(), live, applied)
}

/// What Go calls a value that is no object.
fn wrong_type(value: &Value) -> Option<&'static str> {
    match value {
        Value::Bool(_) => Some("bool"),
        Value::Number(_) => Some("number"),
        Value::String(_) => Some("string"),
        Value::Array(_) => Some("array"),
        Value::Null | Value::Object(_) => None,
    }
}

/// Checks the applied configuration; fields that this endpoint may not set are undone after the
/// merge.
fn check_applied(call: &mut Call, body: Decoded) -> Result<Value, StatusError> {
    let mut applied = body.value;
    if let Some(kind) = wrong_type(&applied) {
        return Err(StatusError::bad_request(format!(
            "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot \
             unmarshal {kind} into Go value of type map[string]interface {{}}"
        )));
    }
    // Applied configurations are converted from YAML to JSON, which writes 9.0 as 9.
    crate::shape::tidy_numbers(&mut applied);
    // The YAML decoder reports all its problems in one message, one per line after a heading.
    let is_warned = call.options.field_validation == FieldValidation::Warn;
    for problem in body.duplicates.iter().filter(|_| is_warned) {
        let lines = problem.lines().map(str::trim).filter(|line| !line.ends_with("errors:"));
        call.warnings.extend(lines.map(str::to_owned));
    }
    if !meta::text(&applied, "name").is_empty() {
        super::update::check_address(call, &applied)?;
    }
    let mut placed = json!({ "metadata": { "namespace": meta::text(&applied, "namespace") } });
    super::update::place(call, &mut placed)?;
    Ok(applied)
}
