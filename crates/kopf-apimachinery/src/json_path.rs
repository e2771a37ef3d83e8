//! The JSONPath subset of CRDs: printer columns, scale paths, selectable fields.
//!
//! Supported: `.field`, `['field']`, `.field\.with\.dots`, `[0]`, `[-1]`, `[*]`, `[1:3]`, `..field`
//! and `[?(@.field=="text")]` with `==`, `!=`, `<`, `<=`, `>`, `>=`. Missing values yield nothing.

use std::cmp::Ordering;

use serde_json::Value;

/// How many values one path may yield; recursive descent could otherwise copy a tree many times.
const RESULTS_MAX: usize = 10_000;

/// A parsed path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonPath {
    steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Field(String),
    Index(i64),
    Slice(Option<i64>, Option<i64>),
    Every,
    Anywhere(String),
    Filter { path: JsonPath, operator: Operator, operand: Operand },
    Exists(JsonPath),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Operand {
    // Numbers are kept as text, since floats have no equality.
    Literal(String, bool),
    Path(JsonPath),
}

/// Why a text is not a supported path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unrecognized JSONPath {path:?}: {problem}")]
pub struct JsonPathError {
    path: String,
    problem: &'static str,
}

impl JsonPath {
    /// Parses a path such as `.spec.replicas`; outer braces and a leading `$` are allowed.
    pub fn parse(text: &str) -> Result<Self, JsonPathError> {
        let error = |problem| JsonPathError { path: text.to_owned(), problem };
        let mut rest = text.trim();
        if let Some(inner) = rest.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
            rest = inner.trim();
        }
        rest = rest.strip_prefix('$').unwrap_or(rest);
        let mut steps = Vec::new();
        while !rest.is_empty() {
            let (step, remaining) = next_step(rest).map_err(error)?;
            steps.extend(step);
            rest = remaining;
        }
        Ok(Self { steps })
    }

    /// The first value that the path leads to.
    pub fn first(&self, value: &Value) -> Option<Value> {
        self.find(value).into_iter().next().cloned()
    }

    /// All values that the path leads to.
    pub fn find<'tree>(&self, value: &'tree Value) -> Vec<&'tree Value> {
        let mut current = vec![value];
        for step in &self.steps {
            let mut next = Vec::new();
            for value in current {
                step.follow(value, &mut next);
                if next.len() > RESULTS_MAX {
                    next.truncate(RESULTS_MAX);
                    break;
                }
            }
            current = next;
        }
        current
    }
}

impl Step {
    fn follow<'tree>(&self, value: &'tree Value, found: &mut Vec<&'tree Value>) {
        match self {
            Self::Field(name) => found.extend(value.get(name)),
            Self::Index(index) => {
                let items = value.as_array().map_or(&[][..], Vec::as_slice);
                found.extend(position(*index, items.len()).and_then(|index| items.get(index)));
            }
            Self::Slice(start, end) => {
                let items = value.as_array().map_or(&[][..], Vec::as_slice);
                let bound = |bound: Option<i64>, otherwise: usize| {
                    bound.map_or(otherwise, |bound| clamp(bound, items.len()))
                };
                let (start, end) = (bound(*start, 0), bound(*end, items.len()));
                found.extend(items.get(start..end).unwrap_or_default());
            }
            Self::Every => found.extend(children(value)),
            Self::Anywhere(name) => anywhere(value, name, found),
            Self::Filter { path, operator, operand } => found.extend(
                children(value)
                    .filter(|item| passes(path.find(item).first(), *operator, operand, item)),
            ),
            Self::Exists(path) => {
                found.extend(children(value).filter(|item| !path.find(item).is_empty()));
            }
        }
    }
}

fn position(index: i64, length: usize) -> Option<usize> {
    if index >= 0 {
        usize::try_from(index).ok()
    } else {
        length.checked_sub(usize::try_from(index.unsigned_abs()).ok()?)
    }
}

fn clamp(bound: i64, length: usize) -> usize {
    position(bound, length).unwrap_or(0).min(length)
}

fn children(value: &Value) -> Box<dyn Iterator<Item = &Value> + '_> {
    match value {
        Value::Array(items) => Box::new(items.iter()),
        Value::Object(fields) => Box::new(fields.values()),
        _ => Box::new(std::iter::empty()),
    }
}

fn anywhere<'tree>(value: &'tree Value, name: &str, found: &mut Vec<&'tree Value>) {
    found.extend(value.get(name));
    for child in children(value) {
        if found.len() <= RESULTS_MAX {
            anywhere(child, name, found);
        }
    }
}

fn passes(left: Option<&&Value>, operator: Operator, operand: &Operand, item: &Value) -> bool {
    let Some(left) = left else { return false };
    let ordering = match operand {
        Operand::Literal(text, true) => {
            left.as_str().map(|left| left.cmp(text.as_str())).or(Some(Ordering::Less).filter(
                |_| {
                    // A string never equals a value of another type.
                    operator == Operator::NotEqual
                },
            ))
        }
        Operand::Literal(text, false) => match (left.as_f64(), text.parse::<f64>()) {
            (Some(left), Ok(right)) => left.partial_cmp(&right),
            _ => Some(if left.to_string() == *text { Ordering::Equal } else { Ordering::Less }),
        },
        Operand::Path(path) => path.find(item).first().map(|right| {
            if left == right { Ordering::Equal } else { left.to_string().cmp(&right.to_string()) }
        }),
    };
    let Some(ordering) = ordering else { return false };
    match operator {
        Operator::Equal => ordering == Ordering::Equal,
        Operator::NotEqual => ordering != Ordering::Equal,
        Operator::Less => ordering == Ordering::Less,
        Operator::LessOrEqual => ordering != Ordering::Greater,
        Operator::Greater => ordering == Ordering::Greater,
        Operator::GreaterOrEqual => ordering != Ordering::Less,
    }
}

type Parsed<'text> = Result<(Option<Step>, &'text str), &'static str>;

fn next_step(text: &str) -> Parsed<'_> {
    if let Some(rest) = text.strip_prefix("..") {
        let (name, rest) = take_name(rest);
        if name.is_empty() {
            return Err("a field must follow ..");
        }
        return Ok((Some(Step::Anywhere(name)), rest));
    }
    if let Some(rest) = text.strip_prefix('[') {
        return bracket(rest);
    }
    let rest = text.strip_prefix('.').unwrap_or(text);
    if rest.starts_with('[') || rest.is_empty() {
        return Ok((None, rest));
    }
    let (name, rest) = take_name(rest);
    match name.as_str() {
        "" => Err("a field name is missing"),
        "*" => Ok((Some(Step::Every), rest)),
        _ => Ok((Some(Step::Field(name)), rest)),
    }
}

/// A field name up to the next `.` or `[`; a backslash protects the next character.
fn take_name(text: &str) -> (String, &str) {
    let mut name = String::new();
    let mut characters = text.char_indices();
    while let Some((index, character)) = characters.next() {
        match character {
            '\\' => name.extend(characters.next().map(|(_, protected)| protected)),
            '.' | '[' => return (name, &text[index..]),
            other => name.push(other),
        }
    }
    (name, "")
}

fn bracket(text: &str) -> Parsed<'_> {
    let end = closing_bracket(text).ok_or("a bracket is not closed")?;
    let (content, rest) = (text[..end].trim(), &text[end + 1..]);
    if content == "*" {
        return Ok((Some(Step::Every), rest));
    }
    if let Some(name) = quoted(content) {
        return Ok((Some(Step::Field(name.to_owned())), rest));
    }
    let filter = content.strip_prefix("?(").and_then(|content| content.strip_suffix(')'));
    if let Some(filter) = filter {
        return Ok((Some(parse_filter(filter)?), rest));
    }
    if let Some((start, end)) = content.split_once(':') {
        let bound = |text: &str| match text.trim() {
            "" => Ok(None),
            text => text.parse().map(Some).map_err(|_| "a slice needs numbers"),
        };
        return Ok((Some(Step::Slice(bound(start)?, bound(end)?)), rest));
    }
    let index = content.parse().map_err(|_| "an index must be a number")?;
    Ok((Some(Step::Index(index)), rest))
}

/// The position of the closing bracket; skips quotes and nested brackets.
fn closing_bracket(text: &str) -> Option<usize> {
    let mut depth = 0;
    let mut quote = None;
    for (index, character) in text.char_indices() {
        match (quote, character) {
            (Some(open), _) if character == open => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(character),
            (None, '[') => depth += 1,
            (None, ']') if depth == 0 => return Some(index),
            (None, ']') => depth -= 1,
            _ => {}
        }
    }
    None
}

fn quoted(text: &str) -> Option<&str> {
    ['\'', '"'].into_iter().find_map(|quote| text.strip_prefix(quote)?.strip_suffix(quote))
}

fn parse_filter(text: &str) -> Result<Step, &'static str> {
    let operators = [
        ("==", Operator::Equal),
        ("!=", Operator::NotEqual),
        ("<=", Operator::LessOrEqual),
        (">=", Operator::GreaterOrEqual),
        ("<", Operator::Less),
        (">", Operator::Greater),
    ];
    let path_of = |text: &str| {
        let path = text.trim().strip_prefix('@').ok_or("a filter must start with @")?;
        JsonPath::parse(path).map_err(|_| "the path of a filter is malformed")
    };
    for (sign, operator) in operators {
        let Some((left, right)) = text.split_once(sign) else { continue };
        let right = right.trim();
        let operand = match quoted(right) {
            Some(literal) => Operand::Literal(literal.to_owned(), true),
            None if right.starts_with('@') => Operand::Path(path_of(right)?),
            None => Operand::Literal(right.to_owned(), false),
        };
        return Ok(Step::Filter { path: path_of(left)?, operator, operand });
    }
    path_of(text).map(Step::Exists)
}

#[cfg(test)]
mod tests;
