//! Regular expressions from clients: checked before they are compiled, and compiled once.
//!
//! The time for compiling is proportional to the size of the compiled program, so patterns that
//! would become too large are rejected by an estimate. Repetitions are limited as in Go.

use std::collections::HashMap;
use std::sync::LazyLock;

use parking_lot::RwLock;
use regex::{Regex, RegexBuilder};
use regex_syntax::ast::{self, Ast, RepetitionKind, RepetitionRange, Span};
use regex_syntax::hir::translate::Translator;
use regex_syntax::hir::{Class, Hir, HirKind};
use serde_json::Value;

/// The maximum product of nested repetitions in Go.
const REPEAT_MAX: u32 = 1000;
/// The maximum estimated size of one compiled pattern.
const PATTERN_BYTES_MAX: usize = 10 << 20;
/// The maximum estimated size of all compiled patterns of one schema.
const PATTERNS_BYTES_MAX: usize = 64 << 20;
/// The maximum actual size of a compiled pattern, in case the estimate is too low.
const COMPILED_BYTES_MAX: usize = 40 << 20;
/// How many compiled patterns are kept.
const PATTERNS_KEPT_MAX: usize = 4096;

/// Why a pattern is not used.
#[derive(Debug, PartialEq, Eq)]
pub enum Problem<'a> {
    /// This repetition, including nested ones, repeats too often.
    Repeat(&'a str),
    /// The compiled pattern would be too large.
    TooLarge,
    /// The pattern is malformed.
    Invalid,
}

/// The estimated size of a compiled pattern.
pub fn judge(pattern: &str) -> Result<usize, Problem<'_>> {
    let ast = ast::parse::Parser::new().parse(pattern).map_err(|_| Problem::Invalid)?;
    if let Some(span) = excessive(&ast) {
        return Err(Problem::Repeat(&pattern[span.start.offset..span.end.offset]));
    }
    let tree = Translator::new().translate(pattern, &ast).map_err(|_| Problem::Invalid)?;
    match size(&tree) {
        size if size > PATTERN_BYTES_MAX => Err(Problem::TooLarge),
        size => Ok(size),
    }
}

/// Whether all patterns of a schema together would be too large.
pub fn are_too_large(schema: &Value) -> bool {
    fn sum(schema: &Value, total: &mut usize) {
        if *total > PATTERNS_BYTES_MAX {
            return;
        }
        match schema {
            Value::Object(fields) => {
                if let Some(Value::String(pattern)) = fields.get("pattern") {
                    *total += judge(pattern).unwrap_or(0);
                }
                fields.values().for_each(|value| sum(value, total));
            }
            Value::Array(items) => items.iter().for_each(|item| sum(item, total)),
            _ => {}
        }
    }
    let mut total = 0;
    sum(schema, &mut total);
    total > PATTERNS_BYTES_MAX
}

/// Compiled patterns by source; written on first use, read by every request.
static PATTERNS: LazyLock<RwLock<HashMap<String, Option<Regex>>>> = LazyLock::new(RwLock::default);

/// Whether the text matches; `None` if neither Go nor we understand the pattern.
pub fn fits(pattern: &str, text: &str) -> Option<bool> {
    if let Some(known) = PATTERNS.read().get(pattern) {
        return known.as_ref().map(|regex| regex.is_match(text));
    }
    let compiled = judge(pattern)
        .ok()
        .and_then(|_| RegexBuilder::new(pattern).size_limit(COMPILED_BYTES_MAX).build().ok());
    let answer = compiled.as_ref().map(|regex| regex.is_match(text));
    let mut patterns = PATTERNS.write();
    if patterns.len() >= PATTERNS_KEPT_MAX {
        patterns.clear();
    }
    patterns.insert(pattern.to_owned(), compiled);
    answer
}

/// The first repetition that, including nested ones, repeats too often.
fn excessive(ast: &Ast) -> Option<Span> {
    match ast {
        Ast::Repetition(repetition) => excessive(&repetition.ast).or_else(|| {
            let is_counted = matches!(repetition.op.kind, RepetitionKind::Range(_));
            (is_counted && !repeats_at_most(ast, REPEAT_MAX)).then_some(repetition.op.span)
        }),
        Ast::Group(group) => excessive(&group.ast),
        Ast::Alternation(alternation) => alternation.asts.iter().find_map(excessive),
        Ast::Concat(concat) => concat.asts.iter().find_map(excessive),
        _ => None,
    }
}

/// Go's rule: the product of nested counts.
fn repeats_at_most(ast: &Ast, most: u32) -> bool {
    match ast {
        Ast::Repetition(repetition) => {
            let count = match &repetition.op.kind {
                RepetitionKind::Range(RepetitionRange::Exactly(count)) => *count,
                RepetitionKind::Range(RepetitionRange::AtLeast(least)) => *least,
                RepetitionKind::Range(RepetitionRange::Bounded(_, greatest)) => *greatest,
                _ => 1,
            };
            let is_absent = matches!(
                &repetition.op.kind,
                RepetitionKind::Range(RepetitionRange::Exactly(0) | RepetitionRange::Bounded(_, 0))
            );
            is_absent || (count <= most && repeats_at_most(&repetition.ast, most / count.max(1)))
        }
        Ast::Group(group) => repeats_at_most(&group.ast, most),
        Ast::Alternation(alternation) => {
            alternation.asts.iter().all(|part| repeats_at_most(part, most))
        }
        Ast::Concat(concat) => concat.asts.iter().all(|part| repeats_at_most(part, most)),
        _ => true,
    }
}

/// The approximate size of the compiled form in bytes.
fn size(tree: &Hir) -> usize {
    const STATE: usize = 32;
    match tree.kind() {
        HirKind::Empty | HirKind::Look(_) => STATE,
        HirKind::Literal(literal) => STATE * literal.0.len(),
        // A range of characters takes several states, one for each byte of the encodings.
        HirKind::Class(Class::Unicode(class)) => class
            .ranges()
            .iter()
            .map(|range| if range.end().is_ascii() { STATE } else { 4 * STATE })
            .sum(),
        HirKind::Class(Class::Bytes(class)) => STATE * class.ranges().len(),
        HirKind::Repetition(repetition) => {
            let times = repetition.max.unwrap_or(repetition.min + 1).max(1) as usize;
            size(&repetition.sub).saturating_add(STATE).saturating_mul(times)
        }
        HirKind::Capture(capture) => size(&capture.sub).saturating_add(2 * STATE),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts.iter().map(size).fold(STATE, usize::saturating_add)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_repetitions_are_limited_as_in_go() {
        for pattern in ["a{1000}", "(a{10}){100}", "(a{2,}){500}", "(a{0}){1000}", "(a*){1000}"] {
            assert!(judge(pattern).is_ok(), "{pattern}");
        }
        assert_eq!(judge("(a{10}){101}"), Err(Problem::Repeat("{101}")));
        assert_eq!(judge(r"x(\pL{1,500}){1,10}"), Err(Problem::Repeat("{1,10}")));
        assert_eq!(judge("((a{10}){10}){11}b{3}"), Err(Problem::Repeat("{11}")));
        assert_eq!(judge("(a"), Err(Problem::Invalid));
    }

    #[test]
    fn patterns_that_compile_to_much_are_refused_before() {
        assert_eq!(judge(r"\pL{1000}"), Err(Problem::TooLarge));
        assert!(judge(r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z]{1,63}){0,10}$").is_ok());
        assert_eq!(fits(r"\pL{1000}", "a"), None);
        assert_eq!(fits(r"^\pL{3}$", "äöü"), Some(true));
        let pattern = serde_json::json!({"type": "string", "pattern": r"\pL{60}"});
        assert!(!are_too_large(&serde_json::json!({"properties": {"a": pattern}})));
        let many: serde_json::Map<String, Value> =
            (0..100).map(|number| (format!("p{number}"), pattern.clone())).collect();
        assert!(are_too_large(&serde_json::json!({"properties": many})));
    }
}
