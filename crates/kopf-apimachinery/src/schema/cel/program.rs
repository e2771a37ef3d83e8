//! Parsed rules and how they are run.

use std::sync::Arc;

use kube_cel::KubeCelExt;
use kube_cel::cel::common::ast::{
    CallExpr, ComprehensionExpr, Expr, IdedExpr, ListExpr, LiteralValue, operators,
};
use kube_cel::cel::extractors::This;
use kube_cel::cel::objects::OptionalValue;
use kube_cel::cel::parser::{ParseError, ParseErrors, Parser};
use kube_cel::cel::{Context, ExecutionError, Value as CelValue};

use super::MESSAGE_LENGTH_MAX;
use super::budget::{self, Spent};
use super::convert::Converted;
use super::cost::{Variables, resolve};
use super::evaluate::evaluate;
use super::{access, charges, condition, literals, nesting};
use crate::schema::ir::{ListType, Rule, Schema};
use crate::schema::patterns;

/// Comparisons of sets; these names cannot be written in source.
const SAME_SET: &str = "@same_set";
const OTHER_SET: &str = "@other_set";

thread_local! {
    /// The functions that rules may call. One context per thread, since registration takes time and
    /// contexts cannot be shared.
    static FUNCTIONS: Context<'static> = functions();
}

fn functions() -> Context<'static> {
    let mut context = Context::default().with_all();
    context.add_function("dyn", |value: CelValue| Ok::<CelValue, ExecutionError>(value));
    context.add_function("size", size);
    context.add_function("matches", matches);
    context
        .add_function(budget::SPEND, |cost: i64| budget::spend(cost.unsigned_abs()).map(|()| true));
    context.add_function(condition::VARIABLE, |name: Arc<String>| condition::variable(&name));
    access::add_functions(&mut context);
    charges::add_functions(&mut context);
    context.add_function(SAME_SET, |one: CelValue, other: CelValue| {
        Ok::<bool, ExecutionError>(is_same_set(&one, &other))
    });
    context.add_function(OTHER_SET, |one: CelValue, other: CelValue| {
        Ok::<bool, ExecutionError>(!is_same_set(&one, &other))
    });
    context.add_function("type", |value: CelValue| {
        let name = type_name(&value).unwrap_or_default();
        Ok::<CelValue, ExecutionError>(type_value(name))
    });
    for name in ["bool", "bytes", "double", "int", "list", "map", "null_type", "string", "uint"] {
        context.add_variable_from_value(name, type_value(name));
    }
    context
}

/// The crate counts the bytes of strings, CEL counts characters.
fn size(This(value): This<CelValue>) -> Result<i64, ExecutionError> {
    let size = match &value {
        CelValue::String(text) => text.chars().count(),
        CelValue::Bytes(bytes) => bytes.len(),
        CelValue::List(items) => items.len(),
        CelValue::Map(map) => map.map.len(),
        _ => return Err(ExecutionError::NoSuchOverload),
    };
    Ok(size as i64)
}

/// Compiles patterns once, and only if they are small enough.
fn matches(This(text): This<Arc<String>>, pattern: Arc<String>) -> Result<bool, ExecutionError> {
    // Upstream's estimate: a tenth of the text, times a quarter of the pattern.
    budget::spend(((text.len() / 10 + 1) * (pattern.len() / 4 + 1)) as u64)?;
    patterns::fits(&pattern, &text).ok_or_else(|| {
        ExecutionError::function_error("matches", format!("'{pattern}' is no valid regex"))
    })
}

/// Types are only compared, so a string that cannot be mistaken for a value suffices.
fn type_value(name: &str) -> CelValue {
    CelValue::String(Arc::new(format!("\u{0}type {name}")))
}

/// The name of a value's type in CEL.
pub(super) fn type_name(value: &CelValue) -> Option<&'static str> {
    Some(match value {
        CelValue::Bool(_) => "bool",
        CelValue::Bytes(_) => "bytes",
        CelValue::Float(_) => "double",
        CelValue::Int(_) => "int",
        CelValue::List(_) => "list",
        CelValue::Map(_) => "map",
        CelValue::Null => "null_type",
        CelValue::String(_) => "string",
        CelValue::UInt(_) => "uint",
        _ => return None,
    })
}

/// Runs something in the context that has all functions and no variables.
pub(super) fn with_functions<T>(run: impl FnOnce(&Context<'_>) -> T) -> T {
    FUNCTIONS.with(|functions| run(functions))
}

/// The maximum depth of expressions. Upstream allows 250, for which stacks would be too small.
const DEPTH_MAX: usize = 96;

/// Parses an expression as written, including optional syntax.
pub(super) fn parse_unexpanded(source: &str) -> Result<IdedExpr, ParseErrors> {
    let depth = nesting::depth(source);
    if depth > DEPTH_MAX {
        return Err(refusal(&format!("expression recursion limit exceeded: {DEPTH_MAX}")));
    }
    nesting::with_stack(depth, || Parser::new().enable_optional_syntax(true).parse(source))
}

fn refusal(problem: &str) -> ParseErrors {
    let msg = problem.to_owned();
    let error = ParseError { source: None, pos: (1, 1), msg, expr_id: 0, source_info: None };
    ParseErrors { errors: vec![error] }
}

/// Parses an expression and expands what the crate cannot evaluate itself.
pub(super) fn parse(source: &str) -> Result<IdedExpr, ParseErrors> {
    let expression = parse_unexpanded(source)?;
    if let Some(name) = literals::first_type(&expression) {
        return Err(refusal(&format!("undeclared reference to '{name}' (in container '')")));
    }
    Ok(prepared(expression))
}

/// Parses the expression of a mutation, which may construct objects and patch operations.
pub(super) fn parse_mutation(source: &str) -> Result<IdedExpr, ParseErrors> {
    let mut expression = parse_unexpanded(source)?;
    if let Some(name) = literals::first_type(&expression).filter(|name| !literals::is_type(name)) {
        return Err(refusal(&format!("undeclared reference to '{name}' (in container '')")));
    }
    literals::lower(&mut expression).map_err(|problem| refusal(&problem))?;
    Ok(prepared(expression))
}

/// Prepares an expression for evaluation and cost counting.
fn prepared(mut expression: IdedExpr) -> IdedExpr {
    expand(&mut expression);
    budget::count_loops(&mut expression);
    charges::charge_calls(&mut expression);
    expression
}

/// The parsed rules of one schema node, in the order of the rules; `None` where parsing failed.
#[derive(Debug)]
pub(crate) struct Programs(Vec<Option<Program>>);

impl Programs {
    pub(super) fn parse(schema: &Schema, rules: &[Rule]) -> Self {
        Self(rules.iter().map(|rule| Program::parse(schema, rule).ok()).collect())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Option<&Program>> {
        self.0.iter().map(Option::as_ref)
    }

    pub(super) fn use_old_self(&self) -> bool {
        self.0.iter().flatten().any(|program| program.uses_old_self)
    }
}

/// One parsed rule.
#[derive(Debug)]
pub(super) struct Program {
    expression: IdedExpr,
    message: Option<IdedExpr>,
    // The greater depth of the rule and its message.
    depth: usize,
    pub(super) uses_old_self: bool,
}

impl Program {
    fn parse(schema: &Schema, rule: &Rule) -> Result<Self, ParseErrors> {
        let mut expression = parse(&rule.rule)?;
        let names = ["self", "oldSelf"];
        let variables = names.map(|name| (name.to_owned(), schema)).into();
        compare_sets_as_sets(&mut expression, &variables);
        let uses_old_self = expression.references().has_variable("oldSelf");
        let text = rule.message_expression.as_deref().unwrap_or_default();
        let message = if text.is_empty() { None } else { parse(text).ok() };
        let depth = nesting::depth(&rule.rule).max(nesting::depth(text));
        Ok(Self { expression, message, depth, uses_old_self })
    }

    /// Evaluates the rule, and its message if the rule fails.
    pub(super) fn with_context(
        &self,
        this: &CelValue,
        old_self: Option<CelValue>,
        report: impl FnOnce(Result<CelValue, ExecutionError>, Option<String>, Spent),
    ) {
        let run = |functions: &Context<'_>| {
            let mut context = functions.new_inner_scope();
            context.add_variable_from_value("self", this.clone());
            if let Some(old_self) = old_self {
                context.add_variable_from_value("oldSelf", old_self);
            }
            let outcome = evaluate(&self.expression, &context);
            let message = match (&outcome, &self.message) {
                (Ok(CelValue::Bool(false)), Some(expression)) => message(expression, &context),
                _ => None,
            };
            (outcome, message)
        };
        let allowance = budget::allowance();
        let ((outcome, message), spent) =
            nesting::with_stack(self.depth, || budget::metered(allowance, || with_functions(run)));
        budget::charge(spent);
        report(outcome, message, spent);
    }
}

fn message(expression: &IdedExpr, context: &Context<'_>) -> Option<String> {
    let Ok(CelValue::String(text)) = CelValue::resolve(expression, context) else { return None };
    let text = text.trim();
    let usable = !text.is_empty() && !text.contains('\n') && text.len() <= MESSAGE_LENGTH_MAX;
    usable.then(|| text.to_owned())
}

/// The value of `oldSelf`: absent, a value, or an optional value if the rule requests one.
pub(super) fn old_self(old: Option<&Converted>, optional: bool) -> Option<CelValue> {
    match (old, optional) {
        (Some(old), false) => Some(old.value.clone()),
        (None, false) => None,
        (Some(old), true) => Some(CelValue::Opaque(Arc::new(OptionalValue::of(old.value.clone())))),
        (None, true) => Some(CelValue::Opaque(Arc::new(OptionalValue::none()))),
    }
}

/// Replaces `==` between sets by a comparison that ignores order, as upstream's does.
fn compare_sets_as_sets(expression: &mut IdedExpr, variables: &Variables<'_>) {
    match &mut expression.expr {
        Expr::Call(call) => {
            let is_set = |part: &IdedExpr| {
                let schema = resolve(part, variables);
                schema.is_some_and(|schema| schema.list_type == Some(ListType::Set))
            };
            let is_comparison =
                matches!(call.func_name.as_str(), operators::EQUALS | operators::NOT_EQUALS);
            if is_comparison && call.args.iter().any(is_set) {
                let name = if call.func_name == operators::EQUALS { SAME_SET } else { OTHER_SET };
                call.func_name = name.to_owned();
            }
            call.target.iter_mut().for_each(|target| compare_sets_as_sets(target, variables));
            call.args.iter_mut().for_each(|part| compare_sets_as_sets(part, variables));
        }
        Expr::Comprehension(comprehension) => {
            compare_sets_as_sets(&mut comprehension.loop_step, variables);
        }
        _ => {}
    }
}

fn is_same_set(one: &CelValue, other: &CelValue) -> bool {
    match (one, other) {
        (CelValue::List(one), CelValue::List(other)) => {
            one.len() == other.len() && one.iter().all(|item| other.contains(item))
        }
        _ => one == other,
    }
}

/// Expands what the crate lacks: `cel.bind(name, value, expression)` turns into a comprehension
/// over nothing whose accumulator is the name.
fn expand(expression: &mut IdedExpr) {
    if let Expr::Call(call) = &mut expression.expr
        && let Some(bound) = binding(call)
    {
        expression.expr = bound;
    }
    if let Expr::Call(call) = &mut expression.expr
        && call.func_name == operators::OPT_SELECT
    {
        // The crate's `a.?b` fails on absent fields, while its `a[?"b"]` does not.
        call.func_name = operators::OPT_INDEX.to_owned();
    }
    literals::parts_mut(expression).into_iter().for_each(expand);
}

fn binding(call: &mut CallExpr) -> Option<Expr> {
    let is_cel = matches!(call.target.as_deref(), Some(IdedExpr { expr: Expr::Ident(name), .. }) if name == "cel");
    if call.func_name != "bind" || !is_cel || call.args.len() != 3 {
        return None;
    }
    let result = call.args.pop()?;
    let value = call.args.pop()?;
    let name = call.args.pop()?;
    let Expr::Ident(variable) = &name.expr else { return None };
    let node = |expr: Expr| IdedExpr { id: 0, expr };
    Some(Expr::Comprehension(Box::new(ComprehensionExpr {
        iter_range: node(Expr::List(ListExpr::new(Vec::new()))),
        iter_var: "#unused".to_owned(),
        iter_var2: None,
        accu_var: variable.clone(),
        accu_init: value,
        loop_cond: node(Expr::Literal(LiteralValue::Boolean(false.into()))),
        loop_step: name.clone(),
        result,
    })))
}
