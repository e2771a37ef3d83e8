//! Expressions of admission: conditions of webhooks, and the expressions of policies.
//!
//! An [`Environment`] holds the values that expressions see, converted once. Variables of policies
//! are evaluated on first use, at most once: `variables.x` becomes a call of a function whose name
//! cannot be written in source, which finds the environment of its thread.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;

use kube_cel::cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue};
use kube_cel::cel::parser::ParseErrors;
use kube_cel::cel::{Context, ExecutionError, Value as CelValue};
use parking_lot::Mutex;
use serde_json::Value;

use super::access::{self, Access};
use super::budget::{self, Spent};
use super::convert::{self, untyped};
use super::evaluate::evaluate;
use super::literals::parts_mut;
use super::nesting;
use super::program::{parse, parse_mutation, with_functions};

/// The function that returns a variable of a policy.
pub(super) const VARIABLE: &str = "@variable";
/// The maximum depth of expressions together with the variables that they use, so that stacks
/// suffice.
const DEPTH_MAX: usize = 192;
/// How much the call of a variable adds to the depth.
const CALL_DEPTH: usize = 4;

thread_local! {
    // The environment of the expression that is being evaluated on this thread.
    static CURRENT: RefCell<Option<Arc<Environment>>> = const { RefCell::new(None) };
    // Its depth, including the variables around it.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// The values that expressions can see; absent objects are null.
#[derive(Clone, Default)]
pub struct Admitted<'a> {
    /// The object as it would be stored.
    pub object: Option<&'a Value>,
    /// The object as it is stored.
    pub old_object: Option<&'a Value>,
    /// The `request` of the admission review.
    pub request: Option<&'a Value>,
    /// The namespace of the object, with the fields that policies may see.
    pub namespace: Option<&'a Value>,
    /// The object that the binding of a policy refers to.
    pub params: Option<&'a Value>,
    /// Answers authorization checks.
    pub access: Option<Access>,
}

/// The values that the expressions of one policy or one webhook can see.
pub struct Environment {
    values: Vec<(&'static str, CelValue)>,
    pub(super) access: Option<Access>,
    variables: HashMap<String, Result<Parsed, String>>,
    // The results of variables; locked only briefly, never during an evaluation.
    known: Mutex<HashMap<String, Result<CelValue, String>>>,
}

#[derive(Clone)]
struct Parsed {
    expression: Arc<IdedExpr>,
    depth: usize,
    uses_variables: bool,
}

impl Parsed {
    fn new(source: &str) -> Result<Self, String> {
        Self::of(source, parse)
    }

    fn of(source: &str, parse: fn(&str) -> Result<IdedExpr, ParseErrors>) -> Result<Self, String> {
        let depth = nesting::depth(source);
        let mut expression = parse(source).map_err(|errors| errors.to_string())?;
        let uses_variables = compose(&mut expression);
        Ok(Self { expression: Arc::new(expression), depth, uses_variables })
    }

    /// The depth to reserve stack for.
    fn room(&self) -> usize {
        // Variables nest as well, and their depth is not known yet.
        if self.uses_variables { DEPTH_MAX } else { self.depth }
    }
}

impl Environment {
    /// Creates an environment with variables, given as pairs of name and expression.
    pub fn new<'v>(
        admitted: Admitted<'_>,
        variables: impl IntoIterator<Item = (&'v str, &'v str)>,
    ) -> Arc<Self> {
        let value = |given: Option<&Value>| given.map_or(CelValue::Null, untyped);
        let mut values = vec![
            ("object", value(admitted.object)),
            ("oldObject", value(admitted.old_object)),
            ("request", value(admitted.request)),
            ("namespaceObject", value(admitted.namespace)),
            ("params", value(admitted.params)),
        ];
        if admitted.access.is_some() {
            values.push(("authorizer", access::authorizer(admitted.request)));
        }
        let variables = variables
            .into_iter()
            .map(|(name, expression)| (name.to_owned(), Parsed::new(expression)))
            .collect();
        Arc::new(Self { values, access: admitted.access, variables, known: Mutex::default() })
    }

    /// The same environment, with nothing evaluated yet.
    pub fn renewed(&self) -> Arc<Self> {
        Arc::new(Self {
            values: self.values.clone(),
            access: self.access.clone(),
            variables: self.variables.clone(),
            known: Mutex::default(),
        })
    }

    /// Whether a condition holds; the error says why it cannot be evaluated.
    pub fn holds(self: &Arc<Self>, expression: &str) -> Result<bool, String> {
        match self.value(expression)? {
            CelValue::Bool(answer) => Ok(answer),
            _ => Err("the condition yields no boolean".to_owned()),
        }
    }

    /// The string that an expression yields; `None` if it is null. The error says why there is
    /// none.
    pub fn text(self: &Arc<Self>, expression: &str) -> Result<Option<String>, String> {
        match self.value(expression)? {
            CelValue::String(text) => Ok(Some(text.trim().to_owned())),
            CelValue::Null => Ok(None),
            other => Err(format!(
                "valueExpression '{expression}' resulted in unsupported return type: {}. Return \
                 type must be either string or null.",
                super::program::type_name(&other).unwrap_or("dyn")
            )),
        }
    }

    /// The result of a mutation's expression, as JSON.
    pub fn mutation(self: &Arc<Self>, expression: &str) -> Result<Value, String> {
        let parsed = Parsed::of(expression, parse_mutation)?;
        convert::to_json(&self.evaluated(&parsed)?)
    }

    fn value(self: &Arc<Self>, source: &str) -> Result<CelValue, String> {
        self.evaluated(&Parsed::new(source)?)
    }

    fn evaluated(self: &Arc<Self>, parsed: &Parsed) -> Result<CelValue, String> {
        let allowance = budget::allowance();
        let run = || {
            let _current = EnvironmentGuard::new(self, parsed.depth);
            budget::metered(allowance, || self.run(&parsed.expression))
        };
        let (outcome, spent) = nesting::with_stack(parsed.room(), run);
        budget::charge(spent);
        match spent {
            Spent::Within(_) => outcome.map_err(|error| words(&error)),
            Spent::Expression => Err("operation cancelled: actual cost limit exceeded".to_owned()),
            Spent::Object => Err("validation failed due to running out of cost budget, no \
                                  further validation rules will be run"
                .to_owned()),
        }
    }

    fn run(&self, expression: &IdedExpr) -> Result<CelValue, ExecutionError> {
        with_functions(|functions: &Context<'_>| {
            let mut context = functions.new_inner_scope();
            for (name, value) in &self.values {
                context.add_variable_from_value(*name, value.clone());
            }
            evaluate(expression, &context)
        })
    }

    fn variable(&self, name: &str) -> Result<CelValue, String> {
        if let Some(known) = self.known.lock().get(name) {
            return known.clone();
        }
        let outcome = match self.variables.get(name) {
            None => Err(format!("no such key: {name}")),
            Some(Err(problem)) => Err(problem.clone()),
            Some(Ok(parsed)) => deeper(parsed, || self.run(&parsed.expression)),
        };
        self.known.lock().insert(name.to_owned(), outcome.clone());
        outcome
    }
}

fn words(error: &ExecutionError) -> String {
    super::explain(error).unwrap_or_else(|| error.to_string())
}

/// Evaluates a variable within another expression if the stack has room for both.
fn deeper(
    parsed: &Parsed,
    run: impl FnOnce() -> Result<CelValue, ExecutionError>,
) -> Result<CelValue, String> {
    let depth = DEPTH.get() + parsed.depth + CALL_DEPTH;
    if depth > DEPTH_MAX {
        return Err("variables nest too deeply".to_owned());
    }
    let before = DEPTH.replace(depth);
    let outcome = run();
    DEPTH.set(before);
    outcome.map_err(|error| words(&error))
}

/// Makes an environment the current one of its thread until it is dropped.
struct EnvironmentGuard;

impl EnvironmentGuard {
    fn new(environment: &Arc<Environment>, depth: usize) -> Self {
        CURRENT.with(|current| *current.borrow_mut() = Some(Arc::clone(environment)));
        DEPTH.set(depth);
        Self
    }
}

impl Drop for EnvironmentGuard {
    fn drop(&mut self) {
        CURRENT.with(|current| *current.borrow_mut() = None);
    }
}

/// The environment of the expression that is being evaluated on this thread.
pub(super) fn current() -> Option<Arc<Environment>> {
    CURRENT.with(|current| current.borrow().clone())
}

/// The function behind `variables.x`.
pub(super) fn variable(name: &str) -> Result<CelValue, ExecutionError> {
    let problem = match current().map(|environment| environment.variable(name)) {
        Some(Ok(value)) => return Ok(value),
        Some(Err(problem)) => problem,
        None => "there are no variables here".to_owned(),
    };
    let words = format!("composited variable {name:?} fails to evaluate: {problem}");
    Err(ExecutionError::function_error(VARIABLE, words))
}

/// Turns `variables.x` into calls; returns whether there were any.
fn compose(expression: &mut IdedExpr) -> bool {
    if let Expr::Select(select) = &expression.expr
        && matches!(&select.operand.expr, Expr::Ident(name) if name == "variables")
    {
        let text = |text: &str| Expr::Literal(LiteralValue::String(text.into()));
        expression.expr = match select.test {
            true => Expr::Literal(LiteralValue::Boolean(true.into())),
            false => Expr::Call(CallExpr {
                func_name: VARIABLE.to_owned(),
                target: None,
                args: vec![IdedExpr { id: 0, expr: text(&select.field) }],
            }),
        };
        return true;
    }
    // Visits all parts, so not `any`.
    let found = parts_mut(expression).into_iter().filter_map(|part| compose(part).then_some(()));
    found.count() > 0
}
