//! The field and label selectors of access reviews: whether they are well-formed.
//!
//! Unknown operators are accepted, so that newer clients can ask older servers. Pure.

use serde_json::Value;

use crate::FieldError;
use crate::fields::{items, text};
use kopf_apimachinery::names;

/// The problems of both selectors of `spec.resourceAttributes`.
pub(super) fn problems(attributes: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for name in ["fieldSelector", "labelSelector"] {
        let selector = &attributes[name];
        if selector.is_null() {
            continue;
        }
        let path = format!("spec.resourceAttributes.{name}");
        check_form(selector, &path, &mut errors);
        for (index, requirement) in items(selector, &["requirements"]).iter().enumerate() {
            let path = format!("{path}.requirements[{index}]");
            let key = text(requirement, &["key"]);
            if name == "fieldSelector" && key.is_empty() {
                errors.push(FieldError::required(format!("{path}.key"), "must be specified"));
            }
            check_values(requirement, &path, &mut errors);
            if name == "labelSelector" {
                check_labels(requirement, &path, &mut errors);
            }
        }
    }
    errors
}

/// Rejects selectors with both a text and requirements, or with neither.
fn check_form(selector: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let raw = text(selector, &["rawSelector"]);
    let has_requirements = !items(selector, &["requirements"]).is_empty();
    if !raw.is_empty() && has_requirements {
        let detail = "may not specified at the same time as requirements";
        errors.push(FieldError::invalid(format!("{path}.rawSelector"), &raw.into(), detail));
    }
    if raw.is_empty() && !has_requirements {
        let detail = format!("when {path} is specified, requirements or rawSelector is required");
        errors.push(FieldError::required(format!("{path}.requirements"), &detail));
    }
}

fn check_values(requirement: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let path = format!("{path}.values");
    let has_values = !items(requirement, &["values"]).is_empty();
    match text(requirement, &["operator"]) {
        "In" | "NotIn" if !has_values => {
            let detail = "must be specified when `operator` is 'In' or 'NotIn'";
            errors.push(FieldError::required(path, detail));
        }
        "Exists" | "DoesNotExist" if has_values => {
            let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.push(FieldError::forbidden(path, detail));
        }
        _ => {}
    }
}

fn check_labels(requirement: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let key = text(requirement, &["key"]);
    for problem in names::qualified_name_problems(key) {
        errors.push(FieldError::invalid(format!("{path}.key"), &key.into(), &problem));
    }
    for (place, value) in items(requirement, &["values"]).iter().enumerate() {
        if let Err(problem) = names::check_label_value(value.as_str().unwrap_or_default()) {
            errors.push(FieldError::invalid(format!("{path}.values[{place}]"), value, &problem));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::problems;

    #[test]
    fn a_selector_is_either_a_text_or_requirements() {
        let both = json!({"fieldSelector": {"rawSelector": "metadata.name=x",
            "requirements": [{"key": "a", "operator": "In", "values": ["b"]}]}});
        let found: Vec<String> =
            problems(&both).iter().map(crate::FieldError::full_message).collect();
        assert_eq!(
            found,
            ["spec.resourceAttributes.fieldSelector.rawSelector: Invalid value: \
              \"metadata.name=x\": may not specified at the same time as requirements"]
        );
        let neither = json!({"labelSelector": {}});
        assert_eq!(
            problems(&neither)[0].full_message(),
            "spec.resourceAttributes.labelSelector.requirements: Required value: when \
             spec.resourceAttributes.labelSelector is specified, requirements or rawSelector is \
             required"
        );
    }

    #[test]
    fn unknown_operators_are_accepted_but_empty_label_keys_are_not() {
        let odd = json!({"labelSelector": {"requirements": [{"key": "", "operator": "Odd"}]}});
        let fields: Vec<String> = problems(&odd).into_iter().map(|error| error.field).collect();
        assert!(!fields.is_empty());
        let path = "spec.resourceAttributes.labelSelector.requirements[0].key";
        assert!(fields.iter().all(|field| field == path), "{fields:?}");
    }
}
