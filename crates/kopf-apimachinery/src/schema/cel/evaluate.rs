//! Evaluates the logical operators of an expression with CEL's error tolerance.
//!
//! In CEL, `exists` is true if it is true for one element, even if others raise errors; `all` is
//! false likewise. The crate stops at the first error. Macros with two variables are evaluated here
//! as well. The crate evaluates everything else.

use std::sync::Arc;

use kube_cel::cel::common::ast::{ComprehensionExpr, Expr, IdedExpr, LiteralValue, operators};
use kube_cel::cel::objects::Key;
use kube_cel::cel::{Context, ExecutionError, Value as CelValue};

use super::budget;

/// How many list elements are copied at the cost of one step.
const PAIRS_PER_STEP: u64 = 8;

type Outcome = Result<CelValue, ExecutionError>;

/// The value of an expression.
pub(super) fn evaluate(expression: &IdedExpr, context: &Context<'_>) -> Outcome {
    match &expression.expr {
        Expr::Call(call) => match (call.func_name.as_str(), call.args.as_slice()) {
            (operators::LOGICAL_AND, [left, right]) => {
                settle([left, right].map(|part| evaluate(part, context)), false)
            }
            (operators::LOGICAL_OR, [left, right]) => {
                settle([left, right].map(|part| evaluate(part, context)), true)
            }
            (operators::LOGICAL_NOT, [operand]) => match evaluate(operand, context)? {
                CelValue::Bool(value) => Ok(CelValue::Bool(!value)),
                _ => Err(ExecutionError::NoSuchOverload),
            },
            (operators::CONDITIONAL, [condition, yes, no]) => match evaluate(condition, context)? {
                CelValue::Bool(true) => evaluate(yes, context),
                CelValue::Bool(false) => evaluate(no, context),
                _ => Err(ExecutionError::NoSuchOverload),
            },
            (name @ ("all" | "exists"), [first, second, predicate]) => {
                match (&call.target, &first.expr, &second.expr) {
                    (Some(range), Expr::Ident(first), Expr::Ident(second)) => {
                        let names = (first.as_str(), Some(second.as_str()));
                        quantify(range, names, predicate, name == "exists", context)
                    }
                    _ => CelValue::resolve(expression, context),
                }
            }
            _ => CelValue::resolve(expression, context),
        },
        Expr::Comprehension(comprehension) => match predicate_of(comprehension) {
            Some((predicate, decisive)) => {
                let names = (comprehension.iter_var.as_str(), None);
                quantify(&comprehension.iter_range, names, predicate, decisive, context)
            }
            None => CelValue::resolve(expression, context),
        },
        _ => CelValue::resolve(expression, context),
    }
}

/// The condition of `all` or `exists`, and the value that decides: false or true.
fn predicate_of(comprehension: &ComprehensionExpr) -> Option<(&IdedExpr, bool)> {
    let Expr::Call(step) = &comprehension.loop_step.expr else { return None };
    let [accumulator, predicate] = step.args.as_slice() else { return None };
    let is_accumulator =
        matches!(&accumulator.expr, Expr::Ident(name) if *name == comprehension.accu_var);
    let starts_with_boolean =
        matches!(comprehension.accu_init.expr, Expr::Literal(LiteralValue::Boolean(_)));
    let decisive = match step.func_name.as_str() {
        operators::LOGICAL_AND => false,
        operators::LOGICAL_OR => true,
        _ => return None,
    };
    (is_accumulator && starts_with_boolean).then_some((predicate, decisive))
}

fn quantify(
    range: &IdedExpr,
    (first, second): (&str, Option<&str>),
    predicate: &IdedExpr,
    decisive: bool,
    context: &Context<'_>,
) -> Outcome {
    // Pairs of index and item, or of key and value.
    let pairs: Vec<(CelValue, CelValue)> = match evaluate(range, context)? {
        CelValue::List(items) => items
            .iter()
            .enumerate()
            .map(|(index, item)| (CelValue::Int(index as i64), item.clone()))
            .collect(),
        CelValue::Map(map) => {
            map.map.iter().map(|(key, value)| (key_value(key), value.clone())).collect()
        }
        _ => return Err(ExecutionError::NoSuchOverload),
    };
    // Creating the pairs also has a cost, even if the first one decides.
    budget::spend(pairs.len() as u64 / PAIRS_PER_STEP)?;
    let cost = budget::steps(predicate);
    let is_map = pairs.first().is_some_and(|(key, _)| matches!(key, CelValue::String(_)));
    settle(
        pairs.into_iter().map(|(key, value)| {
            budget::spend(cost)?;
            let mut inner = context.new_inner_scope();
            match second {
                Some(second) => {
                    inner.add_variable_from_value(first, key);
                    inner.add_variable_from_value(second, value);
                }
                None => inner.add_variable_from_value(first, if is_map { key } else { value }),
            }
            evaluate(predicate, &inner)
        }),
        decisive,
    )
}

fn key_value(key: &Key) -> CelValue {
    match key {
        Key::Int(value) => CelValue::Int(*value),
        Key::Uint(value) => CelValue::UInt(*value),
        Key::Bool(value) => CelValue::Bool(*value),
        Key::String(value) => CelValue::String(Arc::clone(value)),
    }
}

/// Combines booleans: the decisive value wins over everything, errors win over the other value.
fn settle(outcomes: impl IntoIterator<Item = Outcome>, decisive: bool) -> Outcome {
    let mut error = None;
    for outcome in outcomes {
        match outcome {
            Ok(CelValue::Bool(value)) if value == decisive => return Ok(CelValue::Bool(decisive)),
            Ok(CelValue::Bool(_)) => {}
            Ok(_) => error = error.or(Some(ExecutionError::NoSuchOverload)),
            Err(problem) => error = error.or(Some(problem)),
        }
    }
    error.map_or(Ok(CelValue::Bool(!decisive)), Err)
}
