//! Rules for `openAPIV3Schema`: keywords, list types, defaults and CEL rules.

mod rules;

use serde_json::Value;

use super::{list, structural, text};
use crate::FieldError;
use crate::go_print::quoted;
use crate::schema::{self, Schema};

/// Checks `{openAPIV3Schema: ...}` of one version or of all.
pub(super) fn check(validation: &Value, has_status: bool, at: &str, errors: &mut Vec<FieldError>) {
    let Some(json) = validation.get("openAPIV3Schema").filter(|schema| schema.is_object()) else {
        return;
    };
    let at = format!("{at}.openAPIV3Schema");
    check_root(json, has_status, &at, errors);
    // Upstream reports unsupported keywords as such, and does not look at the structure then.
    let is_convertible = structural::is_convertible(json);
    let mut shape = if is_convertible { structural::check(json, &at) } else { Vec::new() };
    if schema::patterns::are_too_large(json) {
        let detail = "its regular expressions are too large together";
        shape.push(FieldError::forbidden(at.clone(), detail));
    }
    let compiled = super::compiled(json).filter(|_| is_convertible);
    let mut defaults = Vec::new();
    if let Some(compiled) = compiled.as_deref().filter(|_| shape.is_empty()) {
        check_defaults(json, compiled, &at, &mut defaults);
    }
    let is_sound = shape.is_empty() && defaults.is_empty();
    errors.append(&mut shape);
    errors.append(&mut defaults);
    let mut found = Found::default();
    let context =
        Context { compiled: compiled.as_deref().filter(|_| is_sound), cardinality: Some(1.0) };
    let mut place = Place { at: at.clone(), is_root: true, ..Place::default() };
    check_keywords(json, &mut place, context, &mut found);
    errors.append(&mut found.schema);
    errors.append(&mut found.rules);
    rules::check_total(&found.costs, &at, errors);
}

/// The errors found; those of rules are kept separately, since they come last.
#[derive(Default)]
struct Found {
    schema: Vec<FieldError>,
    rules: Vec<FieldError>,
    /// The paths of rules and their maximum costs.
    costs: Vec<(String, f64)>,
}

/// What is known about the values at a place; `None` where rules are not checked.
#[derive(Clone, Copy)]
struct Context<'a> {
    compiled: Option<&'a Schema>,
    /// The maximum number of such values in one object, if it is limited.
    cardinality: Option<f64>,
}

#[derive(Clone, Default)]
struct Place {
    at: String,
    is_root: bool,
    inside_metadata: bool,
    /// Why defaults are forbidden here.
    no_defaults: Option<String>,
    /// The ancestor whose items cannot be correlated with their previous state.
    uncorrelatable: Option<String>,
}

impl Place {
    fn child(&self, suffix: &str) -> Self {
        Self { at: format!("{}.{suffix}", self.at), is_root: false, ..self.clone() }
    }
}

fn check_root(json: &Value, has_status: bool, at: &str, errors: &mut Vec<FieldError>) {
    const FORBIDDEN: [&str; 14] = [
        "allOf",
        "anyOf",
        "oneOf",
        "not",
        "default",
        "enum",
        "nullable",
        "additionalProperties",
        "maxProperties",
        "minProperties",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string",
        "x-kubernetes-list-type",
        "x-kubernetes-map-type",
    ];
    if has_status {
        let kind = text(json, "type");
        let other = FORBIDDEN.iter().any(|key| json.get(key).is_some());
        if !kind.is_empty() && kind != "object" {
            let detail = "only \"object\" is allowed as the type at the root of the schema if the \
                          status subresource is enabled";
            errors.push(FieldError::invalid(format!("{at}.type"), &kind.into(), detail));
        } else if other {
            let detail = "only [Description Type Format Title Maximum ExclusiveMaximum Minimum \
                          ExclusiveMinimum MaxLength MinLength Pattern MaxItems MinItems \
                          UniqueItems MultipleOf Required Items Properties ExternalDocs Example \
                          XPreserveUnknownFields XValidations] fields are allowed at the root of \
                          the schema if the status subresource is enabled";
            errors.push(FieldError::invalid(at, json, detail));
        }
    }
    if json.get("nullable") == Some(&Value::Bool(true)) {
        let detail = "nullable cannot be true at the root";
        errors.push(FieldError::forbidden(format!("{at}.nullable"), detail));
    }
}

fn check_keywords(json: &Value, place: &mut Place, context: Context<'_>, found: &mut Found) {
    let before = found.schema.len();
    check_supported(json, place, &mut found.schema);
    let at = place.at.clone();
    if json.get("uniqueItems") == Some(&Value::Bool(true)) {
        let detail = "uniqueItems cannot be set to true since the runtime complexity becomes \
                      quadratic";
        found.schema.push(FieldError::forbidden(format!("{at}.uniqueItems"), detail));
    }
    check_children(json, place, context, found);
    check_list_type(json, &at, &mut found.schema);
    rules::check_shape(json, &at, &mut found.schema);
    // Upstream does not report errors of rules if the schema around them is invalid.
    if let Some(compiled) = context.compiled.filter(|_| found.schema.len() == before) {
        rules::check(json, compiled, context.cardinality, place, found);
    }
}

fn check_children(json: &Value, place: &Place, context: Context<'_>, found: &mut Found) {
    let properties = json.get("properties").and_then(Value::as_object);
    if let Some(additional) = json.get("additionalProperties") {
        let has_properties = properties.is_some_and(|properties| !properties.is_empty());
        if has_properties && additional != &Value::Bool(true) {
            let detail = "additionalProperties and properties are mutual exclusive";
            let field = format!("{}.additionalProperties", place.at);
            found.schema.push(FieldError::forbidden(field, detail));
        }
        if additional.is_object() {
            let mut child = place.child("additionalProperties");
            if place.inside_metadata {
                let reason = "inside additionalProperties applying to object metadata";
                child.no_defaults = Some(reason.to_owned());
            }
            let compiled = context.compiled.and_then(Schema::values);
            check_keywords(additional, &mut child, rules::below(context, json, compiled), found);
        }
    }
    let is_embedded = json.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true));
    for (name, property) in properties.into_iter().flatten() {
        let mut child = place.child(&format!("properties[{name}]"));
        if text(json, "x-kubernetes-map-type") == "atomic" {
            child.uncorrelatable.get_or_insert_with(|| place.at.clone());
        }
        let is_meta = matches!(name.as_str(), "metadata" | "kind" | "apiVersion");
        if is_meta && (place.is_root || is_embedded) {
            child.inside_metadata = true;
            if place.is_root {
                child.no_defaults = Some(format!("in top-level {name}"));
            }
        }
        let compiled = context.compiled.and_then(|schema| schema.property(name));
        check_keywords(property, &mut child, Context { compiled, ..context }, found);
    }
    let nothing = Context { compiled: None, ..context };
    if let Some(not) = json.get("not").filter(|not| not.is_object()) {
        check_keywords(not, &mut place.child("not"), nothing, found);
    }
    for key in ["allOf", "oneOf", "anyOf"] {
        for (index, branch) in list(json, key).iter().enumerate() {
            check_keywords(branch, &mut place.child(&format!("{key}[{index}]")), nothing, found);
        }
    }
    if let Some(items) = json.get("items").filter(|items| items.is_object()) {
        let mut child = place.child("items");
        if text(json, "x-kubernetes-list-type") != "map" {
            child.uncorrelatable.get_or_insert_with(|| place.at.clone());
        }
        let compiled = context.compiled.and_then(Schema::item);
        check_keywords(items, &mut child, rules::below(context, json, compiled), found);
    }
}

fn check_supported(json: &Value, place: &Place, errors: &mut Vec<FieldError>) {
    const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
    let at = &place.at;
    let kind = text(json, "type");
    if !kind.is_empty() && !TYPES.contains(&kind) {
        errors.push(FieldError::not_supported(format!("{at}.type"), &kind.into(), &TYPES));
    }
    if let Some(reason) = place.no_defaults.as_ref().filter(|_| json.get("default").is_some()) {
        let detail = format!("must not be set {reason}");
        errors.push(FieldError::forbidden(format!("{at}.default"), &detail));
    }
    for key in ["id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"]
    {
        let is_set = json.get(key).is_some_and(|value| value != "" && !value.is_null());
        if is_set {
            let detail = format!("{key} is not supported");
            errors.push(FieldError::forbidden(format!("{at}.{key}"), &detail));
        }
    }
    if kind == "null" {
        let detail = "type cannot be set to null, use nullable as an alternative";
        errors.push(FieldError::forbidden(format!("{at}.type"), detail));
    }
    if json.get("items").is_some_and(Value::is_array) {
        let detail = "items must be a schema object and not an array";
        errors.push(FieldError::forbidden(format!("{at}.items"), detail));
    }
    let embedded = "x-kubernetes-embedded-resource";
    if place.inside_metadata && json.get(embedded) == Some(&Value::Bool(true)) {
        let detail = "must not be used inside of resource meta";
        errors.push(FieldError::forbidden(format!("{at}.{embedded}"), detail));
    }
    let preserve = "x-kubernetes-preserve-unknown-fields";
    if json.get(preserve) == Some(&Value::Bool(false)) {
        let detail = "must be true or undefined";
        errors.push(FieldError::invalid(format!("{at}.{preserve}"), &false.into(), detail));
    }
}

fn check_list_type(json: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let kind = text(json, "type");
    let mut need_type = |extension: &str, wanted: &str| {
        let detail = format!("must be {wanted} if {extension} is specified");
        if json.get(extension).is_some() && kind != wanted {
            let field = format!("{at}.type");
            errors.push(match kind {
                "" => FieldError::required(field, &detail),
                _ => FieldError::invalid(field, &kind.into(), &detail),
            });
        }
    };
    need_type("x-kubernetes-map-type", "object");
    need_type("x-kubernetes-list-type", "array");
    let mut supported = |extension: &str, values: &[&str]| {
        if json.get(extension).is_some() && !values.contains(&text(json, extension)) {
            let field = format!("{at}.{extension}");
            errors.push(FieldError::not_supported(field, &json[extension], values));
        }
    };
    supported("x-kubernetes-map-type", &["atomic", "granular"]);
    supported("x-kubernetes-list-type", &["atomic", "set", "map"]);
    let list_type = text(json, "x-kubernetes-list-type");
    let keys = list(json, "x-kubernetes-list-map-keys");
    let items = json.get("items").filter(|items| items.is_object());
    if list_type == "set"
        && let Some(items) = items.filter(|items| text(items, "type") == "object")
        && text(items, "x-kubernetes-map-type") != "atomic"
    {
        let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
        let field = format!("{at}.items.x-kubernetes-map-type");
        errors.push(FieldError::invalid(field, &Value::Null, detail));
    }
    if list_type == "set"
        && let Some(inner) = items.filter(|items| text(items, "type") == "array")
        && !matches!(text(inner, "x-kubernetes-list-type"), "" | "atomic")
    {
        let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
        let field = format!("{at}.items.x-kubernetes-list-type");
        errors.push(FieldError::invalid(field, &inner["x-kubernetes-list-type"], detail));
    }
    if !keys.is_empty() && list_type != "map" {
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        let field = format!("{at}.x-kubernetes-list-type");
        errors.push(match list_type {
            "" => FieldError::required(field, detail),
            other => FieldError::invalid(field, &other.into(), detail),
        });
    }
    if list_type == "map" {
        check_keys(keys, items, at, errors);
    }
    if matches!(list_type, "map" | "set")
        && items.is_some_and(|items| items.get("nullable") == Some(&Value::Bool(true)))
    {
        let detail = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
        errors.push(FieldError::forbidden(format!("{at}.items.nullable"), &detail));
    }
}

/// Go prints a list of strings in its own way.
fn wrong_keys(field: &str, keys: &[Value], detail: &str) -> FieldError {
    let quote = |key: &Value| quoted(key.as_str().unwrap_or_default());
    let keys: Vec<String> = keys.iter().map(quote).collect();
    let message = format!("Invalid value: []string{{{}}}: {detail}", keys.join(", "));
    FieldError::new(crate::FieldErrorReason::Invalid, field, message)
}

fn check_keys(keys: &[Value], items: Option<&Value>, at: &str, errors: &mut Vec<FieldError>) {
    let keys_field = format!("{at}.x-kubernetes-list-map-keys");
    if keys.is_empty() {
        let detail = "must not be empty if x-kubernetes-list-type is map";
        errors.push(FieldError::required(keys_field.clone(), detail));
    }
    let Some(items) = items else {
        let detail = "must have a schema if x-kubernetes-list-type is map";
        errors.push(FieldError::required(format!("{at}.items"), detail));
        return;
    };
    if text(items, "type") != "object" {
        let detail = "must be object if parent array's x-kubernetes-list-type is map";
        let value = Value::from(text(items, "type"));
        errors.push(FieldError::invalid(format!("{at}.items.type"), &value, detail));
        return;
    }
    for (index, key) in keys.iter().enumerate() {
        let name = key.as_str().unwrap_or_default();
        let field = format!("{at}.items.properties[{name}]");
        let Some(property) = items.get("properties").and_then(|fields| fields.get(name)) else {
            let detail = "entries must all be names of item properties";
            errors.push(wrong_keys(&keys_field, keys, detail));
            continue;
        };
        if matches!(text(property, "type"), "array" | "object") {
            let detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
            let value = Value::from(text(items, "type"));
            errors.push(FieldError::invalid(format!("{field}.type"), &value, detail));
        }
        if keys[..index].contains(key) {
            let detail = "must not contain duplicate entries";
            errors.push(wrong_keys(&keys_field, keys, detail));
        }
        if !list(items, "required").contains(key) && property.get("default").is_none() {
            let detail = "this property is in x-kubernetes-list-map-keys, so it must have a \
                          default or be a required property";
            errors.push(FieldError::required(format!("{field}.default"), detail));
        }
        if property.get("nullable") == Some(&Value::Bool(true)) {
            let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            errors.push(FieldError::forbidden(format!("{field}.nullable"), detail));
        }
    }
}

/// Defaults must be valid and must not change when pruned.
fn check_defaults(json: &Value, compiled: &Schema, at: &str, errors: &mut Vec<FieldError>) {
    if let Some(default) = json.get("default").filter(|default| !default.is_null()) {
        let field = format!("{at}.default");
        let mut pruned = default.clone();
        schema::prune(compiled, &mut pruned);
        if &pruned != default {
            let detail = "must not have unknown fields";
            errors.push(FieldError::invalid(field.clone(), default, detail));
        }
        errors.extend(schema::validate_default(compiled, default, &field));
    }
    if let (Some(items), Some(item)) = (json.get("items"), compiled.item()) {
        check_defaults(items, item, &format!("{at}.items"), errors);
    }
    for (name, property) in json.get("properties").and_then(Value::as_object).into_iter().flatten()
    {
        // Metadata has its own shape.
        if let Some(child) = compiled.property(name).filter(|child| !child.is_builtin()) {
            check_defaults(property, child, &format!("{at}.properties[{name}]"), errors);
        }
    }
}

/// The schema that a path such as `.spec.color` leads to.
pub(super) fn follow<'a>(json: &'a Value, path: &str) -> Result<&'a Value, String> {
    if path.contains('[') {
        return Err("array notation is not allowed".to_owned());
    }
    let Some(names) = path.strip_prefix('.') else {
        let first = path.split('.').next().unwrap_or_default();
        return Err(format!("expected [ or . but got: {first}"));
    };
    let mut schema = json;
    for name in names.split('.') {
        if name.is_empty() {
            return Err("unexpected end of JSON path".to_owned());
        }
        let property = schema.get("properties").and_then(|fields| fields.get(name));
        let value = schema.get("additionalProperties").filter(|value| value.is_object());
        schema = property
            .or_else(|| value.filter(|_| schema.get("properties").is_none()))
            .ok_or_else(|| "does not refer to a valid field".to_owned())?;
    }
    Ok(schema)
}
