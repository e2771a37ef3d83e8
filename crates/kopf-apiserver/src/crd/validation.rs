//! Rules for CRD objects themselves, in upstream's order and with its messages.
//!
//! Upstream validates an internal form in which everything that all versions share is at the top,
//! so errors of a single version's schema are reported below `spec.validation`. Responsible for
//! that mapping and for the rules outside schemas; the submodules check schemas.

mod conversion;
mod names;
mod schemas;
mod structural;

use serde_json::Value;

use crate::FieldError;
use crate::schema;

/// The maximum number of selectable fields.
const SELECTABLE_FIELDS_MAX: usize = 8;

const APPROVAL: &str = "api-approved.kubernetes.io";

/// Validates a CRD; `old` is the stored one on updates.
pub(crate) fn validate(crd: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let spec = &crd["spec"];
    if old.is_none() {
        let wanted = format!("{}.{}", text(&spec["names"], "plural"), text(spec, "group"));
        let name = &crd["metadata"]["name"];
        if name.as_str().is_some_and(|name| name != wanted) {
            let detail = "must be spec.names.plural+\".\"+spec.group";
            let prefix = &crd["metadata"]["generateName"];
            if prefix.is_string() {
                errors.push(FieldError::invalid("metadata.generateName", prefix, detail));
            }
            errors.push(FieldError::invalid("metadata.name", name, detail));
        }
    }
    check_spec(spec, &mut errors);
    if let Some(old) = old {
        check_immutable(crd, old, &mut errors);
    }
    check_stored_versions(crd, old.is_none(), &mut errors);
    check_approval(crd, old, &mut errors);
    if spec["preserveUnknownFields"] == true
        && old.is_none_or(|old| old["spec"]["preserveUnknownFields"] != true)
    {
        let detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in \
                      spec.versions[*].schema instead";
        errors.push(FieldError::invalid("spec.preserveUnknownFields", &true.into(), detail));
    }
    errors
}

fn check_spec(spec: &Value, errors: &mut Vec<FieldError>) {
    names::check_group(text(spec, "group"), errors);
    match text(spec, "scope") {
        "" => errors.push(FieldError::required("spec.scope", "")),
        "Cluster" | "Namespaced" => {}
        _ => {
            let supported = ["Cluster", "Namespaced"];
            errors.push(FieldError::not_supported("spec.scope", &spec["scope"], &supported));
        }
    }
    let versions = list(spec, "versions");
    for (index, version) in versions.iter().enumerate() {
        if !version["schema"]["openAPIV3Schema"].is_object() {
            let field = format!("spec.versions[{index}].schema.openAPIV3Schema");
            errors.push(FieldError::required(field, "schemas are required"));
        }
    }
    let shared = |key: &str| {
        let first = versions.first().and_then(|version| version.get(key));
        let is_same = |version: &&Value| version.get(key) == first;
        first.filter(|value| !is_empty(value) && versions.iter().all(|v| is_same(&v)))
    };
    for (index, version) in versions.iter().enumerate() {
        let at = format!("spec.versions[{index}]");
        names::check_version(version, &at, errors);
        check_deprecation(version, &at, errors);
        let is_private = |key: &str| shared(key).is_none();
        let has_status = version["subresources"].get("status").is_some();
        if is_private("schema") {
            schemas::check(&version["schema"], has_status, &format!("{at}.schema"), errors);
        }
        if is_private("subresources") {
            check_scale(&version["subresources"], &format!("{at}.subresources"), errors);
        }
        if is_private("additionalPrinterColumns") {
            check_columns(version, &at, errors);
        }
        if is_private("selectableFields") {
            check_selectable_fields(version, &version["schema"], &at, errors);
        }
    }
    names::check_versions(versions, errors);
    names::check_names(&spec["names"], errors);
    let has_status = versions.iter().any(|version| version["subresources"].get("status").is_some());
    if let Some(validation) = shared("schema") {
        schemas::check(validation, has_status, "spec.validation", errors);
    }
    if let Some(subresources) = shared("subresources") {
        check_scale(subresources, "spec.subresources", errors);
    }
    if let Some(first) = versions.first() {
        if shared("additionalPrinterColumns").is_some() {
            check_columns(first, "spec", errors);
        }
        if shared("selectableFields").is_some() {
            check_selectable_fields(first, &first["schema"], "spec", errors);
        }
    }
    conversion::check(&spec["conversion"], errors);
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

fn check_deprecation(version: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let Some(warning) = version.get("deprecationWarning").and_then(Value::as_str) else { return };
    let problem = if version["deprecated"] != true {
        "can only be set for deprecated versions"
    } else if warning.len() > 256 {
        "must be <= 256 characters long"
    } else if warning.is_empty() {
        "must not be an empty string"
    } else {
        return;
    };
    let field = format!("{at}.deprecationWarning");
    errors.push(FieldError::invalid(field, &version["deprecationWarning"], problem));
}

fn check_scale(subresources: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let Some(scale) = subresources.get("scale").filter(|scale| scale.is_object()) else { return };
    let mut check = |name: &str, roots: &[&str], required: bool, problem: &str| {
        let field = format!("{at}.scale.{name}");
        let path = text(scale, name);
        if path.is_empty() {
            if required {
                errors.push(FieldError::required(field, ""));
            }
        } else if !path.starts_with('.') {
            let detail = "must be a simple json path starting with .";
            errors.push(FieldError::invalid(field, &scale[name], detail));
        } else if !roots.iter().any(|root| path.starts_with(root)) {
            errors.push(FieldError::invalid(field, &scale[name], problem));
        }
    };
    check("specReplicasPath", &[".spec."], true, "should be a json path under .spec");
    check("statusReplicasPath", &[".status."], true, "should be a json path under .status");
    let either = "should be a json path under either .spec or .status";
    check("labelSelectorPath", &[".spec.", ".status."], false, either);
}

fn check_columns(version: &Value, at: &str, errors: &mut Vec<FieldError>) {
    const TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
    const FORMATS: [&str; 8] =
        ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];
    for (index, column) in list(version, "additionalPrinterColumns").iter().enumerate() {
        let at = format!("{at}.additionalPrinterColumns[{index}]");
        if text(column, "name").is_empty() {
            errors.push(FieldError::required(format!("{at}.name"), ""));
        }
        let types = format!("must be one of {}", TYPES.join(","));
        match text(column, "type") {
            "" => errors.push(FieldError::required(format!("{at}.type"), &types)),
            kind if TYPES.contains(&kind) => {}
            _ => errors.push(FieldError::invalid(format!("{at}.type"), &column["type"], &types)),
        }
        let format = text(column, "format");
        if !format.is_empty() && !FORMATS.contains(&format) {
            let detail = format!("must be one of {}", FORMATS.join(","));
            errors.push(FieldError::invalid(format!("{at}.format"), &column["format"], &detail));
        }
        let field = format!("{at}.JSONPath");
        match text(column, "jsonPath") {
            "" => errors.push(FieldError::required(field, "")),
            path if path.starts_with('.') => {}
            _ => {
                let detail = "must be a simple json path starting with .";
                errors.push(FieldError::invalid(field, &column["jsonPath"], detail));
            }
        }
    }
}

fn check_selectable_fields(
    version: &Value,
    validation: &Value,
    at: &str,
    errors: &mut Vec<FieldError>,
) {
    let fields = list(version, "selectableFields");
    let mut seen = Vec::new();
    for (index, selectable) in fields.iter().enumerate() {
        let field = format!("{at}.selectableFields[{index}].jsonPath");
        let (path, value) = (text(selectable, "jsonPath"), &selectable["jsonPath"]);
        if path.is_empty() {
            errors.push(FieldError::required(field, ""));
            continue;
        }
        let found = match schemas::follow(&validation["openAPIV3Schema"], path) {
            Ok(found) => found,
            Err(problem) => {
                let detail = format!("is an invalid path: {problem}");
                errors.push(FieldError::invalid(field, value, &detail));
                continue;
            }
        };
        if path.starts_with(".metadata") {
            let detail = "must not point to fields in metadata";
            errors.push(FieldError::invalid(field.clone(), value, detail));
        }
        if !["string", "boolean", "integer"].contains(&text(found, "type")) {
            let detail = "must point to a field of type string, boolean or integer. Enum string \
                          fields and strings with formats are allowed.";
            errors.push(FieldError::invalid(field.clone(), value, detail));
        }
        if seen.contains(&path) {
            errors.push(FieldError::duplicate(field, value));
        } else {
            seen.push(path);
        }
    }
    if seen.len() > SELECTABLE_FIELDS_MAX {
        let text =
            format!("Too many: {}: must have at most {SELECTABLE_FIELDS_MAX} items", seen.len());
        let reason = crate::FieldErrorReason::TooMany;
        errors.push(FieldError::new(reason, format!("{at}.selectableFields"), text));
    }
}

fn check_immutable(crd: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    let established = list(&old["status"], "conditions")
        .iter()
        .any(|condition| condition["type"] == "Established" && condition["status"] == "True");
    let mut check = |path: &[&str]| {
        let find =
            |crd: &Value| path.iter().fold(crd["spec"].clone(), |value, key| value[key].clone());
        let (new, old) = (find(crd), find(old));
        if new != old {
            let field = format!("spec.{}", path.join("."));
            errors.push(FieldError::invalid(field, &new, "field is immutable"));
        }
    };
    if established {
        check(&["scope"]);
        check(&["names", "kind"]);
    }
    check(&["group"]);
    check(&["names", "plural"]);
}

fn check_stored_versions(crd: &Value, is_new: bool, errors: &mut Vec<FieldError>) {
    let stored = &crd["status"]["storedVersions"];
    let versions = list(&crd["spec"], "versions");
    let has_storage = versions.iter().any(|version| version["storage"] == true);
    let is_empty = match (is_new, stored) {
        // The server adds the storage version of a new definition itself.
        (true, _) => !has_storage,
        (false, Value::Array(names)) => names.is_empty(),
        (false, _) => false,
    };
    if is_empty {
        let message = "Invalid value: []string(nil): must have at least one stored version";
        let reason = crate::FieldErrorReason::Invalid;
        errors.push(FieldError::new(reason, "status.storedVersions", message));
        return;
    }
    let Some(names) = stored.as_array() else { return };
    // Each name is used once: a second version with the same name counts as unknown.
    let mut unseen: Vec<&Value> = names.iter().collect();
    for version in versions {
        let before = unseen.len();
        unseen.retain(|name| **name != version["name"]);
        if version["storage"] == true && unseen.len() == before {
            let shown: Vec<String> = names
                .iter()
                .map(|name| format!("{:?}", name.as_str().unwrap_or_default()))
                .collect();
            let name = text(version, "name");
            let message = format!(
                "Invalid value: []string{{{}}}: must have the storage version {name}",
                shown.join(", ")
            );
            let reason = crate::FieldErrorReason::Invalid;
            errors.push(FieldError::new(reason, "status.storedVersions", message));
        }
    }
    for (index, name) in names.iter().enumerate().filter(|(_, name)| unseen.contains(name)) {
        let version = name.as_str().unwrap_or_default();
        // If the storage version is missing, report only that.
        if version.is_empty() {
            continue;
        }
        let detail = format!(
            "missing from spec.versions; {version} was previously a storage version, and must \
             remain in spec.versions until a storage migration ensures no data remains persisted \
             in {version} and removes {version} from status.storedVersions"
        );
        errors.push(FieldError::invalid(format!("status.storedVersions[{index}]"), name, &detail));
    }
}

/// CRDs in groups of the Kubernetes community need an approval.
fn check_approval(crd: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let group = text(&crd["spec"], "group");
    let is_protected = ["k8s.io", "kubernetes.io"]
        .iter()
        .any(|domain| group == *domain || group.ends_with(&format!(".{domain}")));
    let approval = |crd: &Value| text(&crd["metadata"]["annotations"], APPROVAL).to_owned();
    let given = approval(crd);
    if !is_protected || old.is_some_and(|old| approval(old) == given) {
        return;
    }
    let field = format!("metadata.annotations[{APPROVAL}]");
    let see = "see https://github.com/kubernetes/enhancements/pull/1111";
    let is_url = given.split_once("://").is_some_and(|(scheme, rest)| {
        !scheme.is_empty() && !rest.is_empty() && !rest.starts_with('/')
    });
    if given.is_empty() {
        let detail = format!("protected groups must have approval annotation {APPROVAL:?}, {see}");
        errors.push(FieldError::required(field, &detail));
    } else if !given.starts_with("unapproved") && !is_url {
        let detail = format!(
            "protected groups must have approval annotation {APPROVAL:?} with either a URL or a \
             reason starting with \"unapproved\", {see}"
        );
        errors.push(FieldError::invalid(field, &given.into(), &detail));
    }
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The compiled form of a schema, for defaults and rules.
fn compiled(json: &Value) -> Option<std::sync::Arc<schema::Schema>> {
    schema::custom(json)
}

#[cfg(test)]
mod recorded_tests;
#[cfg(test)]
mod tests;
