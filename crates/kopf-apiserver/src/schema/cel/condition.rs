//! Conditions of admission webhooks (`matchConditions`).

use std::sync::Arc;

use kube_cel::cel::common::ast::IdedExpr;
use kube_cel::cel::{Context, Value as CelValue};
use serde_json::Value;

use super::budget::{self, Spent};
use super::convert::untyped;
use super::evaluate::evaluate;
use super::nesting;
use super::program::{parse, with_functions};

/// A parsed condition over `object`, `oldObject` and `request`.
#[derive(Debug, Clone)]
pub(crate) struct Condition {
    expression: Arc<IdedExpr>,
    depth: usize,
}

/// What a condition can see; absent objects are null.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Variables<'a> {
    pub(crate) object: &'a Value,
    pub(crate) old_object: &'a Value,
    /// The `request` of the admission review.
    pub(crate) request: &'a Value,
}

impl Condition {
    /// Parses a condition; the error is the parser's text.
    pub(crate) fn parse(expression: &str) -> Result<Self, String> {
        let depth = nesting::depth(expression);
        let expression = parse(expression).map_err(|errors| errors.to_string())?;
        Ok(Self { expression: Arc::new(expression), depth })
    }

    /// Evaluates the condition; the error says why there is no answer.
    pub(crate) fn holds(&self, variables: Variables<'_>) -> Result<bool, String> {
        let run = |functions: &Context<'_>| {
            let mut context = functions.new_inner_scope();
            context.add_variable_from_value("object", untyped(variables.object));
            context.add_variable_from_value("oldObject", untyped(variables.old_object));
            context.add_variable_from_value("request", untyped(variables.request));
            match evaluate(&self.expression, &context) {
                Ok(CelValue::Bool(answer)) => Ok(answer),
                Ok(_) => Err("the condition yields no boolean".to_owned()),
                Err(error) => Err(super::explain(&error).unwrap_or_else(|| error.to_string())),
            }
        };
        let allowance = budget::allowance();
        let (answer, spent) =
            nesting::with_stack(self.depth, || budget::metered(allowance, || with_functions(run)));
        budget::charge(spent);
        match spent {
            Spent::Within(_) => answer,
            Spent::Expression => Err("operation cancelled: actual cost limit exceeded".to_owned()),
            Spent::Object => Err("validation failed due to running out of cost budget, no \
                                  further validation rules will be run"
                .to_owned()),
        }
    }
}
