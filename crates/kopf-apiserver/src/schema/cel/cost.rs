//! A rough lower bound of what a rule may cost: how often its innermost expression may run.

use std::collections::HashMap;

use kube_cel::cel::common::ast::{Expr, IdedExpr, operators};

use super::convert::escape;
use super::program::parse;
use crate::schema::ir::{Schema, Type};

/// Upstream assumes that an object is at most this large.
const REQUEST_BYTES_MAX: f64 = 3.0 * 1024.0 * 1024.0;

/// How many values of a schema fit into one object.
pub(crate) fn count_max(schema: &Schema) -> f64 {
    REQUEST_BYTES_MAX / (size_min(schema, 0) + 1.0)
}

/// How many bytes a value of a schema has at least.
fn size_min(schema: &Schema, depth: usize) -> f64 {
    match schema.kind {
        Some(Type::Object) if depth < 8 => {
            let required = schema.required.iter().filter_map(|name| {
                let property = schema.property(name)?;
                Some(name.len() as f64 + 3.0 + size_min(property, depth + 1))
            });
            2.0 + required.sum::<f64>()
        }
        Some(Type::Boolean) => 4.0,
        Some(Type::Integer | Type::Number) => 1.0,
        _ => 2.0,
    }
}

/// How often the innermost expression of a rule may run, at least.
pub(crate) fn iterations(schema: &Schema, rule: &str) -> f64 {
    let Ok(expression) = parse(rule) else { return 1.0 };
    let mut variables = HashMap::new();
    variables.insert("self".to_owned(), schema);
    walk(&expression, &variables)
}

pub(super) type Variables<'schema> = HashMap<String, &'schema Schema>;

fn walk(expression: &IdedExpr, variables: &Variables<'_>) -> f64 {
    match &expression.expr {
        Expr::Call(call) => {
            let parts = call.target.iter().map(|target| &**target).chain(&call.args);
            parts.map(|part| walk(part, variables)).fold(1.0, f64::max)
        }
        Expr::Select(select) => walk(&select.operand, variables),
        Expr::List(list) => {
            list.elements.iter().map(|item| walk(item, variables)).fold(1.0, f64::max)
        }
        Expr::Comprehension(comprehension) => {
            let range = resolve(&comprehension.iter_range, variables);
            let element = range.and_then(|range| range.item());
            let count = match (range, element, &comprehension.iter_range.expr) {
                (Some(range), Some(element), _) => {
                    range.max_items.map_or_else(|| count_max(element), |max| max as f64)
                }
                (_, _, Expr::List(list)) => list.elements.len().max(1) as f64,
                _ => 1.0,
            };
            let mut inner = variables.clone();
            inner.remove(&comprehension.iter_var);
            if let Some(element) = element {
                inner.insert(comprehension.iter_var.clone(), element);
            }
            let step = walk(&comprehension.loop_step, &inner);
            let around = walk(&comprehension.iter_range, variables)
                .max(walk(&comprehension.accu_init, variables))
                .max(walk(&comprehension.result, &inner));
            (count * step).max(around)
        }
        _ => 1.0,
    }
}

/// The schema of an expression that only selects.
pub(super) fn resolve<'schema>(
    expression: &IdedExpr,
    variables: &Variables<'schema>,
) -> Option<&'schema Schema> {
    match &expression.expr {
        Expr::Ident(name) => variables.get(name).copied(),
        Expr::Select(select) => {
            let operand = resolve(&select.operand, variables)?;
            let declared = operand.properties.iter().find(|(name, _)| escape(name) == select.field);
            declared.map(|(_, property)| &**property).or_else(|| operand.values())
        }
        Expr::Call(call) if call.func_name == operators::INDEX => {
            let container = resolve(call.args.first()?, variables)?;
            container.item().or_else(|| container.values())
        }
        _ => None,
    }
}
