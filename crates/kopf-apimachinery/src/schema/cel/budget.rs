//! What rules may cost at run time, as upstream limits it.
//!
//! The unit is about one step of an expression. Steps are counted where they repeat: once for each
//! turn of a loop, with the number of expressions in it. Expressions are evaluated on one thread
//! each, so the counters belong to threads.

use std::cell::Cell;

use kube_cel::cel::ExecutionError;
use kube_cel::cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue, operators};

use super::literals::{parts, parts_mut};

/// What one expression may cost.
const EXPRESSION_COST_MAX: u64 = 1_000_000;
/// What all expressions may cost that are evaluated for one object, or for one policy.
const OBJECT_COST_MAX: u64 = 10_000_000;

/// What may be evaluated in the midst of other requests; a few milliseconds.
const QUICK_COST_MAX: u64 = 100_000;

/// The function that counts; no source can spell its name.
pub(super) const SPEND: &str = "@spend";

thread_local! {
    // What objects may cost.
    static LIMIT: Cell<u64> = const { Cell::new(OBJECT_COST_MAX) };
    // Whether one has cost too much.
    static WAS_EXCEEDED: Cell<bool> = const { Cell::new(false) };
    // What is left for the object at hand.
    static OBJECT: Cell<u64> = const { Cell::new(OBJECT_COST_MAX) };
    // What is left for the expression at hand; none once that was not enough.
    static EXPRESSION: Cell<Option<u64>> = const { Cell::new(None) };
}

/// How an evaluation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spent {
    /// Within its limits.
    Within(u64),
    /// The expression cost too much.
    Expression,
    /// All expressions together cost too much.
    Object,
}

/// Begins to count for another object.
pub fn start() {
    OBJECT.set(LIMIT.get());
}

/// Evaluates something unless that takes long.
pub fn quickly<T>(run: impl FnOnce() -> T) -> Option<T> {
    /// Resets the limit, also after a panic.
    struct Usual;
    impl Drop for Usual {
        fn drop(&mut self) {
            LIMIT.set(OBJECT_COST_MAX);
        }
    }
    let _usual = Usual;
    LIMIT.set(QUICK_COST_MAX);
    WAS_EXCEEDED.set(false);
    let outcome = run();
    (!WAS_EXCEEDED.get()).then_some(outcome)
}

/// Whether nothing is left for the object at hand.
pub(super) fn is_over() -> bool {
    OBJECT.get() == 0
}

/// What the next expression may cost.
pub(super) fn allowance() -> u64 {
    OBJECT.get().min(EXPRESSION_COST_MAX)
}

/// Takes what an expression has cost from what is left for the object.
pub(super) fn charge(spent: Spent) {
    match spent {
        Spent::Within(cost) => OBJECT.set(OBJECT.get().saturating_sub(cost)),
        Spent::Expression | Spent::Object => {
            OBJECT.set(0);
            WAS_EXCEEDED.set(true);
        }
    }
}

/// Evaluates something that may cost so much.
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

/// Counts a cost; fails once there is nothing left.
pub(super) fn spend(cost: u64) -> Result<(), ExecutionError> {
    let left = EXPRESSION.get().and_then(|left| left.checked_sub(cost));
    EXPRESSION.set(left);
    match left {
        Some(_) => Ok(()),
        None => Err(ExecutionError::function_error(SPEND, "actual cost limit exceeded")),
    }
}

/// How many expressions there are in one, without the bodies of loops, which count themselves.
pub(super) fn steps(expression: &IdedExpr) -> u64 {
    let below: u64 = match &expression.expr {
        Expr::Comprehension(comprehension) => steps(&comprehension.iter_range),
        _ => parts(expression).into_iter().map(steps).sum(),
    };
    1 + below
}

/// Makes every loop count its turns.
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
