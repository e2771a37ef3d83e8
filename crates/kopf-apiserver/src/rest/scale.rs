//! The scale subresource: a view of an object's replicas.

use std::sync::Arc;

use serde_json::{Value, json};

use super::patch::{PatchKind, check_options};
use super::{Call, Change, Made, update_with};
use crate::apply::{ManagedFields, Manager, Owned};
use crate::resource::{ResourceInfo, ScalePaths};
use crate::{FieldError, StatusError, Stored, meta};

/// The value that a patch sees for unset replicas.
const UNSET: i32 = i32::MIN;

/// The `Scale` view of an object; the replicas of a custom resource must be set.
pub(crate) fn read(call: &Call, object: &Value) -> Result<Value, StatusError> {
    let paths = paths(call);
    if call.resource.is_custom() && at(object, &paths.spec_replicas).is_null() {
        let path = &paths.spec_replicas;
        let problem = format!("the spec replicas field {path:?} does not exist");
        return Err(StatusError::internal(problem));
    }
    Ok(view(call, object))
}

/// The `Scale` of an object, whose replicas may be unset.
fn view(call: &Call, object: &Value) -> Value {
    let paths = paths(call);
    let metadata = &object["metadata"];
    let mut scale = json!({
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {},
        "spec": {},
        "status": { "replicas": at(object, &paths.status_replicas).as_i64().unwrap_or(0) },
    });
    for key in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = metadata.get(key) {
            scale["metadata"][key] = value.clone();
        }
    }
    let wanted = at(object, &paths.spec_replicas).as_i64().unwrap_or(0);
    if wanted != 0 {
        scale["spec"]["replicas"] = json!(wanted);
    }
    let selector = match &paths.label_selector {
        Some(path) if call.resource.is_custom() => {
            at(object, path).as_str().unwrap_or_default().to_owned()
        }
        Some(path) => selector_text(at(object, path)),
        None => String::new(),
    };
    if !selector.is_empty() {
        scale["status"]["selector"] = json!(selector);
    }
    scale
}

/// Sets the replicas of an object from a `Scale`; `change` returns the new scale for the old one.
pub(crate) async fn write(
    call: &mut Call,
    change: Change,
    mut make: impl FnMut(&Value) -> Result<Value, StatusError>,
) -> Result<Arc<Stored>, StatusError> {
    update_with(call, change, |call, present| {
        let old = present.object;
        let mut before = view(call, old);
        let path = paths(call).spec_replicas;
        let is_unset = call.resource.is_custom() && at(old, &path).is_null();
        if is_unset {
            before["spec"]["replicas"] = json!(UNSET);
        }
        let steps: Vec<&str> = path.split('.').filter(|key| !key.is_empty()).collect();
        crate::apply::scale_owners(&steps, present.managed).put_into(&mut before);
        let scale = make(&before)?;
        if is_unset && scale["spec"]["replicas"] == UNSET {
            let problem = format!("the spec replicas field {path:?} cannot be empty");
            return Err(StatusError::bad_request(problem));
        }
        check_name(call, &scale)?;
        // The definition of a custom resource has its own rule.
        if !call.resource.is_custom() {
            check_replicas(call, &scale["spec"]["replicas"])?;
        }
        let replicas = scale["spec"]["replicas"].as_i64().unwrap_or(0);
        let mut object = old.clone();
        let mut managed = present.managed.clone();
        let before = at(&object, &path).as_i64();
        set(&mut object, &path, replicas.into());
        if before != Some(replicas) || replicas == 0 {
            let api_version = call.resource.api_version();
            let manager = call.field_manager(&api_version, "");
            managed = crate::apply::track_scale(&manager, &steps, &object, &managed);
        }
        match meta::text(&scale, "resourceVersion") {
            "" => {}
            version => {
                let version = version.to_owned();
                meta::metadata_mut(&mut object).insert("resourceVersion".into(), version.into());
            }
        }
        Ok(Made::tracked(object, managed))
    })
    .await
}

/// Applies a `Scale`: its manager then owns the replicas of the object.
pub(crate) async fn apply(call: &mut Call, applied: &Value) -> Result<Arc<Stored>, StatusError> {
    check_options(call, PatchKind::Apply)?;
    let (kind, api_version) = (text(applied, "kind"), text(applied, "apiVersion"));
    if (kind, api_version) != ("Scale", "autoscaling/v1") {
        let shown = crate::apply::shown_kind(api_version, kind);
        return Err(StatusError::bad_request(format!("invalid object type: {shown}")));
    }
    update_with(call, Change::Apply, |call, present| {
        let path = paths(call).spec_replicas;
        let steps: Vec<&str> = path.split('.').filter(|key| !key.is_empty()).collect();
        let is_custom = call.resource.is_custom();
        if is_custom && !present.managed.own(&steps) {
            return Err(unconvertible(
                "failed to create manager for existing fields: failed to \
                 convert live object (/; autoscaling/v1, Kind=Scale)",
            ));
        }
        let scale = view(call, present.object);
        let owners = crate::apply::scale_owners(&steps, present.managed);
        let live = Owned { object: &scale, managed: &owners };
        let (merged, owners) = apply_to(call, live, applied)?;
        let wanted = &merged["spec"]["replicas"];
        if is_custom && *wanted != scale["spec"]["replicas"] {
            let name = &call.info.name;
            return Err(unconvertible(&format!(
                "failed to convert new object (/{name}; autoscaling/v1, Kind=Scale)"
            )));
        }
        check_name(call, applied)?;
        let replicas = wanted.as_i64().unwrap_or(0);
        check_replicas(call, &replicas.into())?;
        let mut object = present.object.clone();
        set(&mut object, &path, replicas.into());
        let api_version = call.resource.api_version();
        let managed = crate::apply::object_owners(&api_version, &steps, present.managed, &owners);
        Ok(Made::tracked(object, managed))
    })
    .await
}

fn apply_to(
    call: &Call,
    live: Owned<'_>,
    applied: &Value,
) -> Result<(Value, ManagedFields), StatusError> {
    let now = meta::format_time(call.inner.clock.now());
    let manager = Manager {
        kind: "Scale",
        subresource: "scale",
        has_status: false,
        has_versions: false,
        ..call.field_manager("autoscaling/v1", &now)
    };
    let schema = crate::schema::builtin("autoscaling", "v1", "Scale");
    let force = call.options.force.unwrap_or(false);
    crate::apply::apply(&manager, force, schema.as_deref(), Some(live), applied)
}

/// Upstream cannot convert the `Scale` of a custom resource, which it tries if an apply is the first
/// one, or changes something.
fn unconvertible(problem: &str) -> StatusError {
    let reason = "request to convert CR to an invalid group/version: autoscaling/v1";
    StatusError::new(500, "", format!("{problem} to proper version: {reason}"))
}

/// Rejects a body that is not a `Scale` of this namespace.
pub(crate) fn check_type(call: &Call, scale: &Value) -> Result<(), StatusError> {
    let (kind, api_version) = (text(scale, "kind"), text(scale, "apiVersion"));
    let (_, version) = crate::resource::split_api_version(api_version);
    let is_scale = matches!(kind, "" | "Scale");
    if !is_scale || !matches!(api_version, "" | "autoscaling/v1") {
        let problem = if is_scale {
            format!(
                "no kind \"Scale\" is registered for version {api_version:?} in scheme \
                 \"pkg/api/legacyscheme/scheme.go:30\""
            )
        } else {
            format!("converting ({version}.{kind}) to (autoscaling.Scale): unknown conversion")
        };
        let kind = if is_scale { "Scale" } else { kind };
        return Err(StatusError::bad_request(format!(
            "{kind} in version {version:?} cannot be handled as a Scale: {problem}"
        )));
    }
    if let Err(problem) = types(scale) {
        return Err(StatusError::bad_request(format!(
            "Scale in version \"v1\" cannot be handled as a Scale: {problem}"
        )));
    }
    let namespace = meta::text(scale, "namespace");
    if !namespace.is_empty() && namespace != call.info.namespace {
        let problem =
            "the namespace of the provided object does not match the namespace sent on the request";
        return Err(StatusError::bad_request(problem));
    }
    Ok(())
}

/// Rejects a patched `Scale` with values of wrong types.
pub(crate) fn check_patched(old: &Value, scale: &Value) -> Result<(), StatusError> {
    let Err(problem) = types(scale) else { return Ok(()) };
    let mut shown = json!({"apiVersion": scale["apiVersion"], "kind": scale["kind"]});
    for (key, value) in old.as_object().into_iter().flatten() {
        shown[key] = scale.get(key).unwrap_or(value).clone();
    }
    let shown = Value::from(shown.to_string());
    let error = FieldError::invalid("patch", &shown, &problem);
    Err(StatusError::invalid("", "", "", &[error]))
}

/// The problem with the types of a `Scale`'s values, in the words of Go's decoder.
fn types(scale: &Value) -> Result<(), String> {
    let schema = crate::schema::builtin("autoscaling", "v1", "Scale");
    schema.map_or(Ok(()), |schema| crate::schema::check_types(&schema, scale))
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn check_name(call: &Call, scale: &Value) -> Result<(), StatusError> {
    let name = meta::text(scale, "name");
    if name.is_empty() || name == call.info.name {
        return Ok(());
    }
    Err(StatusError::bad_request(format!(
        "the name of the object ({name}) does not match the name on the URL ({})",
        call.info.name
    )))
}

fn check_replicas(call: &Call, replicas: &Value) -> Result<(), StatusError> {
    if replicas.as_i64().unwrap_or(0) >= 0 {
        return Ok(());
    }
    let detail = "must be greater than or equal to 0";
    let error = FieldError::invalid("spec.replicas", replicas, detail);
    Err(StatusError::invalid("autoscaling", "Scale", &call.info.name, &[error]))
}

/// Validates the replicas and the selector of a custom resource that can be scaled.
pub(super) fn validate(resource: &ResourceInfo, object: &Value) -> Vec<FieldError> {
    let Some(paths) = resource.custom.as_ref().and_then(|custom| custom.scale.as_ref()) else {
        return Vec::new();
    };
    let mut errors = Vec::new();
    for path in [&paths.spec_replicas, &paths.status_replicas] {
        let value = at(object, path);
        match (value.as_i64(), value) {
            (_, Value::Null) => {}
            (Some(replicas), _) if replicas < 0 => {
                let detail = "should be a non-negative integer";
                errors.push(FieldError::invalid(path.as_str(), value, detail));
            }
            (Some(replicas), _) if replicas > i64::from(i32::MAX) => {
                let detail = format!("should be less than or equal to {}", i32::MAX);
                errors.push(FieldError::invalid(path.as_str(), value, &detail));
            }
            (Some(_), _) => {}
            (None, other) => {
                let detail = accessor_error(path, other, "int64");
                errors.push(FieldError::invalid(path.as_str(), &0.into(), &detail));
            }
        }
    }
    if let Some(path) = &paths.label_selector {
        let value = at(object, path);
        if !value.is_null() && !value.is_string() {
            let detail = accessor_error(path, value, "string");
            errors.push(FieldError::invalid(path.as_str(), &"".into(), &detail));
        }
    }
    errors
}

fn accessor_error(path: &str, value: &Value, expected: &str) -> String {
    let (shown, found) = match value {
        Value::String(text) => (text.clone(), "string"),
        Value::Bool(flag) => (flag.to_string(), "bool"),
        Value::Number(number) if number.is_f64() => (number.to_string(), "float64"),
        Value::Number(number) => (number.to_string(), "int64"),
        Value::Array(_) => (value.to_string(), "[]interface {}"),
        _ => (value.to_string(), "map[string]interface {}"),
    };
    format!("{path} accessor error: {shown} is of the type {found}, expected {expected}")
}

fn paths(call: &Call) -> ScalePaths {
    call.resource.custom.as_ref().and_then(|custom| custom.scale.clone()).unwrap_or_else(|| {
        ScalePaths {
            spec_replicas: ".spec.replicas".to_owned(),
            status_replicas: ".status.replicas".to_owned(),
            label_selector: Some(".spec.selector".to_owned()),
        }
    })
}

/// The value at a dotted JSON path.
fn at<'a>(object: &'a Value, path: &str) -> &'a Value {
    path.split('.').filter(|key| !key.is_empty()).fold(object, |value, key| &value[key])
}

fn set(object: &mut Value, path: &str, new: Value) {
    let mut value = object;
    for key in path.split('.').filter(|key| !key.is_empty()) {
        if !value.is_object() {
            *value = json!({});
        }
        value = &mut value[key];
    }
    *value = new;
}

/// A label selector object (or the plain map of a ReplicationController) as text.
fn selector_text(selector: &Value) -> String {
    let labels = if selector["matchLabels"].is_null() && selector["matchExpressions"].is_null() {
        selector
    } else {
        &selector["matchLabels"]
    };
    let mut terms: Vec<String> = labels
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| value.as_str().map(|text| format!("{key}={text}")))
        .collect();
    for expression in selector["matchExpressions"].as_array().into_iter().flatten() {
        let key = expression["key"].as_str().unwrap_or_default();
        let mut values: Vec<&str> = expression["values"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        values.sort_unstable();
        terms.push(match expression["operator"].as_str().unwrap_or_default() {
            "In" => format!("{key} in ({})", values.join(",")),
            "NotIn" => format!("{key} notin ({})", values.join(",")),
            "DoesNotExist" => format!("!{key}"),
            _ => key.to_owned(),
        });
    }
    terms.sort();
    terms.join(",")
}
