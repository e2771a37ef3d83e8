//! Converts a decoded body to an object of the requested resource: type, fields, defaults.

use std::collections::HashMap;

use serde_json::Value;

use super::Call;
use crate::convert::set_type;
use crate::decode::Decoded;
use crate::query::FieldValidation;
use crate::{StatusError, kinds, meta, schema};

/// The body of a write, before its type is checked.
pub(crate) type Body = Decoded;

/// Checks type and fields, prunes, and fills in defaults.
pub(crate) fn typed(call: &mut Call, body: Body) -> Result<Value, StatusError> {
    let mut object = body.value;
    check_type(call, &mut object)?;
    let mut problems = Vec::new();
    let is_clean = is_clean(call, &object);
    if call.options.field_validation != FieldValidation::Ignore {
        if let Some(schema) = call.resource.schema.as_ref().filter(|_| !is_clean) {
            let unknown = schema::unknown_fields(schema, &object);
            problems.extend(unknown.into_iter().map(|path| format!("unknown field \"{path}\"")));
        }
        // The YAML decoder reports duplicates before fields are checked, the JSON decoder together
        // with them.
        let is_yaml = body.duplicates.iter().any(|problem| problem.starts_with("line "));
        let is_strict = call.options.field_validation == FieldValidation::Strict;
        let duplicates = match is_yaml && is_strict {
            true => vec![format!("yaml: unmarshal errors:\n  {}", body.duplicates.join("\n  "))],
            false => body.duplicates,
        };
        let place = if is_yaml { 0 } else { problems.len() };
        problems.splice(place..place, duplicates);
        if !is_yaml && !call.resource.is_custom() {
            problems = in_document_order(&object, problems);
        }
    }
    if let Some(schema) = call.resource.schema.clone()
        && !call.resource.is_custom()
    {
        schema::check_types(&schema, &object)
            .map_err(|problem| call.cannot_be_handled(&call.resource.kind, &problem))?;
    }
    if call.resource.is_custom() {
        // The metadata of custom resources is decoded on its own, so paths start there.
        schema::check_object_meta(&object["metadata"])
            .map_err(|problem| call.cannot_be_handled(&call.resource.kind, &problem))?;
        if let Some(schema) = call.resource.schema.as_deref() {
            schema::check_types(schema, &object)
                .map_err(|problem| call.cannot_be_handled(&call.resource.kind, &problem))?;
        }
    }
    if call.options.field_validation == FieldValidation::Strict && !problems.is_empty() {
        let problem = format!("strict decoding error: {}", problems.join(", "));
        return Err(call.cannot_be_handled(&call.resource.kind, &problem));
    }
    call.warnings.extend(problems);
    if is_clean {
        forget_empty_managers(call, &mut object);
        finish_applied(call, &mut object);
    } else {
        finish(call, &mut object);
    }
    call.forget_repeated_owners(&mut object, "");
    Ok(object)
}

/// Sorts problems such as `unknown field "spec.odd"` by the places of their fields in the document.
fn in_document_order(object: &Value, mut problems: Vec<String>) -> Vec<String> {
    fn walk(value: &Value, path: &str, places: &mut HashMap<String, usize>) {
        let place = places.len();
        places.entry(path.to_owned()).or_insert(place);
        match value {
            Value::Object(fields) => fields.iter().for_each(|(name, value)| match path {
                "" => walk(value, name, places),
                _ => walk(value, &format!("{path}.{name}"), places),
            }),
            Value::Array(items) => items.iter().enumerate().for_each(|(index, item)| {
                walk(item, &format!("{path}[{index}]"), places);
            }),
            _ => {}
        }
    }
    if problems.len() > 1 {
        let mut places = HashMap::new();
        walk(object, "", &mut places);
        problems.sort_by_key(|problem| {
            let field = problem.split('"').nth(1).unwrap_or_default();
            places.get(field).copied().unwrap_or(usize::MAX)
        });
    }
    problems
}

/// Whether an object has no unknown fields and nothing to prune.
pub(super) fn is_clean(call: &Call, object: &Value) -> bool {
    call.resource.schema.as_ref().is_none_or(|schema| schema::is_clean(schema, object))
}

/// Custom resources lose empty lists in their metadata when they are decoded, so that these do not
/// reset managers as they do elsewhere.
pub(super) fn forget_empty_managers(call: &Call, object: &mut Value) {
    if call.resource.is_custom()
        && object["metadata"]["managedFields"].as_array().is_some_and(Vec::is_empty)
    {
        meta::metadata_mut(object).shift_remove("managedFields");
    }
}

/// Prunes, tidies and fills in defaults, as after every decoding and every patch.
pub(crate) fn finish(call: &Call, object: &mut Value) {
    forget_empty_managers(call, object);
    if let Some(schema) = &call.resource.schema {
        schema::prune(schema, object);
    }
    finish_applied(call, object);
}

/// Tidies and fills in defaults. Applied configurations are not decoded into Go structs, so their
/// nulls remain and validation rejects them.
pub(crate) fn finish_applied(call: &Call, object: &mut Value) {
    if let Some(schema) = &call.resource.schema {
        // Upstream finds defaults by the kind in the body, so a wrong kind gets none.
        if call.wrong_kind.is_none() {
            schema::fill_defaults(schema, object);
        }
    }
    meta::tidy(object);
    if &*call.resource.table == crate::crd::TABLE {
        crate::crd::fill_defaults(object);
    }
    let context = call.kind_context();
    kinds::strategy_for(&call.resource).default(&context, object);
}

impl Call {
    /// Removes duplicate owner references and warns about them.
    pub(super) fn forget_repeated_owners(&mut self, object: &mut Value, when: &str) {
        self.warnings.extend(meta::forget_repeated_owners(object, when));
    }

    /// 400: the body is not an object of this resource.
    pub(super) fn cannot_be_handled(&self, kind: &str, problem: &str) -> StatusError {
        StatusError::bad_request(format!(
            "{kind} in version {:?} cannot be handled as a {}: {problem}",
            self.resource.version, self.resource.kind
        ))
    }
}

/// Rejects a body that is not an object, such as a list.
pub(crate) fn check_object(kind: &str, object: &Value, sent: &[u8]) -> Result<(), StatusError> {
    if object.is_object() {
        return Ok(());
    }
    let sent: String = sent.iter().map(|byte| format!("{byte:02x}")).collect();
    Err(StatusError::bad_request(format!(
        "the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; \
         json parse error: json: cannot unmarshal {} into Go value of type struct {{ APIVersion \
         string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \
         \"json:\\\"kind,omitempty\\\"\" }} ({sent})",
        json_kind(object)
    )))
}

fn check_type(call: &mut Call, object: &mut Value) -> Result<(), StatusError> {
    let resource = std::sync::Arc::clone(&call.resource);
    if object.is_null() {
        // Go decodes null into an empty struct.
        *object = Value::Object(serde_json::Map::new());
    }
    check_object(&resource.kind, object, &call.raw_body)?;
    let expected = resource.api_version();
    let kind = object["kind"].as_str().unwrap_or_default().to_owned();
    let api_version = object["apiVersion"].as_str().unwrap_or_default().to_owned();
    if resource.is_custom() {
        check_custom_type(call, object, &kind, &api_version)?;
        call.wrong_kind = (kind != resource.kind).then_some(kind);
    } else if !api_version.is_empty() && api_version != expected {
        let shown = if kind.is_empty() { &resource.kind } else { &kind };
        let problem = format!(
            "no kind {shown:?} is registered for version {api_version:?} in scheme \
             \"pkg/api/legacyscheme/scheme.go:30\""
        );
        let (_, version) = crate::resource::split_api_version(&api_version);
        return Err(StatusError::bad_request(format!(
            "{shown} in version {version:?} cannot be handled as a {}: {problem}",
            resource.kind
        )));
    } else if !kind.is_empty() && kind != resource.kind {
        let registry = call.inner.registry();
        let is_known =
            |kind: &str| registry.of_kind(&resource.group, &resource.version, kind).is_some();
        let is_list =
            kind.strip_suffix("List").is_some_and(|item| item.is_empty() || is_known(item));
        let problem = if is_known(&kind) || is_list {
            let package =
                if resource.group.is_empty() { "core" } else { first_label(&resource.group) };
            format!(
                "converting ({}.{kind}) to ({package}.{}): unknown conversion",
                resource.version, resource.kind
            )
        } else {
            format!(
                "no kind {kind:?} is registered for version {expected:?} in scheme \
                 \"pkg/api/legacyscheme/scheme.go:30\""
            )
        };
        return Err(call.cannot_be_handled(&kind, &problem));
    }
    set_type(object, &resource.kind, &expected);
    Ok(())
}

/// A custom resource must have a type. A wrong kind is a validation error.
fn check_custom_type(
    call: &mut Call,
    object: &Value,
    kind: &str,
    api_version: &str,
) -> Result<(), StatusError> {
    const SHOWN_MAX: usize = 30;
    let missing = |call: &Call, field: &str| {
        let sent = if call.raw_body.is_empty() {
            object.to_string()
        } else {
            String::from_utf8_lossy(&call.raw_body).into_owned()
        };
        let shown: String = sent.chars().take(SHOWN_MAX).collect();
        let cut = if sent.chars().count() > SHOWN_MAX { " ..." } else { "" };
        StatusError::bad_request(format!(
            "the object provided is unrecognized (must be of type {}): Object '{field}' is \
             missing in '{sent}' ({shown}{cut})",
            call.resource.kind
        ))
    };
    if kind.is_empty() {
        return Err(missing(call, "Kind"));
    }
    let expected = call.resource.api_version();
    if api_version != expected {
        warn_of_other_version(call, object, kind, api_version);
        return Err(StatusError::bad_request(format!(
            "the API version in the data ({api_version}) does not match the expected API version \
             ({expected})"
        )));
    }
    Ok(())
}

/// Upstream's decoder checks fields by the version in the body before it rejects a wrong version.
fn warn_of_other_version(call: &mut Call, object: &Value, kind: &str, api_version: &str) {
    let (group, version) = crate::resource::split_api_version(api_version);
    if group != call.resource.group
        || kind != call.resource.kind
        || call.options.field_validation == FieldValidation::Ignore
    {
        return;
    }
    let other = call.inner.registry().find(group, version, &call.resource.resource).cloned();
    let unknown = match other.as_ref().and_then(|other| other.schema.as_ref()) {
        Some(schema) => schema::unknown_fields(schema, object),
        None => object
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, _)| name.clone())
            .filter(|name| !matches!(name.as_str(), "kind" | "apiVersion" | "metadata"))
            .collect(),
    };
    call.warnings.extend(unknown.iter().map(|path| format!("unknown field \"{path}\"")));
}

fn first_label(group: &str) -> &str {
    group.split('.').next().unwrap_or(group)
}

fn json_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::in_document_order;

    #[test]
    fn strict_errors_come_in_the_order_of_the_document() {
        let object = json!({"metadata": {"name": "a"}, "list": [{"b": 1}], "odd": 1});
        let problems = ["odd", "list[0].b", "metadata.name"];
        let sorted = in_document_order(
            &object,
            problems.map(|field| format!("unknown field {field:?}")).into(),
        );
        let expected = ["metadata.name", "list[0].b", "odd"];
        assert_eq!(sorted, expected.map(|field| format!("unknown field {field:?}")));
    }
}
