//! YAML 1.1 as upstream reads it: `y`, `yes` and `on` are booleans, `0o17` is not a number.
//!
//! A loader over the events of `granit-parser`, which distinguishes plain from quoted scalars and
//! has positions. If a body has several documents, only the first one is read.

use std::collections::HashMap;

use base64::Engine;
use granit_parser::{ErrorKind, Event, Parser, ScalarStyle, ScanError, Span, Tag};
use serde_json::{Map, Number, Value};

use super::{DEPTH_MAX, DecodeError, Decoded, too_deep, whole_number};
use crate::go_print::go_syntax;

/// How many values anchors and aliases may copy in one body.
const COPIED_VALUES_MAX: usize = 10_000;

/// How many bytes of text anchors and aliases may copy in one body.
const COPIED_BYTES_MAX: usize = 8 << 20;

/// Decodes a YAML (or JSON) body.
pub fn yaml(body: &[u8]) -> Result<Decoded, DecodeError> {
    let text = std::str::from_utf8(body)
        .map_err(|_| DecodeError("yaml: invalid leading UTF-8 octet".to_owned()))?;
    match plain_json(text) {
        Some(value) => Ok(Decoded { value, duplicates: Vec::new() }),
        None => load(text),
    }
}

fn load(text: &str) -> Result<Decoded, DecodeError> {
    let mut loader = Loader {
        text,
        events: Parser::new_from_str(text),
        anchors: HashMap::new(),
        copies_left: Weight { values: COPIED_VALUES_MAX, bytes: COPIED_BYTES_MAX },
        duplicates: Vec::new(),
    };
    let value = loader.document()?;
    Ok(Decoded { value, duplicates: loader.duplicates })
}

/// Decodes JSON that means the same in YAML, which is most of what programs send.
///
/// Tabs, `\/` and characters that YAML does not print are left to the loader.
fn plain_json(text: &str) -> Option<Value> {
    let is_plain = text.starts_with('{')
        && text.bytes().all(|byte| matches!(byte, b'\n' | b' '..=b'~'))
        && !text.contains("\\/");
    if is_plain { super::plain(text.as_bytes()) } else { None }
}

struct Loader<'input> {
    text: &'input str,
    events: Parser<'input, granit_parser::StrInput<'input>>,
    anchors: HashMap<usize, Value>,
    copies_left: Weight,
    duplicates: Vec<String>,
}

impl<'input> Loader<'input> {
    fn document(&mut self) -> Result<Value, DecodeError> {
        loop {
            let (event, span) = self.next()?;
            match event {
                Event::StreamStart | Event::DocumentStart(..) => {}
                Event::StreamEnd | Event::DocumentEnd => return Ok(Value::Null),
                event => return self.node(event, &span, 0),
            }
        }
    }

    /// The next event that is not a comment.
    fn next(&mut self) -> Result<(Event<'input>, Span), DecodeError> {
        loop {
            match self.events.next_event() {
                None => return Ok((Event::StreamEnd, Span::default())),
                Some(Err(error)) => return Err(explain(self.text, &error)),
                Some(Ok((Event::Comment(..), _))) => {}
                Some(Ok(event)) => return Ok(event),
            }
        }
    }

    fn node(
        &mut self,
        event: Event<'input>,
        span: &Span,
        depth: usize,
    ) -> Result<Value, DecodeError> {
        let is_deeper = matches!(event, Event::SequenceStart(..) | Event::MappingStart(..));
        if is_deeper && depth >= DEPTH_MAX {
            return Err(at(span, &too_deep().0));
        }
        let (value, anchor) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                (scalar(&text, style, tag.as_deref()).map_err(DecodeError)?, anchor)
            }
            Event::SequenceStart(_, anchor, _) => (self.sequence(depth)?, anchor),
            Event::MappingStart(_, anchor, _) => (self.mapping(depth)?, anchor),
            Event::Alias(id) => return self.alias(id, span, depth),
            _ => return Err(at(span, "did not find expected node content")),
        };
        if anchor != 0 {
            let copy = self.copy(&value, span)?;
            self.anchors.insert(anchor, copy);
        }
        Ok(value)
    }

    fn alias(&mut self, id: usize, span: &Span, depth: usize) -> Result<Value, DecodeError> {
        let value =
            self.anchors.remove(&id).ok_or_else(|| at(span, "unknown anchor referenced"))?;
        let copy = self.copy(&value, span)?;
        if depth + super::depth(&value) > DEPTH_MAX {
            return Err(at(span, &too_deep().0));
        }
        self.anchors.insert(id, value);
        Ok(copy)
    }

    /// Copies a value, within the limits.
    fn copy(&mut self, value: &Value, span: &Span) -> Result<Value, DecodeError> {
        let weight = Weight::of(value);
        let left = self.copies_left.without(&weight);
        self.copies_left = left.ok_or_else(|| at(span, "document contains excessive aliasing"))?;
        Ok(value.clone())
    }

    fn sequence(&mut self, depth: usize) -> Result<Value, DecodeError> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(Value::Array(items)),
                (event, span) => items.push(self.node(event, &span, depth + 1)?),
            }
        }
    }

    fn mapping(&mut self, depth: usize) -> Result<Value, DecodeError> {
        let mut map = Map::new();
        let mut merged = Vec::new();
        loop {
            let (event, span) = self.next()?;
            if matches!(event, Event::MappingEnd) {
                break;
            }
            let merges =
                matches!(&event, Event::Scalar(text, ScalarStyle::Plain, ..) if text == "<<");
            let key = self.node(event, &span, depth + 1)?;
            let (event, value_span) = self.next()?;
            let value = self.node(event, &value_span, depth + 1)?;
            let key = key_text(key, &value).map_err(DecodeError)?;
            if merges {
                merged.push(value);
                continue;
            }
            if map.contains_key(&key) {
                let line = span.start.line();
                self.duplicates.push(format!("line {line}: key {key:?} already set in map"));
            }
            map.insert(key, value);
        }
        for source in merged {
            merge_into(&mut map, source);
        }
        Ok(Value::Object(map))
    }
}

/// `<<: *base` fills in keys that the mapping itself does not set.
fn merge_into(map: &mut Map<String, Value>, source: Value) {
    match source {
        Value::Object(fields) => {
            for (key, value) in fields {
                map.entry(key).or_insert(value);
            }
        }
        Value::Array(sources) => sources.into_iter().for_each(|source| merge_into(map, source)),
        _ => {}
    }
}

/// The size of a copy.
#[derive(Default)]
struct Weight {
    values: usize,
    bytes: usize,
}

impl Weight {
    fn of(value: &Value) -> Self {
        let mut weight = Self::default();
        weight.add(value);
        weight
    }

    fn add(&mut self, value: &Value) {
        self.values += 1;
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.add(item)),
            Value::Object(fields) => {
                for (name, field) in fields {
                    self.bytes += name.len();
                    self.add(field);
                }
            }
            Value::String(text) => self.bytes += text.len(),
            _ => {}
        }
    }

    fn without(&self, other: &Self) -> Option<Self> {
        let values = self.values.checked_sub(other.values)?;
        let bytes = self.bytes.checked_sub(other.bytes)?;
        Some(Self { values, bytes })
    }
}

fn key_text(key: Value, value: &Value) -> Result<String, String> {
    match key {
        Value::String(text) => Ok(text),
        Value::Null => Err(format!(
            "unsupported map key of type: %!s(<nil>), key: <nil>, value: {}",
            go_syntax(value)
        )),
        key @ (Value::Array(_) | Value::Object(_)) => {
            Err(format!("yaml: invalid map key: {}", go_syntax(&key)))
        }
        other => Ok(other.to_string()),
    }
}

/// The error message of Go's parser for broken text, where known.
fn explain(text: &str, error: &ScanError) -> DecodeError {
    let line = error.marker().line();
    let problem = match error.kind() {
        ErrorKind::RecursionLimitExceeded => too_deep().0,
        _ => match error.info() {
            info if info.starts_with("unclosed bracket") => {
                let close = if info.contains('[') { ']' } else { '}' };
                match text.trim_end().chars().last() {
                    Some('[' | '{' | ',' | ':') => "did not find expected node content".to_owned(),
                    _ => format!("did not find expected ',' or '{close}'"),
                }
            }
            info => info,
        },
    };
    DecodeError(format!("yaml: line {line}: {problem}"))
}

fn at(span: &Span, problem: &str) -> DecodeError {
    DecodeError(format!("yaml: line {}: {problem}", span.start.line()))
}

fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Result<Value, String> {
    match tag.map(Tag::suffix) {
        Some("str") => Ok(Value::String(text.to_owned())),
        Some("binary") => {
            let bytes = base64::engine::general_purpose::STANDARD.decode(text);
            let bytes = bytes.map_err(|_| "yaml: !!binary value contains invalid base64 data")?;
            Ok(Value::String(String::from_utf8_lossy(&bytes).into_owned()))
        }
        Some(wanted @ ("int" | "float" | "bool" | "null")) => {
            let value = plain(text)?;
            let found = match &value {
                Value::Null => "null",
                Value::Bool(_) => "bool",
                Value::Number(number) if number.is_f64() => "float",
                Value::Number(_) => "int",
                _ => "str",
            };
            let fits = found == wanted || (wanted == "float" && found == "int");
            let problem = || format!("yaml: cannot decode !!{found} `{text}` as a !!{wanted}");
            if fits { Ok(value) } else { Err(problem()) }
        }
        _ if style != ScalarStyle::Plain => Ok(Value::String(text.to_owned())),
        _ => plain(text),
    }
}

fn plain(text: &str) -> Result<Value, String> {
    let unsupported = |name: &str| Err(format!("json: unsupported value: {name}"));
    Ok(match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            Value::Bool(true)
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            Value::Bool(false)
        }
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => return unsupported("+Inf"),
        "-.inf" | "-.Inf" | "-.INF" => return unsupported("-Inf"),
        ".nan" | ".NaN" | ".NAN" => return unsupported("NaN"),
        _ => number(text).map_or_else(|| Value::String(text.to_owned()), Value::Number),
    })
}

fn number(text: &str) -> Option<Number> {
    let first = text.bytes().next()?;
    if !first.is_ascii_digit() && !matches!(first, b'+' | b'-' | b'.') {
        return None;
    }
    let plain = text.replace('_', "");
    integer(&plain).or_else(|| float(&plain))
}

fn integer(text: &str) -> Option<Number> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let parse = |digits: &str, radix: u32| {
        let fits = !digits.is_empty() && digits.chars().all(|digit| digit.is_digit(radix));
        fits.then(|| u64::from_str_radix(digits, radix).ok()).flatten()
    };
    let lower = digits.to_ascii_lowercase();
    let magnitude = if let Some(hex) = lower.strip_prefix("0x") {
        parse(hex, 16)
    } else if let Some(binary) = lower.strip_prefix("0b") {
        parse(binary, 2)
    } else if let Some(octal) = lower.strip_prefix("0o") {
        parse(octal, 8)
    } else if lower.len() > 1 && lower.starts_with('0') {
        parse(&lower[1..], 8)
    } else {
        parse(&lower, 10)
    }?;
    if negative {
        let value = 0_i64.checked_sub_unsigned(magnitude)?;
        return Some(value.into());
    }
    Some(whole_number(magnitude))
}

fn float(text: &str) -> Option<Number> {
    let body = text.strip_prefix(['-', '+']).unwrap_or(text);
    let is_float = body.bytes().any(|byte| byte.is_ascii_digit())
        && body.bytes().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte));
    if !is_float {
        return None;
    }
    let value: f64 = text.parse().ok()?;
    if value.fract() == 0.0 && value.abs() < 9e15 && !body.contains(['.', 'e', 'E']) {
        return Some((value as i64).into());
    }
    Number::from_f64(value)
}

#[cfg(test)]
mod tests;
