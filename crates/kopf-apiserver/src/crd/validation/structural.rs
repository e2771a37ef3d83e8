//! The rules that make a schema structural.
//!
//! Every field that a schema mentions must be specified outside of `anyOf`, `allOf`, `oneOf` and
//! `not`; the content of those may only restrict it.

use serde_json::Value;

use super::{list, text};
use crate::FieldError;
use crate::schema::patterns::{self, Problem};

#[derive(Clone, Copy, PartialEq)]
enum Level {
    Root,
    Item,
    Field,
}

/// Reports everything that keeps the schema from being structural, in upstream's order.
pub(super) fn check(schema: &Value, at: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    check_node(schema, Level::Root, at, &mut errors);
    check_completeness(schema, schema, at, at, &mut errors);
    errors.sort_by_key(FieldError::full_message);
    errors
}

/// Whether a schema has only keywords that structural schemas know.
pub(super) fn is_convertible(schema: &Value) -> bool {
    const UNSUPPORTED: [&str; 7] = [
        "id",
        "$schema",
        "$ref",
        "patternProperties",
        "dependencies",
        "additionalItems",
        "definitions",
    ];
    let is_set = |value: &Value| match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        _ => true,
    };
    let is_odd = UNSUPPORTED.iter().any(|key| schema.get(key).is_some_and(is_set))
        || schema.get("items").is_some_and(Value::is_array)
        || schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false));
    let branches = ["allOf", "anyOf", "oneOf"].into_iter().flat_map(|key| list(schema, key));
    let below =
        ["items", "additionalProperties", "not"].into_iter().filter_map(|key| schema.get(key));
    let mut inner = branches
        .chain(below.filter(|schema| schema.is_object()))
        .chain(properties(schema).map(|(_, property)| property));
    !is_odd && inner.all(is_convertible)
}

fn flag(schema: &Value, key: &str) -> bool {
    schema.get(key) == Some(&Value::Bool(true))
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema.get("properties").and_then(Value::as_object).into_iter().flatten()
}

fn check_node(schema: &Value, level: Level, at: &str, errors: &mut Vec<FieldError>) {
    let kind = text(schema, "type");
    let items = schema.get("items").filter(|items| items.is_object());
    if kind == "array" && schema.get("items").is_none() {
        errors.push(FieldError::required(format!("{at}.items"), "must be specified"));
    }
    if let Some(items) = items {
        check_node(items, Level::Item, &format!("{at}.items"), errors);
    }
    for (name, property) in properties(schema) {
        check_node(property, Level::Field, &format!("{at}.properties[{name}]"), errors);
    }
    let additional_field = format!("{at}.additionalProperties");
    if let Some(additional) = schema.get("additionalProperties") {
        if level == Level::Root {
            let detail = "must not be used at the root";
            errors.push(FieldError::forbidden(additional_field.clone(), detail));
        }
        if additional.is_object() {
            check_node(additional, Level::Field, &additional_field, errors);
        }
        if flag(schema, "x-kubernetes-embedded-resource") {
            let detail = "must not be used if x-kubernetes-embedded-resource is set";
            errors.push(FieldError::forbidden(additional_field, detail));
        }
    }
    check_extensions(schema, at, errors);
    check_restrictions(schema, int_or_string_exceptions(schema), level, at, errors);
    check_type(schema, level, at, errors);
    check_object_fields(schema, level, at, errors);
}

fn check_extensions(schema: &Value, at: &str, errors: &mut Vec<FieldError>) {
    if !flag(schema, "x-kubernetes-int-or-string") {
        return;
    }
    for key in ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"] {
        if flag(schema, key) {
            let detail = "must be false if x-kubernetes-int-or-string is true";
            errors.push(FieldError::invalid(format!("{at}.{key}"), &true.into(), detail));
        }
    }
}

fn check_type(schema: &Value, level: Level, at: &str, errors: &mut Vec<FieldError>) {
    let kind = text(schema, "type");
    let field = format!("{at}.type");
    let is_free = flag(schema, "x-kubernetes-int-or-string")
        || flag(schema, "x-kubernetes-preserve-unknown-fields");
    if flag(schema, "x-kubernetes-embedded-resource") && kind != "object" {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(match kind {
            "" => FieldError::required(field.clone(), detail),
            _ => FieldError::invalid(field.clone(), &kind.into(), detail),
        });
    } else if kind.is_empty() && !is_free {
        let detail = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        errors.push(FieldError::required(field.clone(), detail));
    }
    if level == Level::Root && !kind.is_empty() && kind != "object" {
        errors.push(FieldError::invalid(field, &kind.into(), "must be object at the root"));
    }
}

fn check_object_fields(schema: &Value, level: Level, at: &str, errors: &mut Vec<FieldError>) {
    let embedded = flag(schema, "x-kubernetes-embedded-resource");
    let is_object = level == Level::Root || embedded;
    let property = |name: &str| schema.get("properties").and_then(|fields| fields.get(name));
    for name in ["kind", "apiVersion"] {
        if let Some(declared) = property(name).filter(|_| is_object)
            && text(declared, "type") != "string"
        {
            let field = format!("{at}.properties[{name}].type");
            let value = Value::from(text(declared, "type"));
            errors.push(FieldError::invalid(field, &value, "must be string"));
        }
    }
    if let Some(metadata) = property("metadata") {
        let field = format!("{at}.properties[metadata]");
        if is_object && text(metadata, "type") != "object" {
            let value = Value::from(text(metadata, "type"));
            errors.push(FieldError::invalid(format!("{field}.type"), &value, "must be object"));
        }
        let speaks_of_more = |name: &String| !matches!(name.as_str(), "name" | "generateName");
        let other = metadata.as_object().is_some_and(|fields| {
            fields.keys().any(|key| !matches!(key.as_str(), "type" | "properties" | "default"))
        });
        if level == Level::Root
            && (other || properties(metadata).any(|(name, _)| speaks_of_more(name)))
        {
            let detail = "must not specify anything other than name and generateName, but \
                          metadata is implicitly specified";
            errors.push(FieldError::forbidden(field, detail));
        }
    }
    let preserves = flag(schema, "x-kubernetes-preserve-unknown-fields");
    if embedded && !preserves && properties(schema).next().is_none() {
        let detail = "must not be empty if x-kubernetes-embedded-resource is true without \
                      x-kubernetes-preserve-unknown-fields";
        errors.push(FieldError::required(format!("{at}.properties"), detail));
    }
}

/// Where `anyOf: [{type: integer}, {type: string}]` is allowed: directly, or in the first `allOf`.
#[derive(Clone, Copy, Default)]
struct Exceptions {
    any_of: bool,
    first_all_of: bool,
}

fn int_or_string_exceptions(schema: &Value) -> Exceptions {
    let pattern = serde_json::json!([{"type": "integer"}, {"type": "string"}]);
    let first = list(schema, "allOf").first();
    Exceptions {
        any_of: schema.get("anyOf") == Some(&pattern),
        first_all_of: first.and_then(|first| first.get("anyOf")) == Some(&pattern),
    }
}

/// The parts of a schema that restrict values.
fn check_restrictions(
    schema: &Value,
    exceptions: Exceptions,
    level: Level,
    at: &str,
    errors: &mut Vec<FieldError>,
) {
    for key in ["anyOf", "allOf", "oneOf"] {
        if key == "anyOf" && exceptions.any_of {
            continue;
        }
        for (index, branch) in list(schema, key).iter().enumerate() {
            let is_exception = key == "allOf" && index == 0 && exceptions.first_all_of;
            let inner = Exceptions { any_of: is_exception, first_all_of: false };
            check_nested(branch, inner, level, &format!("{at}.{key}[{index}]"), errors);
        }
    }
    if let Some(not) = schema.get("not").filter(|not| not.is_object()) {
        check_nested(not, Exceptions::default(), level, &format!("{at}.not"), errors);
    }
    let pattern = text(schema, "pattern");
    if let Some(problem) = pattern_problem(pattern) {
        let detail = format!("must be a valid regular expression, but isn't: {problem}");
        errors.push(FieldError::invalid(format!("{at}.pattern"), &pattern.into(), &detail));
    }
}

fn pattern_problem(pattern: &str) -> Option<String> {
    if let Some(count) = too_many_repeats(pattern) {
        return Some(format!("error parsing regexp: invalid repeat count: `{count}`"));
    }
    match patterns::judge(pattern) {
        Ok(_) => return None,
        Err(Problem::Repeat(count)) => {
            return Some(format!("error parsing regexp: invalid repeat count: `{count}`"));
        }
        Err(Problem::TooLarge) => {
            return Some(format!("error parsing regexp: expression too large: `{pattern}`"));
        }
        Err(Problem::Invalid) => {}
    }
    let unsupported =
        ["(?=", "(?!", "(?<=", "(?<!"].into_iter().find(|part| pattern.contains(part));
    Some(match unsupported {
        Some(part) => {
            format!("error parsing regexp: invalid or unsupported Perl syntax: `{part}`")
        }
        None if unbalanced(pattern, '[', ']') => {
            let start = pattern.rfind('[').unwrap_or_default();
            format!("error parsing regexp: missing closing ]: `{}`", &pattern[start..])
        }
        None if unbalanced(pattern, '(', ')') => {
            format!("error parsing regexp: missing closing ): `{pattern}`")
        }
        None => format!("error parsing regexp: invalid regular expression: `{pattern}`"),
    })
}

fn unbalanced(pattern: &str, open: char, close: char) -> bool {
    pattern.matches(open).count() > pattern.matches(close).count()
}

/// Go does not allow more than a thousand repetitions.
fn too_many_repeats(pattern: &str) -> Option<&str> {
    let counts = pattern.match_indices('{').filter_map(|(start, _)| {
        let end = start + pattern[start..].find('}')?;
        Some(&pattern[start..=end])
    });
    let is_large = |count: &&str| {
        let inner = count.trim_matches(['{', '}']);
        inner.split(',').any(|number| number.parse::<u64>().is_ok_and(|number| number > 1000))
    };
    counts.into_iter().find(is_large)
}

fn check_nested(
    schema: &Value,
    exceptions: Exceptions,
    level: Level,
    at: &str,
    errors: &mut Vec<FieldError>,
) {
    check_restrictions(schema, exceptions, level, at, errors);
    if let Some(items) = schema.get("items").filter(|items| items.is_object()) {
        check_nested(items, Exceptions::default(), level, &format!("{at}.items"), errors);
    }
    for (name, property) in properties(schema) {
        let at = format!("{at}.properties[{name}]");
        check_nested(property, Exceptions::default(), Level::Field, &at, errors);
    }
    let mut forbid = |key: &str, is_present: bool, detail: &str| {
        if is_present {
            let detail = format!("must be {detail} to be structural");
            errors.push(FieldError::forbidden(format!("{at}.{key}"), &detail));
        }
    };
    forbid("type", !text(schema, "type").is_empty(), "empty");
    forbid("additionalProperties", schema.get("additionalProperties").is_some(), "undefined");
    forbid("default", schema.get("default").is_some(), "undefined");
    forbid("title", !text(schema, "title").is_empty(), "empty");
    forbid("description", !text(schema, "description").is_empty(), "empty");
    forbid("nullable", flag(schema, "nullable"), "false");
    for key in [
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string",
    ] {
        forbid(key, flag(schema, key), "false");
    }
    let keys = "x-kubernetes-list-map-keys";
    forbid(keys, !list(schema, keys).is_empty(), "empty");
    for key in ["x-kubernetes-list-type", "x-kubernetes-map-type"] {
        forbid(key, schema.get(key).is_some(), "undefined");
    }
    let rules = "x-kubernetes-validations";
    forbid(rules, !list(schema, rules).is_empty(), "empty");
    if properties(schema).any(|(name, _)| name == "metadata") {
        let detail = "must not be specified in a nested context";
        errors.push(FieldError::forbidden(format!("{at}.properties[metadata]"), detail));
    }
}

/// Checks that the schema itself specifies everything that branches mention.
fn check_completeness(
    branch: &Value,
    schema: &Value,
    schema_at: &str,
    branch_at: &str,
    errors: &mut Vec<FieldError>,
) {
    let mut branches = Vec::new();
    if let Some(not) = branch.get("not").filter(|not| not.is_object()) {
        branches.push((not, format!("{branch_at}.not")));
    }
    for key in ["allOf", "anyOf", "oneOf"] {
        for (index, nested) in list(branch, key).iter().enumerate() {
            branches.push((nested, format!("{branch_at}.{key}[{index}]")));
        }
    }
    for (nested, nested_at) in branches {
        check_completeness(nested, schema, schema_at, &nested_at, errors);
        let mut compare = |part: &Value, declared: Option<&Value>, suffix: &str| {
            let (schema_at, part_at) =
                (format!("{schema_at}.{suffix}"), format!("{nested_at}.{suffix}"));
            match declared.filter(|declared| declared.is_object()) {
                Some(declared) => {
                    let wrapped = serde_json::json!({"allOf": [part]});
                    check_branch(&wrapped, declared, &schema_at, &part_at, errors);
                }
                None => {
                    let detail = format!("because it is defined in {part_at}");
                    errors.push(FieldError::required(schema_at, &detail));
                }
            }
        };
        if let Some(items) = nested.get("items").filter(|items| items.is_object()) {
            compare(items, schema.get("items"), "items");
        }
        for (name, property) in properties(nested) {
            let declared = schema.get("properties").and_then(|fields| fields.get(name));
            compare(property, declared, &format!("properties[{name}]"));
        }
    }
}

/// Compares a part of a branch with the part of the schema that it restricts.
fn check_branch(
    wrapped: &Value,
    schema: &Value,
    schema_at: &str,
    part_at: &str,
    errors: &mut Vec<FieldError>,
) {
    let before = errors.len();
    check_completeness(wrapped, schema, schema_at, part_at, errors);
    // We added the wrapper, so remove it from the paths.
    for error in &mut errors[before..] {
        error.message = error.message.replace(&format!("{part_at}.allOf[0]"), part_at);
    }
}
