//! The syntax of `shardSelector`: the allowed subset of CEL, and errors for the rest.
//!
//! Pure. Parses a text into a tree, which `shard` interprets.

use std::iter::Peekable;
use std::str::Chars;

/// A CEL expression.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Expression {
    Ident(String),
    Select(Box<Expression>, String),
    Call(String, Vec<Expression>),
    Text(String),
    /// A number; only its Go type matters.
    Number(&'static str),
}

impl Expression {
    /// The number of its kind in cel-go, which messages contain.
    pub(super) fn kind(&self) -> u8 {
        match self {
            Self::Call(..) => 1,
            Self::Ident(_) => 3,
            Self::Text(_) | Self::Number(_) => 5,
            Self::Select(..) => 7,
        }
    }
}

/// Deeper nesting is rejected, since the parser is recursive.
const DEPTH_MAX: usize = 50;

/// Reads a whole text.
pub(super) fn parse(text: &str) -> Result<Expression, String> {
    let mut parser = Parser { rest: text.chars().peekable(), depth: 0 };
    let expression = parser.binary(0)?;
    match parser.peek() {
        None => Ok(expression),
        Some(other) => Err(unexpected(Some(other))),
    }
}

/// The binary operators by precedence, the weakest first.
const OPERATORS: [&[&str]; 3] = [&["||"], &["&&"], &["==", "!=", "<=", ">=", "<", ">"]];

struct Parser<'a> {
    rest: Peekable<Chars<'a>>,
    depth: usize,
}

fn unexpected(found: Option<char>) -> String {
    match found {
        Some(found) => format!("Syntax error: mismatched input '{found}'"),
        None => "Syntax error: mismatched input '<EOF>'".to_owned(),
    }
}

impl Parser<'_> {
    fn peek(&mut self) -> Option<char> {
        while self.rest.next_if(|it| it.is_ascii_whitespace()).is_some() {}
        self.rest.peek().copied()
    }

    fn take(&mut self, wanted: char) -> bool {
        self.peek() == Some(wanted) && self.rest.next().is_some()
    }

    fn expect(&mut self, wanted: char) -> Result<(), String> {
        if self.take(wanted) { Ok(()) } else { Err(unexpected(self.peek())) }
    }

    fn operator(&mut self, level: usize) -> Option<&'static str> {
        self.peek()?;
        let text: String = self.rest.clone().take(2).collect();
        let found = OPERATORS.get(level)?.iter().find(|it| text.starts_with(**it))?;
        for _ in 0..found.len() {
            self.rest.next();
        }
        Some(found)
    }

    fn binary(&mut self, level: usize) -> Result<Expression, String> {
        if level >= OPERATORS.len() {
            return self.postfix();
        }
        let mut left = self.binary(level + 1)?;
        while let Some(operator) = self.operator(level) {
            let right = self.binary(level + 1)?;
            left = Expression::Call(format!("_{operator}_"), vec![left, right]);
        }
        Ok(left)
    }

    fn postfix(&mut self) -> Result<Expression, String> {
        let mut left = self.primary()?;
        while self.take('.') {
            self.peek();
            let name = self.name().ok_or_else(|| unexpected(self.rest.peek().copied()))?;
            left = match self.take('(') {
                true => Expression::Call(name, self.arguments()?),
                false => Expression::Select(Box::new(left), name),
            };
        }
        Ok(left)
    }

    fn primary(&mut self) -> Result<Expression, String> {
        match self.peek() {
            Some('(') => {
                self.rest.next();
                self.depth += 1;
                if self.depth > DEPTH_MAX {
                    return Err("expression recursion limit exceeded".to_owned());
                }
                let inner = self.binary(0)?;
                self.expect(')')?;
                Ok(inner)
            }
            Some(quote @ ('\'' | '"')) => {
                self.rest.next();
                self.text(quote)
            }
            Some(it) if it.is_ascii_digit() => {
                let digits: String = std::iter::from_fn(|| {
                    self.rest.next_if(|it| it.is_ascii_alphanumeric() || *it == '.')
                })
                .collect();
                Ok(Expression::Number(number_type(&digits)))
            }
            found => {
                let name = self.name().ok_or_else(|| unexpected(found))?;
                match self.take('(') {
                    true => Ok(Expression::Call(name, self.arguments()?)),
                    false => Ok(Expression::Ident(name)),
                }
            }
        }
    }

    fn name(&mut self) -> Option<String> {
        let is_start = |it: &char| it.is_ascii_alphabetic() || *it == '_';
        let first = self.rest.next_if(is_start)?;
        let is_part = |it: &char| it.is_ascii_alphanumeric() || *it == '_';
        let more = std::iter::from_fn(|| self.rest.next_if(is_part));
        Some(std::iter::once(first).chain(more).collect())
    }

    fn arguments(&mut self) -> Result<Vec<Expression>, String> {
        let mut arguments = Vec::new();
        if self.take(')') {
            return Ok(arguments);
        }
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err("expression recursion limit exceeded".to_owned());
        }
        loop {
            arguments.push(self.binary(0)?);
            if !self.take(',') {
                self.expect(')')?;
                self.depth -= 1;
                return Ok(arguments);
            }
        }
    }

    /// The rest of a string; escapes are kept as they are, since no valid selector has any.
    fn text(&mut self, quote: char) -> Result<Expression, String> {
        let mut text = String::new();
        loop {
            match self.rest.next() {
                Some(it) if it == quote => return Ok(Expression::Text(text)),
                Some(it) => text.push(it),
                None => return Err(unexpected(None)),
            }
        }
    }
}

fn number_type(digits: &str) -> &'static str {
    match digits {
        it if it.ends_with(['u', 'U']) => "uint64",
        it if it.contains('.') => "float64",
        _ => "int64",
    }
}
