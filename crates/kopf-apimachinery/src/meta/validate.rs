//! Validates the metadata of an object.

use serde_json::Value;

use crate::FieldError;
use crate::names::{
    check_label_value, check_qualified_name, name_problem, qualified_name_problems,
};
use crate::resource::ResourceInfo;

const ANNOTATIONS_SIZE_MAX: usize = 256 * 1024;

/// Returns every problem with `object.metadata`.
pub fn validate(resource: &ResourceInfo, object: &Value) -> Vec<FieldError> {
    let field = |key: &str| super::field(object, key).unwrap_or(&Value::Null);
    let mut errors = Vec::new();
    validate_names(resource, field("name"), field("generateName"), &mut errors);
    validate_generation(field("generation"), &mut errors);
    validate_content(object, &mut errors);
    validate_finalizers(field("finalizers"), &mut errors);
    errors
}

/// Adds the problems that are checked for new and for changed objects.
pub(super) fn validate_content(object: &Value, errors: &mut Vec<FieldError>) {
    let field = |key: &str| super::field(object, key).unwrap_or(&Value::Null);
    validate_labels(field("labels"), "metadata.labels", errors);
    validate_annotations(field("annotations"), "metadata.annotations", errors);
    validate_owners(field("ownerReferences"), errors);
}

fn validate_names(
    resource: &ResourceInfo,
    name: &Value,
    generate_name: &Value,
    errors: &mut Vec<FieldError>,
) {
    let prefix = generate_name.as_str().unwrap_or_default();
    if !prefix.is_empty() {
        for problem in name_problem(&resource.group, &resource.resource, prefix, true) {
            errors.push(FieldError::invalid("metadata.generateName", generate_name, &problem));
        }
    }
    match name.as_str() {
        None | Some("") => {
            errors.push(FieldError::required("metadata.name", "name or generateName is required"));
        }
        Some(text) => {
            for problem in name_problem(&resource.group, &resource.resource, text, false) {
                errors.push(FieldError::invalid("metadata.name", name, &problem));
            }
        }
    }
}

fn validate_generation(generation: &Value, errors: &mut Vec<FieldError>) {
    if generation.as_i64().is_some_and(|generation| generation < 0) {
        errors.push(FieldError::invalid(
            "metadata.generation",
            generation,
            "must be greater than or equal to 0",
        ));
    }
}

/// Adds the problems of a label map at `path`.
pub fn validate_labels(labels: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for (key, value) in labels.as_object().into_iter().flatten() {
        for problem in qualified_name_problems(key) {
            errors.push(FieldError::invalid(path, &key.as_str().into(), &problem));
        }
        if let Err(problem) = check_label_value(value.as_str().unwrap_or_default()) {
            errors.push(FieldError::invalid(path, value, &problem));
        }
    }
}

/// Adds the problems of an annotation map at `path`.
pub fn validate_annotations(annotations: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let mut size = 0;
    for (key, value) in annotations.as_object().into_iter().flatten() {
        // Annotation keys may have upper case letters in their prefix.
        for problem in qualified_name_problems(&key.to_lowercase()) {
            errors.push(FieldError::invalid(path, &key.as_str().into(), &problem));
        }
        size += key.len() + value.as_str().unwrap_or_default().len();
    }
    if size > ANNOTATIONS_SIZE_MAX {
        errors.push(FieldError::too_long(path, ANNOTATIONS_SIZE_MAX));
    }
}

/// Warnings about new finalizers of custom resources whose names may clash with those of others.
pub fn finalizer_warnings(object: &Value, old: Option<&Value>) -> Vec<String> {
    let stored = old.map(super::finalizers).unwrap_or_default();
    let given = super::finalizers(object).into_iter();
    given
        .filter(|name| !name.contains('/') && !stored.contains(name))
        .filter(|name| !matches!(*name, "orphan" | "foregroundDeletion" | "kubernetes"))
        .map(|name| {
            let wanted = if name.contains('.') { " including a path (/)" } else { "" };
            format!(
                "metadata.finalizers: {name:?}: prefer a domain-qualified finalizer name{wanted} \
                 to avoid accidental conflicts with other finalizer writers"
            )
        })
        .collect()
}

fn validate_owners(owners: &Value, errors: &mut Vec<FieldError>) {
    let mut controller: Option<String> = None;
    for owner in owners.as_array().into_iter().flatten() {
        for (key, detail) in [
            ("apiVersion", "version must not be empty"),
            ("kind", "kind must not be empty"),
            ("name", "name must not be empty"),
            ("uid", "uid must not be empty"),
        ] {
            let text = owner[key].as_str().unwrap_or_default();
            if text.is_empty() || (key == "apiVersion" && text.matches('/').count() > 1) {
                let field = format!("metadata.ownerReferences.{key}");
                errors.push(FieldError::invalid(field, &text.into(), detail));
            }
        }
        if owner["kind"] == "Event" && owner["apiVersion"] == "v1" {
            let alone = Value::Array(vec![owner.clone()]);
            let shown = go_owners(&alone);
            let shown = shown.trim_start_matches("[]v1.OwnerReference{");
            let shown = shown.strip_suffix('}').unwrap_or(shown);
            errors.push(FieldError::new(
                crate::FieldErrorReason::Invalid,
                "metadata.ownerReferences",
                format!(
                    "Invalid value: {shown}: /v1, Kind=Event is disallowed from being an owner"
                ),
            ));
        }
        if owner["controller"].as_bool() == Some(true) {
            let shown = format!(
                "{}/{}",
                owner["kind"].as_str().unwrap_or_default(),
                owner["name"].as_str().unwrap_or_default()
            );
            if let Some(first) = &controller {
                errors.push(FieldError::new(
                    crate::FieldErrorReason::Invalid,
                    "metadata.ownerReferences",
                    format!(
                        "Invalid value: {}: Only one reference can have Controller set to true. \
                         Found \"true\" in references for {first} and {shown}",
                        go_owners(owners)
                    ),
                ));
            } else {
                controller = Some(shown);
            }
        }
    }
}

/// Owner references as Go prints the structs; pointers are addresses there.
fn go_owners(owners: &Value) -> String {
    let pointer = |value: &Value| match value {
        Value::Null => "(*bool)(nil)",
        _ => "(*bool)(0xc000000000)",
    };
    let text = |value: &Value| format!("{:?}", value.as_str().unwrap_or_default());
    let printed: Vec<String> = owners
        .as_array()
        .into_iter()
        .flatten()
        .map(|owner| {
            format!(
                "v1.OwnerReference{{APIVersion:{}, Kind:{}, Name:{}, UID:{}, Controller:{}, \
                 BlockOwnerDeletion:{}}}",
                text(&owner["apiVersion"]),
                text(&owner["kind"]),
                text(&owner["name"]),
                text(&owner["uid"]),
                pointer(&owner["controller"]),
                pointer(&owner["blockOwnerDeletion"])
            )
        })
        .collect();
    format!("[]v1.OwnerReference{{{}}}", printed.join(", "))
}

fn validate_finalizers(finalizers: &Value, errors: &mut Vec<FieldError>) {
    let mut policies = 0;
    for finalizer in finalizers.as_array().into_iter().flatten() {
        let text = finalizer.as_str().unwrap_or_default();
        if matches!(text, "orphan" | "foregroundDeletion") {
            policies += 1;
        }
        let path = "metadata.finalizers";
        if let Err(problem) = check_qualified_name(text) {
            errors.push(FieldError::invalid(path, finalizer, &problem));
        }
    }
    if policies > 1 {
        let shown: Vec<String> =
            finalizers.as_array().into_iter().flatten().map(Value::to_string).collect();
        errors.push(FieldError::new(
            crate::FieldErrorReason::Invalid,
            "metadata.finalizers",
            format!(
                "Invalid value: []string{{{}}}: finalizer orphan and foregroundDeletion cannot be \
                 both set",
                shown.join(", ")
            ),
        ));
    }
}
