//! Rules for groups, versions and names.

use serde_json::Value;

use super::{list, text};
use crate::go_print::quoted;
use crate::meta::name_problem;
use crate::{FieldError, FieldErrorReason};

fn label_problems(label: &str) -> String {
    name_problem("", "services", label, false).join(",")
}

pub(super) fn check_group(group: &str, errors: &mut Vec<FieldError>) {
    let problems = name_problem("", "any", group, false);
    if group.is_empty() {
        errors.push(FieldError::required("spec.group", ""));
    } else if !problems.is_empty() {
        errors.push(FieldError::invalid("spec.group", &group.into(), &problems.join(",")));
    } else if !group.contains('.') {
        let detail = "should be a domain with at least one dot";
        errors.push(FieldError::invalid("spec.group", &group.into(), detail));
    }
}

pub(super) fn check_version(version: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let name = text(version, "name");
    let problems = label_problems(name);
    if !problems.is_empty() {
        errors.push(FieldError::invalid(format!("{at}.name"), &name.into(), &problems));
    }
}

pub(super) fn check_versions(versions: &[Value], errors: &mut Vec<FieldError>) {
    let mut complain = |problem: &str| {
        let shown: Vec<String> = versions.iter().map(|v| go_version(v, versions)).collect();
        let list =
            format!("[]apiextensions.CustomResourceDefinitionVersion{{{}}}", shown.join(", "));
        let message = format!("Invalid value: {list}: {problem}");
        errors.push(FieldError::new(FieldErrorReason::Invalid, "spec.versions", message));
    };
    let mut names: Vec<&str> = versions.iter().map(|version| text(version, "name")).collect();
    names.sort_unstable();
    if names.windows(2).any(|pair| pair[0] == pair[1]) {
        complain("must contain unique version names");
    }
    if versions.iter().filter(|version| version["storage"] == true).count() != 1 {
        complain("must have exactly one version marked as storage version");
    }
    // The internal form repeats the first version at the top.
    let first = versions.first().map(|version| text(version, "name")).unwrap_or_default();
    let problems = label_problems(first);
    if !first.is_empty() && !problems.is_empty() {
        errors.push(FieldError::invalid("spec.version", &first.into(), &problems));
    }
}

/// A version as Go prints it, without the parts that all versions share.
fn go_version(version: &Value, versions: &[Value]) -> String {
    let is_shared = |key: &str| versions.iter().all(|other| other.get(key) == version.get(key));
    let pointer = |key: &str, kind: &str| match version.get(key) {
        Some(value) if !value.is_null() && !is_shared(key) => format!("(*{kind})(0xc000000000)"),
        _ => format!("(*{kind})(nil)"),
    };
    let items = |key: &str, kind: &str, show: fn(&Value) -> String| {
        let kind = format!("apiextensions.{kind}");
        let own = list(version, key);
        if own.is_empty() || is_shared(key) {
            return format!("[]{kind}(nil)");
        }
        let shown: Vec<String> =
            own.iter().map(|item| format!("{kind}{{{}}}", show(item))).collect();
        format!("[]{kind}{{{}}}", shown.join(", "))
    };
    let flag = |key: &str| version.get(key) == Some(&Value::Bool(true));
    format!(
        "apiextensions.CustomResourceDefinitionVersion{{Name:{}, Served:{}, Storage:{}, \
         Deprecated:{}, DeprecationWarning:{}, Schema:{}, Subresources:{}, \
         AdditionalPrinterColumns:{}, SelectableFields:{}}}",
        quoted(text(version, "name")),
        flag("served"),
        flag("storage"),
        flag("deprecated"),
        match version.get("deprecationWarning") {
            Some(Value::String(_)) => "(*string)(0xc000000000)",
            _ => "(*string)(nil)",
        },
        pointer("schema", "apiextensions.CustomResourceValidation"),
        pointer("subresources", "apiextensions.CustomResourceSubresources"),
        items("additionalPrinterColumns", "CustomResourceColumnDefinition", go_column),
        items("selectableFields", "SelectableField", |field| {
            format!("JSONPath:{}", quoted(text(field, "jsonPath")))
        }),
    )
}

fn go_column(column: &Value) -> String {
    let [name, kind, format, description, path] =
        ["name", "type", "format", "description", "jsonPath"].map(|key| quoted(text(column, key)));
    let priority = column["priority"].as_i64().unwrap_or_default();
    format!(
        "Name:{name}, Type:{kind}, Format:{format}, Description:{description}, \
         Priority:{priority}, JSONPath:{path}"
    )
}

pub(super) fn check_names(names: &Value, errors: &mut Vec<FieldError>) {
    for key in ["plural", "singular", "kind", "listKind"] {
        if text(names, key).is_empty() {
            errors.push(FieldError::required(format!("spec.names.{key}"), ""));
        }
    }
    let mut check = |field: String, name: &str, mixed_case: bool| {
        let problems = match mixed_case {
            true => label_problems(&name.to_lowercase()),
            false => label_problems(name),
        };
        if !name.is_empty() && !problems.is_empty() {
            let prefix = "may have mixed case, but should otherwise match: ";
            let detail = if mixed_case { format!("{prefix}{problems}") } else { problems };
            errors.push(FieldError::invalid(field, &name.into(), &detail));
        }
    };
    for (key, mixed_case) in
        [("plural", false), ("singular", false), ("kind", true), ("listKind", true)]
    {
        check(format!("spec.names.{key}"), text(names, key), mixed_case);
    }
    for key in ["shortNames", "categories"] {
        for (index, name) in list(names, key).iter().enumerate() {
            check(format!("spec.names.{key}[{index}]"), name.as_str().unwrap_or_default(), false);
        }
    }
    let kind = text(names, "kind");
    if !kind.is_empty() && kind == text(names, "listKind") {
        let detail = "kind and listKind may not be the same";
        errors.push(FieldError::invalid("spec.names.listKind", &kind.into(), detail));
    }
}
