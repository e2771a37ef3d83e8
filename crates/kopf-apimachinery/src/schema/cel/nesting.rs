//! Estimates how deeply an expression nests, from its source.
//!
//! The parser and all later steps recurse, and a stack overflow ends the process. The depth is
//! therefore estimated first. The estimate may be too high, but never too low: anything that is not
//! certainly a string or a comment counts as code. Deep expressions are parsed and run on a larger
//! stack.

use std::sync::LazyLock;

use regex::Regex;

/// A string according to the grammar; anything else that starts with a quote is not a string.
static STRING: LazyLock<Regex> = LazyLock::new(|| {
    let escape =
        r#"\\(?:[abfnrtv"'\\?`]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2})"#;
    let strings = [
        format!(r#""""(?:{escape}|[^\\])*?""""#),
        format!(r"'''(?:{escape}|[^\\])*?'''"),
        format!(r#""(?:{escape}|[^\\"\r\n])*""#),
        format!(r"'(?:{escape}|[^\\'\r\n])*'"),
    ];
    Regex::new(&format!("^(?:{})", strings.join("|"))).expect("a constant pattern compiles")
});

/// A raw string, which has no escapes.
static RAW_STRING: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r#"^[bB]?[rR](?:"""(?s:.)*?"""|'''(?s:.)*?'''|"[^"\r\n]*"|'[^'\r\n]*')"#;
    Regex::new(pattern).expect("a constant pattern compiles")
});

/// The depth for which any stack suffices.
const SHALLOW_DEPTH_MAX: usize = 16;

/// The stack for deeper expressions. A debug build needs up to 100 kB per level.
const STACK_BYTES: usize = 32 << 20;

/// Runs something that recurses to the depth of an expression, on a stack that is large enough.
pub(super) fn with_stack<T: Send>(depth: usize, run: impl FnOnce() -> T + Send) -> T {
    if depth <= SHALLOW_DEPTH_MAX {
        return run();
    }
    std::thread::scope(|scope| {
        let builder = std::thread::Builder::new().stack_size(STACK_BYTES);
        let thread =
            builder.spawn_scoped(scope, run).expect("the system can start one more thread");
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// The content of one pair of brackets, as far as it has been read.
#[derive(Default)]
struct Level {
    /// Conditions, each nested in the previous one.
    conditions: usize,
    /// Operators in a row. Logical operators do not count: the parser balances their trees.
    operators: usize,
    /// Selections, calls and indexes in a row.
    members: usize,
}

impl Level {
    fn depth(&self) -> usize {
        1 + self.conditions + self.operators + self.members
    }
}

/// An upper bound for the depth of an expression's tree.
pub(super) fn depth(source: &str) -> usize {
    let mut outer = vec![];
    let (mut level, mut outer_depth, mut deepest) = (Level::default(), 0, 0);
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' | '\'' => STRING.find(rest).map_or(1, |found| found.len()),
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            first if is_word(first) => {
                let word = rest.find(|other| !is_word(other)).unwrap_or(rest.len());
                if &rest[..word] == "in" {
                    level = Level { operators: level.operators + 1, members: 0, ..level };
                }
                RAW_STRING.find(rest).map_or(word, |found| found.len().max(word))
            }
            _ => first.len_utf8(),
        };
        match first {
            '(' | '[' | '{' => {
                outer_depth += level.depth();
                outer.push(std::mem::take(&mut level));
            }
            ')' | ']' | '}' => {
                if let Some(around) = outer.pop() {
                    outer_depth -= around.depth();
                    level = Level { members: around.members + 1, ..around };
                }
            }
            '.' => level.members += 1,
            '?' => level = Level { conditions: level.conditions + 1, ..Level::default() },
            '&' | '|' | ':' => level = Level { conditions: level.conditions, ..Level::default() },
            ',' => level = Level::default(),
            '+' | '-' | '*' | '/' | '%' | '<' | '>' | '=' | '!' if length == 1 => {
                level = Level { operators: level.operators + 1, members: 0, ..level };
            }
            _ => {}
        }
        deepest = deepest.max(outer_depth + level.depth());
        rest = &rest[length..];
        // The second half of an operator and repeated signs do not count.
        if "+-*/%<>=!".contains(first) {
            rest = rest.trim_start_matches(['=', '!', '-']);
        }
    }
    deepest
}

fn is_word(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_'
}

#[cfg(test)]
mod tests;
