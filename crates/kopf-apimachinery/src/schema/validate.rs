//! Validates values against structural schemas, with upstream's messages, reasons and paths.
//!
//! Checks each node in this order: type, combinations, string, format, number, list, enumeration,
//! object. On updates, errors in unchanged values are ignored (ratcheting). CEL rules, list types
//! and embedded resources are checked elsewhere.

mod combine;
mod scalar;

use serde_json::Value;

use super::equality::is_unchanged;
use super::ir::{Additional, ListType, Schema, Type};
use crate::lockstep::find;
use crate::{FieldError, FieldErrorReason};

/// Checks a value; `old` is its previous state, on updates.
///
/// Paths in messages start at the value; field paths start with `prefix`.
pub(super) fn check(
    schema: &Schema,
    value: &Value,
    old: Option<&Value>,
    prefix: &str,
) -> Vec<FieldError> {
    let mut outcome = Outcome::default();
    Node { step: Step::Start, prefix }.check(schema, value, old, &mut outcome);
    outcome.problems.into_iter().map(|problem| problem.error).collect()
}

/// A problem with the message that identifies duplicates.
#[derive(Debug, Clone)]
struct Problem {
    error: FieldError,
    text: String,
}

/// Problems, and how much matched: the best-matching branch of `oneOf` reports its errors.
#[derive(Debug, Default)]
struct Outcome {
    problems: Vec<Problem>,
    matched: usize,
}

impl Outcome {
    fn add(&mut self, error: FieldError, text: String) {
        if !self.problems.iter().any(|problem| problem.text == text) {
            self.problems.push(Problem { error, text });
        }
    }

    fn merge(&mut self, other: Self) {
        self.matched += other.matched;
        for problem in other.problems {
            self.add(problem.error, problem.text);
        }
    }
}

/// One place in the value. Its path is formatted only if there is something to report.
struct Node<'a> {
    step: Step<'a>,
    prefix: &'a str,
}

/// The step that leads to a place.
enum Step<'a> {
    Start,
    Name(&'a Node<'a>, &'a str),
    /// A property without its own schema, whose path has a dot even at the start.
    Additional(&'a Node<'a>, &'a str),
    Index(&'a Node<'a>, usize),
}

impl Node<'_> {
    fn child<'n>(&'n self, name: &'n str) -> Node<'n> {
        Node { step: Step::Name(self, name), prefix: self.prefix }
    }

    fn additional<'n>(&'n self, name: &'n str) -> Node<'n> {
        Node { step: Step::Additional(self, name), prefix: self.prefix }
    }

    fn index(&self, index: usize) -> Node<'_> {
        Node { step: Step::Index(self, index), prefix: self.prefix }
    }

    /// The path as used in messages: `spec.ports[0]`.
    fn path(&self) -> String {
        match &self.step {
            Step::Start => String::new(),
            Step::Name(parent, name) => match parent.path() {
                path if path.is_empty() => (*name).to_owned(),
                path => format!("{path}.{name}"),
            },
            Step::Additional(parent, name) => format!("{}.{name}", parent.path()),
            Step::Index(parent, index) => format!("{}[{index}]", parent.path()),
        }
    }

    /// The field path of errors at this place.
    fn field(&self) -> String {
        let path = self.path();
        match (self.prefix.is_empty(), path.is_empty()) {
            (true, true) => "<nil>".to_owned(),
            (true, false) => path,
            (false, true) => self.prefix.to_owned(),
            (false, false) => format!("{}.{}", self.prefix, path.trim_start_matches('.')),
        }
    }

    /// Reports `PATH in body DETAIL` about a value.
    fn invalid(&self, outcome: &mut Outcome, value: &Value, detail: &str) {
        let text = format!("{} in body {detail}", self.path());
        outcome.add(FieldError::invalid(self.field(), value, &text), text);
    }

    fn check(&self, schema: &Schema, value: &Value, old: Option<&Value>, outcome: &mut Outcome) {
        if old.is_some_and(|old| is_unchanged(schema, value, old)) {
            // Unchanged since it was accepted, so it is ignored even if the schema has changed.
            return;
        }
        self.check_type(schema, value, outcome);
        if value.is_null() {
            self.check_enumeration(schema, value, outcome);
            return;
        }
        self.check_combinations(schema, value, outcome);
        match value {
            Value::String(text) => {
                self.check_string(schema, text, outcome);
                self.check_format(schema, text, outcome);
            }
            Value::Number(number) => self.check_number(schema, number, outcome),
            Value::Array(items) => self.check_list(schema, items, old, outcome),
            _ => {}
        }
        self.check_enumeration(schema, value, outcome);
        if let Value::Object(_) = value {
            self.check_object(schema, value, old, outcome);
        }
        outcome.matched += 1;
    }

    fn check_type(&self, schema: &Schema, value: &Value, outcome: &mut Outcome) {
        let wanted: &[Type] = match (schema.int_or_string, &schema.kind) {
            (true, _) => &[Type::Integer, Type::String],
            (false, Some(kind)) => std::slice::from_ref(kind),
            (false, None) => &[],
        };
        let found = found_type(value);
        let fits = match found {
            "null" => schema.nullable || wanted.is_empty(),
            "number" if is_whole(value) => {
                wanted.contains(&Type::Number) || wanted.contains(&Type::Integer)
            }
            "integer" if wanted.contains(&Type::Number) => true,
            found => wanted.is_empty() || wanted.iter().any(|kind| kind.as_str() == found),
        };
        if fits {
            outcome.matched += 1;
            return;
        }
        let format = schema.format.as_deref().filter(|format| super::formats::is_supported(format));
        let names: Vec<&str> = wanted.iter().map(|kind| kind.as_str()).collect();
        let (names, found) = match (format, value) {
            // Upstream never complains about a list where a formatted string is expected.
            (Some(_), Value::Array(_)) if names == ["string"] => return,
            (Some(format), Value::Number(_)) => {
                (format.to_owned(), if found == "integer" { "int64" } else { "float64" })
            }
            (Some(format), Value::Bool(_) | Value::Object(_)) => (format.to_owned(), ""),
            _ => (names.join(","), found),
        };
        let text = format!("{} in body must be of type {names}: \"{found}\"", self.path());
        let value = Value::from(found);
        outcome.add(FieldError::type_invalid(self.field(), &value, &text), text);
    }

    fn check_list(
        &self,
        schema: &Schema,
        items: &[Value],
        old: Option<&Value>,
        outcome: &mut Outcome,
    ) {
        if let Some(item) = schema.item() {
            for (index, value) in items.iter().enumerate() {
                let before = correlated_item(schema, value, old);
                self.index(index).check(item, value, before, outcome);
            }
        }
        let count = items.len() as i64;
        if let Some(min) = schema.min_items.filter(|min| count < *min) {
            self.invalid(outcome, &count.into(), &format!("should have at least {min} items"));
        }
        if let Some(max) = schema.max_items.filter(|max| count > *max) {
            self.too_many(outcome, count, max, "items");
        }
        let repeats = |index: usize| items[..index].contains(&items[index]);
        if schema.unique_items && (1..items.len()).any(repeats) {
            self.invalid(outcome, &Value::from(""), "shouldn't contain duplicates");
        }
        outcome.matched += 1;
    }

    fn too_many(&self, outcome: &mut Outcome, count: i64, max: i64, what: &str) {
        let text = format!("{} in body should have at most {max} {what}", self.path());
        let message = format!("Too many: {count}: must have at most {max} items");
        let error = FieldError::new(FieldErrorReason::TooMany, self.field(), message);
        outcome.add(error, text);
    }

    fn check_object(
        &self,
        schema: &Schema,
        object: &Value,
        old: Option<&Value>,
        outcome: &mut Outcome,
    ) {
        let Value::Object(fields) = object else { return };
        let count = fields.len() as i64;
        if let Some(min) = schema.min_properties.filter(|min| count < *min) {
            self.invalid(outcome, &count.into(), &format!("should have at least {min} properties"));
        }
        if let Some(max) = schema.max_properties.filter(|max| count > *max) {
            self.too_many(outcome, count, max, "properties");
        }
        let old = old.and_then(Value::as_object);
        let before = |name: &str| find(old?, name);
        match &schema.additional {
            Some(Additional::Values(values)) => {
                for (name, value) in fields {
                    if schema.property(name).is_none() {
                        self.additional(name).check(values, value, before(name), outcome);
                    }
                }
            }
            Some(Additional::Allowed(false)) => {
                for name in fields.keys().filter(|name| schema.property(name).is_none()) {
                    let text = format!("{}.{name} in body is a forbidden property", self.path());
                    let value = Value::from(name.as_str());
                    outcome.add(FieldError::invalid(self.field(), &value, &text), text);
                }
            }
            _ => {}
        }
        for (name, property) in &schema.properties {
            let Some(value) = find(fields, name) else { continue };
            // Metadata has already been decoded; only the CRD's own constraints are left to check.
            let limits = if property.is_builtin() { &schema.metadata_limits } else { &None };
            match limits {
                Some(limits) => self.child(name).check(limits, value, before(name), outcome),
                None if property.is_builtin() => {}
                None => self.child(name).check(property, value, before(name), outcome),
            }
        }
        for name in schema.required.iter().filter(|name| !fields.contains_key(name.as_str())) {
            let missing = self.child(name);
            let text = format!("{} in body is required", missing.path());
            outcome.add(FieldError::required(missing.field(), ""), text);
        }
    }
}

/// The previous state of this item, if the list type can identify it.
fn correlated_item<'old>(
    schema: &Schema,
    item: &Value,
    old: Option<&'old Value>,
) -> Option<&'old Value> {
    let Some(ListType::Map { keys }) = &schema.list_type else { return None };
    let same = |other: &&Value| keys.iter().all(|key| other.get(key) == item.get(key));
    old?.as_array()?.iter().find(same)
}

fn found_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn is_whole(value: &Value) -> bool {
    // Beyond this, floats cannot distinguish neighbouring integers.
    const INTEGER_MAX: f64 = 9_007_199_254_740_991.0;
    value.as_f64().is_some_and(|number| number.fract() == 0.0 && number.abs() <= INTEGER_MAX)
}

#[cfg(test)]
mod tests;
