//! Writes the same JSON as `serde_json`, but faster: for data that is sent with every change.
//!
//! Patches contain copies of objects as strings, in which about every seventh character is a quote.

use serde_json::{Map, Value};

use crate::json::raw::bytes_equal;

/// Appends a value.
pub fn push_value(into: &mut Vec<u8>, value: &Value) {
    match value {
        Value::String(text) => push_string(into, text),
        Value::Object(fields) => push_fields(into, fields),
        Value::Array(items) => {
            into.push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    into.push(b',');
                }
                push_value(into, item);
            }
            into.push(b']');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => push_other(into, value),
    }
}

fn push_fields(into: &mut Vec<u8>, fields: &Map<String, Value>) {
    into.push(b'{');
    for (index, (name, field)) in fields.iter().enumerate() {
        if index > 0 {
            into.push(b',');
        }
        push_name(into, name);
        push_value(into, field);
    }
    into.push(b'}');
}

/// Appends the name of a field, including the colon.
pub fn push_name(into: &mut Vec<u8>, name: &str) {
    push_string(into, name);
    into.push(b':');
}

/// Appends a string in quotes.
pub fn push_string(into: &mut Vec<u8>, text: &str) {
    let start = into.len();
    into.reserve(text.len() + text.len() / 4 + 2);
    into.push(b'"');
    let mut rest = text.as_bytes();
    loop {
        let plain = plain_length(rest);
        into.extend_from_slice(&rest[..plain]);
        let Some(&byte) = rest.get(plain) else { break };
        rest = &rest[plain + 1..];
        let letter = match byte {
            b'"' | b'\\' => byte,
            b'\n' => b'n',
            b'\t' => b't',
            b'\r' => b'r',
            _ => {
                // Other control characters are rare.
                into.truncate(start);
                return push_other(into, text);
            }
        };
        into.extend_from_slice(&[b'\\', letter]);
    }
    into.push(b'"');
}

/// The number of leading bytes that are neither quotes, backslashes nor control characters.
fn plain_length(bytes: &[u8]) -> usize {
    let (words, rest) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let found = specials(u64::from_le_bytes(*word));
        if found != 0 {
            return 8 * index + (found.trailing_zeros() / 8) as usize;
        }
    }
    let is_special = |byte: &u8| matches!(byte, 0..b' ' | b'"' | b'\\');
    bytes.len() - rest.len() + rest.iter().position(is_special).unwrap_or(rest.len())
}

/// Sets the highest bit of the first byte that needs an escape, and possibly of bytes after it.
fn specials(word: u64) -> u64 {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    let control = word.wrapping_sub(ONES * u64::from(b' ')) & !word;
    (control | bytes_equal(word, b'"') | bytes_equal(word, b'\\')) & (ONES << 7)
}

fn push_other(into: &mut Vec<u8>, value: &(impl serde::Serialize + ?Sized)) {
    serde_json::to_writer(into, value).expect("JSON values are always written");
}

#[cfg(test)]
mod tests;
