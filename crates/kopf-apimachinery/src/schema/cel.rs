//! Evaluates CEL rules (`x-kubernetes-validations`) and conditions.
//!
//! Wraps `kube-cel` and the `cel` crate; only the modules below use them. Rules that they cannot
//! evaluate lead to a warning, never to an error. Rules are parsed once per schema node and cached
//! there.

mod access;
mod align;
mod budget;
mod charges;
mod check;
mod condition;
mod convert;
mod cost;
mod evaluate;
mod literals;
mod nesting;
mod program;

use std::sync::Arc;

use kube_cel::cel::{ExecutionError, Value as CelValue};
use serde_json::Value;

use super::equality::is_unchanged;
use super::ir::{ListType, Rule, Schema};
use crate::{FieldError, FieldErrorReason};
use budget::Spent;

pub use access::Access;
pub use budget::{quickly, start as start_budget};
pub use check::{Wanted, compile_problem, compile_problem_of, condition_problem, policy_warning};
pub use condition::{Admitted, Environment};
pub use cost::{count_max, estimate as estimate_cost};
pub(crate) use program::Programs;

/// Longer messages from `messageExpression` are ignored, as upstream does.
const MESSAGE_LENGTH_MAX: usize = 5 * 1024;

/// The results of rules.
pub(super) struct Findings<'a> {
    pub(super) errors: &'a mut Vec<FieldError>,
    pub(super) warnings: &'a mut Vec<String>,
}

/// Evaluates all rules of a schema against an object and its previous state.
pub(super) fn check(
    schema: &Schema,
    object: &Value,
    old: Option<&Value>,
    findings: &mut Findings<'_>,
) {
    if schema.has_rules {
        budget::start();
        let place = Place {
            path: String::new(),
            old,
            unchanged: old.is_some_and(|old| is_unchanged(schema, object, old)),
        };
        node(schema, object, &place, findings);
    }
}

/// Evaluates the rules of a value at a path, such as a default.
pub(super) fn check_below(schema: &Schema, value: &Value, path: &str, findings: &mut Findings<'_>) {
    if schema.has_rules {
        budget::start();
        let place = Place { path: path.to_owned(), old: None, unchanged: false };
        node(schema, value, &place, findings);
    }
}

/// The position of a value and its previous state.
struct Place<'a> {
    path: String,
    old: Option<&'a Value>,
    /// Whether the value, or its nearest comparable ancestor, is unchanged.
    unchanged: bool,
}

impl<'a> Place<'a> {
    fn field(&self) -> String {
        if self.path.is_empty() { "<nil>".to_owned() } else { self.path.clone() }
    }

    fn property(&self, name: &str, schema: &Schema, value: &Value) -> Self {
        let path =
            if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) };
        self.at(path, self.old.and_then(|old| old.get(name)), schema, value)
    }

    fn entry(&self, key: &str, schema: &Schema, value: &Value) -> Self {
        let path = format!("{}[{key}]", self.path);
        self.at(path, self.old.and_then(|old| old.get(key)), schema, value)
    }

    fn item(&self, index: usize, list: &Schema, schema: &Schema, value: &Value) -> Self {
        let path = format!("{}[{index}]", self.path);
        let Some(ListType::Map { keys }) = &list.list_type else {
            // Items without identity cannot be compared; compare the list as a whole.
            return Self { path, old: None, unchanged: self.unchanged };
        };
        let same = |other: &&'a Value| keys.iter().all(|key| other.get(key) == value.get(key));
        let old = self.old.and_then(Value::as_array).and_then(|items| items.iter().find(same));
        self.at(path, old, schema, value)
    }

    fn at(&self, path: String, old: Option<&'a Value>, schema: &Schema, value: &Value) -> Self {
        let unchanged = old.is_some_and(|old| is_unchanged(schema, value, old));
        Self { path, old, unchanged }
    }
}

fn node(schema: &Schema, value: &Value, place: &Place<'_>, findings: &mut Findings<'_>) {
    if !schema.has_rules || value.is_null() {
        return;
    }
    if !schema.validations.is_empty() {
        evaluate(schema, schema, value, place, findings);
    }
    for branch in schema.all_of.iter().filter(|branch| !branch.validations.is_empty()) {
        evaluate(branch, schema, value, place, findings);
    }
    // Look at old values only where there are rules, since comparing is expensive.
    match value {
        Value::Array(items) => {
            let Some(item) = schema.item().filter(|item| item.has_rules) else { return };
            for (index, value) in items.iter().enumerate() {
                node(item, value, &place.item(index, schema, item, value), findings);
            }
        }
        Value::Object(fields) => {
            for (name, property) in schema.properties.iter().filter(|(_, child)| child.has_rules) {
                if let Some(value) = fields.get(name) {
                    node(property, value, &place.property(name, property, value), findings);
                }
            }
            let Some(values) = schema.values().filter(|values| values.has_rules) else { return };
            for (key, value) in fields {
                node(values, value, &place.entry(key, values, value), findings);
            }
        }
        _ => {}
    }
}

/// Evaluates the rules of one node; `rules` differs from `schema` for branches of `allOf`.
fn evaluate(
    rules: &Schema,
    schema: &Schema,
    value: &Value,
    place: &Place<'_>,
    findings: &mut Findings<'_>,
) {
    let programs =
        rules.programs.get_or_init(|| Arc::new(Programs::parse(schema, &rules.validations)));
    let old = place.old.filter(|old| !old.is_null());
    let converted = convert::Converted::new(schema, value, place.path.is_empty());
    let converted_old = old.filter(|_| programs.use_old_self()).map(|old| {
        let old = align::aligned(schema, value, old);
        convert::Converted::new(schema, &old, place.path.is_empty())
    });
    for (rule, program) in rules.validations.iter().zip(programs.iter()) {
        if budget::is_over() {
            return;
        }
        let Some(program) = program else {
            findings.warnings.push(not_evaluated(rule, place, "its syntax is not supported"));
            continue;
        };
        if program.uses_old_self && old.is_none() && !rule.optional_old_self {
            continue;
        }
        let kind = schema.kind.map_or("", |kind| kind.as_str());
        if let Some(problem) = converted.problem_for(&rule.rule) {
            let text = format!("{problem} evaluating rule: {}", label(rule));
            findings.errors.push(FieldError::invalid(place.field(), &kind.into(), &text));
            continue;
        }
        let old_self = program::old_self(converted_old.as_ref(), rule.optional_old_self);
        program.with_context(&converted.value, old_self, |outcome, message, spent| {
            if let Some(text) = too_expensive(spent, rule) {
                findings.errors.push(FieldError::invalid(place.field(), &kind.into(), &text));
                return;
            }
            let traits = (program.uses_old_self, has_open_types(schema));
            report(outcome, message, rule, traits, kind, place, findings);
        });
    }
}

/// Upstream's message for rules that exceed their cost limit; `None` if they do not.
fn too_expensive(spent: Spent, rule: &Rule) -> Option<String> {
    match spent {
        Spent::Within(_) => None,
        Spent::Expression => Some(format!(
            "'operation cancelled: actual cost limit exceeded': no further validation rules will \
             be run due to call cost exceeds limit for rule: {}",
            label(rule)
        )),
        Spent::Object => Some(
            "validation failed due to running out of cost budget, no further validation rules \
             will be run"
                .to_owned(),
        ),
    }
}

fn report(
    outcome: Result<CelValue, ExecutionError>,
    message: Option<String>,
    rule: &Rule,
    (uses_old_self, schema_is_open): (bool, bool),
    kind: &str,
    place: &Place<'_>,
    findings: &mut Findings<'_>,
) {
    match outcome {
        Ok(CelValue::Bool(true)) => {}
        Ok(CelValue::Bool(false)) => {
            let error = failure(rule, message, kind, place);
            if !uses_old_self && place.unchanged {
                findings.warnings.push(error.full_message());
            } else {
                findings.errors.push(error);
            }
        }
        Ok(_) => findings.warnings.push(not_evaluated(rule, place, "it yielded no boolean")),
        // Compiled rules meet wrong types only where the schema does not fix the type.
        Err(ExecutionError::NoSuchOverload) if schema_is_open => {
            let text = format!(
                "'no such overload': call arguments did not match a supported operator, function \
                 or macro signature for rule: {}",
                label(rule)
            );
            findings.errors.push(FieldError::invalid(place.field(), &kind.into(), &text));
        }
        Err(error) => match explain(&error) {
            Some(text) => {
                let text = format!("{text} evaluating rule: {}", label(rule));
                findings.errors.push(FieldError::invalid(place.field(), &kind.into(), &text));
            }
            None => findings.warnings.push(not_evaluated(rule, place, &error.to_string())),
        },
    }
}

/// The message of upstream's evaluator; `None` if the error may be a gap in ours.
fn explain(error: &ExecutionError) -> Option<String> {
    Some(match error {
        ExecutionError::NoSuchKey(key) => format!("no such key: {key}"),
        ExecutionError::DivisionByZero(_) => "division by zero".to_owned(),
        ExecutionError::RemainderByZero(_) => "modulus by zero".to_owned(),
        ExecutionError::Overflow(..) => "integer overflow".to_owned(),
        ExecutionError::IndexOutOfBounds(CelValue::Int(index)) => {
            format!("index out of bounds: {index}")
        }
        ExecutionError::FunctionError { function, message } => function_words(function, message),
        _ => return None,
    })
}

/// Upstream's messages for failures of functions, where known.
fn function_words(function: &str, message: &str) -> String {
    match function {
        "int" | "uint" | "double" => {
            format!("type conversion error from 'string' to '{function}'")
        }
        "duration" => {
            "type conversion error from 'string' to 'google.protobuf.Duration'".to_owned()
        }
        "timestamp" => {
            "type conversion error from 'string' to 'google.protobuf.Timestamp'".to_owned()
        }
        "max" | "min" => format!("{function} called on empty list"),
        "quantity" => "quantities must match the regular expression \
                       '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
            .to_owned(),
        _ => message.to_owned(),
    }
}

/// Whether values of the schema may have one of several types.
fn has_open_types(schema: &Schema) -> bool {
    let below = schema.properties.values().chain(&schema.items);
    schema.int_or_string || below.into_iter().any(|link| !link.is_builtin() && has_open_types(link))
}

fn failure(rule: &Rule, message: Option<String>, kind: &str, place: &Place<'_>) -> FieldError {
    let detail = message.unwrap_or_else(|| match &rule.message {
        Some(message) => message.trim().to_owned(),
        None => format!("failed rule: {}", rule.rule.trim()),
    });
    let field = match &rule.field_path {
        Some(path) if place.path.is_empty() => path.trim_start_matches('.').to_owned(),
        Some(path) => format!("{}.{}", place.path, path.trim_start_matches('.')),
        None => place.field(),
    };
    let kind = Value::from(kind);
    match rule.reason.as_deref() {
        Some("FieldValueForbidden") => FieldError::forbidden(field, &detail),
        Some("FieldValueRequired") => FieldError::required(field, &detail),
        Some("FieldValueDuplicate") => FieldError::duplicate(field, &kind),
        _ => FieldError::invalid(field, &kind, &detail),
    }
}

fn label(rule: &Rule) -> &str {
    rule.message.as_deref().unwrap_or(&rule.rule).trim()
}

fn not_evaluated(rule: &Rule, place: &Place<'_>, reason: &str) -> String {
    format!("{}: rule not evaluated by this server ({reason}): {}", place.field(), rule.rule.trim())
}

/// Whether a rule uses `oldSelf`; false if it cannot be parsed.
pub fn uses_old_self(rule: &str) -> bool {
    program::parse(rule).is_ok_and(|expression| expression.references().has_variable("oldSelf"))
}

/// Whether this error prevents the validation of CEL rules, according to upstream's list.
pub(super) fn is_blocking(error: &FieldError) -> bool {
    use FieldErrorReason::{NotSupported, Required, TooLong, TooMany, TypeInvalid};
    matches!(error.reason, Required | NotSupported | TooLong | TooMany | TypeInvalid)
}

#[cfg(test)]
mod recorded_tests;
#[cfg(test)]
mod tests;
