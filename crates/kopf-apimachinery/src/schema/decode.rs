//! Decodes JSON and YAML bodies into trees and notes duplicate keys.
//!
//! Implements what a Kubernetes decoder does beyond JSON: the last duplicate wins but is reported,
//! YAML follows version 1.1 where `y` is a boolean, and map keys become strings. Does not use
//! schemas. Depth and aliases are limited, so that no body can exhaust the stack.

mod plain;
mod yaml;

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::map::Entry;
use serde_json::{Map, Number, Value};

pub use plain::plain;
pub use yaml::yaml;

/// How deeply values may nest. Upstream's limit is 10000, for which stacks would be too small.
pub(crate) const DEPTH_MAX: usize = 255;

/// How many duplicates are reported; upstream has the same limit.
const DUPLICATES_MAX: usize = 100;

/// A decoded body.
#[derive(Debug, Default, PartialEq)]
pub struct Decoded {
    /// The tree.
    pub value: Value,
    /// Problems that strict decoding reports: `duplicate field "data.a"`.
    pub duplicates: Vec<String>,
}

/// An error about a body that cannot be decoded, in the words of upstream's decoder where known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodeError(pub(crate) String);

impl fmt::Display for DecodeError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for DecodeError {}

/// Decodes a JSON body.
pub fn json(body: &[u8]) -> Result<Decoded, DecodeError> {
    match plain(body) {
        Some(value) => Ok(Decoded { value, duplicates: Vec::new() }),
        None => general(body),
    }
}

fn general(body: &[u8]) -> Result<Decoded, DecodeError> {
    let mut duplicates = Vec::new();
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    // The seed limits the depth: serde_json's limit of 128 is less than that of other encodings.
    deserializer.disable_recursion_limit();
    let seed = Tree { duplicates: &mut duplicates, path: &Path::Root, depth: 0 };
    let value = seed.deserialize(&mut deserializer).map_err(|error| explain(body, &error))?;
    deserializer.end().map_err(|error| explain(body, &error))?;
    Ok(Decoded { value, duplicates })
}

/// Returns the error message of Go's decoder for common syntax errors.
fn explain(body: &[u8], error: &serde_json::Error) -> DecodeError {
    if error.is_eof() {
        return DecodeError("unexpected end of JSON input".to_owned());
    }
    let line_start = body
        .split(|byte| *byte == b'\n')
        .take(error.line().saturating_sub(1))
        .map(|line| line.len() + 1)
        .sum::<usize>();
    let at = line_start + error.column().saturating_sub(1);
    let character = body.get(at).copied().map_or(' ', char::from);
    let found = quote(character);
    let text = error.to_string();
    if text.starts_with("trailing characters") {
        DecodeError(format!("invalid character {found} after top-level value"))
    } else if text.starts_with("key must be a string") {
        DecodeError(format!("invalid character {found} looking for beginning of object key string"))
    } else if text.starts_with("expected `:`") {
        DecodeError(format!("invalid character {found} after object key"))
    } else if text.starts_with("expected `,` or `}`") {
        DecodeError(format!("invalid character {found} after object key:value pair"))
    } else if text.starts_with("expected `,` or `]`") {
        DecodeError(format!("invalid character {found} after array element"))
    } else if text.starts_with(TOO_DEEP) {
        too_deep()
    } else if let Some((literal, expected)) = broken_literal(body, at) {
        let expected = quote(expected);
        DecodeError(format!(
            "invalid character {found} in literal {literal} (expecting {expected})"
        ))
    } else {
        DecodeError(format!("invalid character {found} looking for beginning of value"))
    }
}

/// The literal that a character breaks, and the expected character.
fn broken_literal(body: &[u8], at: usize) -> Option<(&'static str, char)> {
    ["true", "false", "null"].into_iter().find_map(|literal| {
        (1..literal.len()).rev().find_map(|length| {
            let start = at.checked_sub(length)?;
            let is_start = body.get(start..at)? == &literal.as_bytes()[..length];
            let is_broken = body.get(at) != Some(&literal.as_bytes()[length]);
            let expected = char::from(literal.as_bytes()[length]);
            (is_start && is_broken).then_some((literal, expected))
        })
    })
}

/// A character as Go quotes it.
pub fn quote(character: char) -> String {
    match character {
        '\'' => "'\\''".to_owned(),
        '"' => "'\"'".to_owned(),
        '\u{7}' => "'\\a'".to_owned(),
        '\u{8}' => "'\\b'".to_owned(),
        '\u{c}' => "'\\f'".to_owned(),
        '\n' => "'\\n'".to_owned(),
        '\r' => "'\\r'".to_owned(),
        '\t' => "'\\t'".to_owned(),
        '\u{b}' => "'\\v'".to_owned(),
        '\\' => "'\\\\'".to_owned(),
        control if control < ' ' || control == '\u{7f}' => format!("'\\x{:02x}'", control as u32),
        // Non-printable characters beyond ASCII are shown as their code.
        other if other.is_control() || other == '\u{a0}' || other == '\u{ad}' => {
            format!("'\\u{:04x}'", other as u32)
        }
        other => format!("'{other}'"),
    }
}

/// Builds a tree and notes duplicate keys.
struct Tree<'a> {
    duplicates: &'a mut Vec<String>,
    path: &'a Path<'a>,
    depth: usize,
}

/// The path to a value, formatted only if there is something to report.
enum Path<'a> {
    Root,
    Name(&'a Path<'a>, &'a str),
    Index(&'a Path<'a>, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Name(Self::Root, name) => formatter.write_str(name),
            Self::Name(parent, name) => write!(formatter, "{parent}.{name}"),
            Self::Index(parent, index) => write!(formatter, "{parent}[{index}]"),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Tree<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Tree<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(whole_number(value)))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        check_depth(self.depth)?;
        let mut list = Vec::new();
        loop {
            let path = Path::Index(self.path, list.len());
            let seed = Tree { duplicates: self.duplicates, path: &path, depth: self.depth + 1 };
            match items.next_element_seed(seed)? {
                Some(item) => list.push(item),
                None => return Ok(Value::Array(list)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        check_depth(self.depth)?;
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let path = Path::Name(self.path, &key);
            let seed = Tree { duplicates: self.duplicates, path: &path, depth: self.depth + 1 };
            let value = entries.next_value_seed(seed)?;
            match map.entry(key) {
                Entry::Vacant(place) => {
                    place.insert(value);
                }
                Entry::Occupied(mut place) => {
                    if self.duplicates.len() < DUPLICATES_MAX {
                        let path = Path::Name(self.path, place.key());
                        self.duplicates.push(format!("duplicate field \"{path}\""));
                    }
                    place.insert(value);
                }
            }
        }
        Ok(Value::Object(map))
    }
}

/// Integers that do not fit into a signed 64-bit integer are floats, as in Go.
fn whole_number(value: u64) -> Number {
    match i64::try_from(value) {
        Ok(value) => value.into(),
        Err(_) => Number::from_f64(value as f64).unwrap_or_else(|| value.into()),
    }
}

/// How deeply a value nests: 0 for scalars.
pub(crate) fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

fn check_depth<E: serde::de::Error>(depth: usize) -> Result<(), E> {
    if depth >= DEPTH_MAX { Err(E::custom(TOO_DEEP)) } else { Ok(()) }
}

const TOO_DEEP: &str = "nested too deeply";

fn too_deep() -> DecodeError {
    DecodeError(format!("exceeded max depth ({DEPTH_MAX} levels)"))
}

#[cfg(test)]
mod tests;
