//! Rules for `x-kubernetes-validations`.

use serde_json::Value;

use super::super::{list, text};
use super::{Context, Found, Place, follow};
use crate::FieldError;
use crate::go_print::quoted;
use crate::schema::Schema;
use crate::schema::cel::{self, Wanted};

/// The maximum cost of one rule, and of all rules of a schema, in upstream's units.
const RULE_COST_MAX: f64 = 1e7;
const SCHEMA_COST_MAX: f64 = 1e8;

/// How many of the most expensive rules are named if their total cost is too high.
const NAMED_RULES_MAX: usize = 4;

const REASONS: [&str; 4] =
    ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/// Checks everything that does not depend on the expressions.
pub(super) fn check_shape(json: &Value, at: &str, errors: &mut Vec<FieldError>) {
    for (index, rule) in list(json, "x-kubernetes-validations").iter().enumerate() {
        let at = format!("{at}.x-kubernetes-validations[{index}]");
        let (expression, message) = (text(rule, "rule").trim(), text(rule, "message"));
        let message_field = format!("{at}.message");
        if expression.is_empty() {
            errors.push(FieldError::required(format!("{at}.rule"), "rule is not specified"));
        } else if !message.is_empty() && message.trim().is_empty() {
            let detail = "message must be non-empty if specified";
            errors.push(FieldError::invalid(message_field, &message.into(), detail));
        } else if message.trim().contains(['\n', '\r']) {
            let detail = "message must not contain line breaks";
            errors.push(FieldError::invalid(message_field, &message.into(), detail));
        } else if expression.contains(['\n', '\r']) && message.is_empty() {
            let detail = "message must be specified if rule contains line breaks";
            errors.push(FieldError::required(message_field, detail));
        }
        let reason = text(rule, "reason");
        if !reason.is_empty() && !REASONS.contains(&reason) {
            let field = format!("{at}.reason");
            errors.push(FieldError::not_supported(field, &reason.into(), &REASONS));
        }
        let message_expression = text(rule, "messageExpression");
        if !message_expression.is_empty() && message_expression.trim().is_empty() {
            let detail = "messageExpression must be non-empty if specified";
            errors.push(FieldError::required(format!("{at}.messageExpression"), detail));
        }
        let path = text(rule, "fieldPath");
        if !path.is_empty() && path.trim().is_empty() {
            let detail = "fieldPath must be non-empty if specified";
            errors.push(FieldError::invalid(format!("{at}.fieldPath"), &path.into(), detail));
        }
        // Paths with brackets are not checked here.
        if !path.is_empty() && !path.contains('[') && follow(json, path).is_err() {
            let detail = "fieldPath must be a valid path";
            errors.push(FieldError::invalid(format!("{at}.fieldPath"), &path.into(), detail));
        }
    }
}

/// Compiles the rules of one node.
pub(super) fn check(
    json: &Value,
    compiled: &Schema,
    cardinality: Option<f64>,
    place: &Place,
    found: &mut Found,
) {
    // Without a limit in any ancestor, as many as fit into an object.
    let cardinality = cardinality.unwrap_or_else(|| cel::count_max(compiled));
    for (index, rule) in list(json, "x-kubernetes-validations").iter().enumerate() {
        let at = format!("{}.x-kubernetes-validations[{index}]", place.at);
        let expression = text(rule, "rule");
        let cost = cel::estimate_cost(compiled, expression) * cardinality;
        found.costs.push((format!("{at}.rule"), cost));
        if cost > RULE_COST_MAX {
            let detail = too_expensive("estimated rule cost", cost / RULE_COST_MAX);
            found.rules.push(FieldError::forbidden(format!("{at}.rule"), &detail));
        }
        let is_optional = rule["optionalOldSelf"] == true;
        let problem = cel::compile_problem_of(compiled, expression, is_optional, Wanted::Boolean);
        let is_sound = problem.is_none();
        if let Some(problem) = problem {
            let detail = match problem.starts_with("ERROR") {
                true => format!("compilation failed: {problem}"),
                false => format!("cel expression {problem}"),
            };
            found.rules.push(invalid_rule(format!("{at}.rule"), rule, &detail));
        }
        let message = text(rule, "messageExpression");
        let message_cost = cel::estimate_cost(compiled, message) * cardinality;
        if !message.trim().is_empty() {
            found.costs.push((format!("{at}.messageExpression"), message_cost));
        }
        if message_cost > RULE_COST_MAX {
            let factor = message_cost / RULE_COST_MAX;
            let detail = too_expensive("estimated messageExpression cost", factor);
            found.rules.push(FieldError::forbidden(format!("{at}.messageExpression"), &detail));
        }
        if !message.trim().is_empty()
            && let Some(problem) =
                cel::compile_problem_of(compiled, message, is_optional, Wanted::Text)
        {
            let detail = match problem.starts_with("ERROR") {
                true => format!("messageExpression compilation failed: {problem}"),
                false => format!("messageExpression {problem}"),
            };
            found.rules.push(invalid_rule(format!("{at}.messageExpression"), rule, &detail));
        }
        if is_sound && cel::uses_old_self(expression) {
            if let Some(ancestor) = &place.uncorrelatable {
                let detail = format!(
                    "oldSelf cannot be used on the uncorrelatable portion of the schema within \
                     {ancestor}"
                );
                let field = format!("{at}.rule");
                found.rules.push(FieldError::invalid(field, &expression.into(), &detail));
            }
        } else if let Some(optional) = rule.get("optionalOldSelf") {
            let detail = "may not be set if oldSelf is not used in rule";
            let field = format!("{at}.optionalOldSelf");
            found.rules.push(FieldError::invalid(field, optional, detail));
        }
    }
}

/// Checks the sum of all rules of a schema.
pub(super) fn check_total(costs: &[(String, f64)], at: &str, errors: &mut Vec<FieldError>) {
    let total: f64 = costs.iter().map(|(_, cost)| cost).sum();
    if total <= SCHEMA_COST_MAX {
        return;
    }
    let mut most: Vec<&(String, f64)> =
        costs.iter().filter(|(_, cost)| *cost >= SCHEMA_COST_MAX / 100.0).collect();
    most.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    for (field, _) in most.into_iter().take(NAMED_RULES_MAX) {
        let detail = "contributed to estimated rule cost total exceeding cost limit for entire \
                      OpenAPIv3 schema";
        errors.push(FieldError::forbidden(field.clone(), detail));
    }
    let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
    errors.push(FieldError::forbidden(at, &too_expensive(what, total / SCHEMA_COST_MAX)));
}

/// Upstream's message about an estimate that exceeds the limit by this factor.
fn too_expensive(what: &str, factor: f64) -> String {
    let factor = match factor {
        factor if factor > 100.0 => "more than 100x".to_owned(),
        factor if factor < 1.5 => format!("{factor:.6}x"),
        factor => format!("{factor:.1}x"),
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding \
         maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
    )
}

/// The context below a list or a map, where there may be many values.
pub(super) fn below<'a>(
    context: Context<'a>,
    json: &Value,
    compiled: Option<&'a Schema>,
) -> Context<'a> {
    let limit = json.get("maxItems").or_else(|| json.get("maxProperties")).and_then(Value::as_f64);
    let cardinality = context.cardinality.zip(limit).map(|(around, limit)| around * limit.max(0.0));
    Context { compiled, cardinality }
}

/// Upstream prints the whole rule as Go prints a struct.
fn invalid_rule(field: String, rule: &Value, detail: &str) -> FieldError {
    let pointer = |key: &str, kind: &str| match rule.get(key) {
        None => format!("(*{kind})(nil)"),
        Some(_) => format!("(*{kind})(0xc000000000)"),
    };
    let shown = format!(
        "apiextensions.ValidationRule{{Rule:{}, Message:{}, MessageExpression:{}, Reason:{}, \
         FieldPath:{}, OptionalOldSelf:{}}}",
        quoted(text(rule, "rule")),
        quoted(text(rule, "message")),
        quoted(text(rule, "messageExpression")),
        pointer("reason", "apiextensions.FieldValueErrorReason"),
        quoted(text(rule, "fieldPath")),
        pointer("optionalOldSelf", "bool"),
    );
    let message = format!("Invalid value: {shown}: {detail}");
    FieldError::new(crate::FieldErrorReason::Invalid, field, message)
}
