//! The runtime cost of functions on strings and lists, in upstream's units.
//!
//! If the cost of a call depends on the length of a string, the call gets the string through a
//! function that charges for it first. The name of that function cannot be written in source.

use kube_cel::cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue, operators};
use kube_cel::cel::extractors::This;
use kube_cel::cel::{Context, ExecutionError, Value as CelValue};

use super::budget;
use super::literals::parts_mut;

/// The function that charges for a value and returns it.
const CHARGE: &str = "@charge";

/// The price of a value.
#[derive(Clone, Copy)]
enum Rate {
    /// Reading a string once.
    Once = 1,
    /// Reading a string and creating another one.
    Twice = 2,
    /// Traversing everything in a value.
    Deeply = 3,
    /// Each item of a list.
    Items = 4,
}

pub(super) fn add_functions(context: &mut Context<'_>) {
    context.add_function(CHARGE, |value: CelValue, rate: i64| {
        budget::spend(cost(&value, rate))?;
        Ok::<CelValue, ExecutionError>(value)
    });
    context.add_function("contains", contains);
}

/// Upstream charges for both strings at once.
fn contains(This(text): This<CelValue>, part: CelValue) -> Result<bool, ExecutionError> {
    match (&text, &part) {
        (CelValue::String(text), CelValue::String(part)) => {
            let cost = traversal(text.chars().count()) * traversal(part.chars().count());
            budget::spend(cost)?;
            Ok(text.contains(part.as_str()))
        }
        _ => Err(ExecutionError::NoSuchOverload),
    }
}

fn cost(value: &CelValue, rate: i64) -> u64 {
    match rate {
        1 => traversal(size(value)),
        2 => traversal(2 * size(value)),
        3 => deep_traversal(value),
        // A lookup in a map takes one step.
        _ => {
            if let CelValue::List(items) = value {
                items.len() as u64
            } else {
                1
            }
        }
    }
}

/// A tenth of the size, rounded up.
fn traversal(size: usize) -> u64 {
    (size as u64).div_ceil(10)
}

fn size(value: &CelValue) -> usize {
    match value {
        CelValue::String(text) => text.chars().count(),
        CelValue::Bytes(bytes) => bytes.len(),
        CelValue::List(items) => items.len(),
        CelValue::Map(map) => map.map.len(),
        _ => 1,
    }
}

fn deep_traversal(value: &CelValue) -> u64 {
    match value {
        CelValue::String(text) => text.len() as u64 / 10,
        CelValue::Bytes(bytes) => bytes.len() as u64 / 10,
        CelValue::List(items) => items.iter().map(deep_traversal).sum(),
        CelValue::Map(map) => map.map.values().map(|value| 1 + deep_traversal(value)).sum(),
        _ => 1,
    }
}

/// Makes calls charge for the values that they traverse.
pub(super) fn charge_calls(expression: &mut IdedExpr) {
    for part in parts_mut(expression) {
        charge_calls(part);
    }
    let Expr::Call(call) = &mut expression.expr else { return };
    let name = call.func_name.clone();
    match (name.as_str(), call.target.as_deref_mut(), call.args.as_mut_slice()) {
        ("lowerAscii" | "upperAscii" | "substring" | "trim", Some(target), _) => {
            charge(target, Rate::Once);
        }
        ("replace" | "split", Some(target), _) => charge(target, Rate::Twice),
        ("isSorted" | "sum" | "min" | "max" | "indexOf" | "lastIndexOf", Some(target), _) => {
            charge(target, Rate::Deeply)
        }
        ("find" | "findAll", Some(target), [pattern, ..]) => {
            charge(target, Rate::Once);
            charge(pattern, Rate::Once);
        }
        ("startsWith" | "endsWith", Some(_), [part]) => charge(part, Rate::Once),
        ("url" | "quantity" | "isQuantity" | "ip" | "isIP" | "cidr" | "isCIDR", None, [text]) => {
            charge(text, Rate::Once)
        }
        (operators::IN, None, [_, container]) => charge(container, Rate::Items),
        ("join", Some(_), _) => charge(expression, Rate::Twice),
        (operators::ADD, None, [_, _]) => charge(expression, Rate::Once),
        _ => {}
    }
}

fn charge(expression: &mut IdedExpr, rate: Rate) {
    // Literals in the source cost next to nothing.
    if let Expr::Literal(_) = expression.expr {
        return;
    }
    let value = std::mem::take(expression);
    let rate = Expr::Literal(LiteralValue::Int((rate as i64).into()));
    expression.expr = Expr::Call(CallExpr {
        func_name: CHARGE.to_owned(),
        target: None,
        args: vec![value, IdedExpr { id: 0, expr: rate }],
    });
}
