//! Rules for groups, versions and names.

use serde_json::Value;

use super::{list, text};
use crate::FieldError;
use crate::meta::name_problem;

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

pub(super) fn check_versions(versions: &[Value], spec: &Value, errors: &mut Vec<FieldError>) {
    let mut names: Vec<&str> = versions.iter().map(|version| text(version, "name")).collect();
    names.sort_unstable();
    if names.windows(2).any(|pair| pair[0] == pair[1]) {
        let detail = "must contain unique version names";
        errors.push(FieldError::invalid("spec.versions", &spec["versions"], detail));
    }
    if versions.iter().filter(|version| version["storage"] == true).count() != 1 {
        let detail = "must have exactly one version marked as storage version";
        errors.push(FieldError::invalid("spec.versions", &spec["versions"], detail));
    }
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
