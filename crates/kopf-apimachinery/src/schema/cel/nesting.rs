//! How deeply an expression nests, told from its source.
//!
//! The parser and everything after it recurse, and a stack that is used up ends the process. So
//! this looks first. It may tell too much, but never too little: what is not surely a string or a
//! comment counts as code. What is deep is then parsed and run on a larger stack.

use std::sync::LazyLock;

use regex::Regex;

/// A string as the grammar has it; anything else that starts with a quote is no string.
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

/// A raw string, in which nothing is an escape.
static RAW_STRING: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r#"^[bB]?[rR](?:"""(?s:.)*?"""|'''(?s:.)*?'''|"[^"\r\n]*"|'[^'\r\n]*')"#;
    Regex::new(pattern).expect("a constant pattern compiles")
});

/// How deeply expressions nest that any stack has room for.
const SHALLOW_DEPTH_MAX: usize = 16;

/// The stack for others. A program with debug assertions needs up to 100 kB for a level.
const STACK_BYTES: usize = 32 << 20;

/// Runs something that recurses as deeply as an expression nests, on a stack with room for that.
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

/// What one pair of brackets holds, as far as it has been read.
#[derive(Default)]
struct Level {
    /// Conditions, each of which holds the next one.
    conditions: usize,
    /// Operators in a row. Those of logic do not count: the parser makes balanced trees of them.
    operators: usize,
    /// Selections, calls and indexes in a row.
    members: usize,
}

impl Level {
    fn depth(&self) -> usize {
        1 + self.conditions + self.operators + self.members
    }
}

/// How deeply the tree of an expression may nest.
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
        // The second half of an operator is no other operator, and neither are repeated signs.
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
