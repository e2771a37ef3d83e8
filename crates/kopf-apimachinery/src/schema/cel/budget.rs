//! The runtime cost limits of rules, as in upstream.
//!
//! The unit is roughly one evaluation step. Steps are counted where they repeat: once per loop
//! iteration, with the number of expressions in the body. Each expression is evaluated on one
//! thread, so the counters are thread-local.

use std::cell::Cell;

use kube_cel::cel::ExecutionError;
use kube_cel::cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue, operators};

use super::literals::{parts, parts_mut};

/// The cost limit of one expression.
const EXPRESSION_COST_MAX: u64 = 1_000_000;
/// The cost limit of all expressions that are evaluated for one object or one policy.
const OBJECT_COST_MAX: u64 = 10_000_000;

/// The cost limit for evaluation on a request thread; a few milliseconds.
const QUICK_COST_MAX: u64 = 100_000;

/// The function that counts; its name cannot be written in source.
pub(super) const SPEND: &str = "@spend";

thread_local! {
    // The cost limit per object.
    static LIMIT: Cell<u64> = const { Cell::new(OBJECT_COST_MAX) };
    // Whether an object has exceeded the limit.
    static WAS_EXCEEDED: Cell<bool> = const { Cell::new(false) };
    // The remaining budget of the current object.
    static OBJECT: Cell<u64> = const { Cell::new(OBJECT_COST_MAX) };
    // The remaining budget of the current expression; `None` once it was exceeded.
    static EXPRESSION: Cell<Option<u64>> = const { Cell::new(None) };
}

/// How an evaluation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spent {
    /// Within the limits, at this cost.
    Within(u64),
    /// The expression exceeded its limit.
    Expression,
    /// All expressions together exceeded their limit.
    Object,
}

/// Starts counting for another object.
pub fn start() {
    OBJECT.set(LIMIT.get());
}

/// Evaluates something unless it takes too long.
pub fn quickly<T>(run: impl FnOnce() -> T) -> Option<T> {
    /// Resets the limit, also after a panic.
    struct LimitGuard;
    impl Drop for LimitGuard {
        fn drop(&mut self) {
            LIMIT.set(OBJECT_COST_MAX);
        }
    }
    let _usual = LimitGuard;
    LIMIT.set(QUICK_COST_MAX);
    WAS_EXCEEDED.set(false);
    let outcome = run();
    (!WAS_EXCEEDED.get()).then_some(outcome)
}

/// Whether the budget of the current object is used up.
pub(super) fn is_over() -> bool {
    OBJECT.get() == 0
}

/// The cost limit of the next expression.
pub(super) fn allowance() -> u64 {
    OBJECT.get().min(EXPRESSION_COST_MAX)
}

/// Subtracts the cost of an expression from the budget of the object.
pub(super) fn charge(spent: Spent) {
    match spent {
        Spent::Within(cost) => OBJECT.set(OBJECT.get().saturating_sub(cost)),
        Spent::Expression | Spent::Object => {
            OBJECT.set(0);
            WAS_EXCEEDED.set(true);
        }
    }
}

/// Evaluates something with a cost limit.
pub(super) fn metered<T>(allowance: u64, run: impl FnOnce() -> T) -> (T, Spent) {
    EXPRESSION.set(Some(allowance));
    let outcome = run();
    let spent = match EXPRESSION.get() {
        Some(left) => Spent::Within(allowance - left),
        None if allowance < EXPRESSION_COST_MAX => Spent::Object,
        None => Spent::Expression,
    };
    (outcome, spent)
}

/// Adds to the cost; fails once the budget is used up.
pub(super) fn spend(cost: u64) -> Result<(), ExecutionError> {
    let left = EXPRESSION.get().and_then(|left| left.checked_sub(cost));
    EXPRESSION.set(left);
    match left {
        Some(_) => Ok(()),
        None => Err(ExecutionError::function_error(SPEND, "actual cost limit exceeded")),
    }
}

/// The number of expressions in one expression, except loop bodies, which count themselves.
pub(super) fn steps(expression: &IdedExpr) -> u64 {
    let below: u64 = match &expression.expr {
        Expr::Comprehension(comprehension) => steps(&comprehension.iter_range),
        _ => parts(expression).into_iter().map(steps).sum(),
    };
    1 + below
}

/// Makes every loop count its iterations.
pub(super) fn count_loops(expression: &mut IdedExpr) {
    let cost = match &expression.expr {
        Expr::Comprehension(comprehension) => steps(&comprehension.loop_step),
        _ => 0,
    };
    parts_mut(expression).into_iter().for_each(count_loops);
    let Expr::Comprehension(comprehension) = &mut expression.expr else { return };
    let cost = i64::try_from(cost).unwrap_or(i64::MAX);
    let node = |expr: Expr| IdedExpr { id: 0, expr };
    let call = |name: &str, args: Vec<IdedExpr>| {
        node(Expr::Call(CallExpr { func_name: name.to_owned(), target: None, args }))
    };
    let counted = call(SPEND, vec![node(Expr::Literal(LiteralValue::Int(cost.into())))]);
    let no = node(Expr::Literal(LiteralValue::Boolean(false.into())));
    let condition = std::mem::take(&mut comprehension.loop_cond);
    comprehension.loop_cond = call(operators::CONDITIONAL, vec![counted, condition, no]);
}
