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
    into.push(b'"');
    for piece in text.as_bytes().chunks(PIECE) {
        if !push_piece(into, piece) {
            // Control characters without a short escape are rare.
            into.truncate(start);
            return push_other(into, text);
        }
    }
    into.push(b'"');
}

/// How many bytes of a string are written at a time.
const PIECE: usize = 256;

/// Appends a piece of a string; false if it has a character that needs a long escape.
///
/// There is room for the longest result at once, and whole words are written even if only their
/// beginning is needed: a copy of each run between two escapes would take twice as long.
fn push_piece(into: &mut Vec<u8>, piece: &[u8]) -> bool {
    let start = into.len();
    into.resize(start + 2 * piece.len() + WORD, 0);
    let out = &mut into[start..];
    let (mut read, mut written) = (0, 0);
    while let Some(byte) = piece.get(read) {
        if let Some(word) = piece[read..].first_chunk::<WORD>() {
            out[written..written + WORD].copy_from_slice(word);
            let found = specials(u64::from_le_bytes(*word));
            let plain = if found == 0 { WORD } else { (found.trailing_zeros() / 8) as usize };
            if plain > 0 {
                (read, written) = (read + plain, written + plain);
                continue;
            }
        }
        read += 1;
        let letter = match byte {
            b'"' | b'\\' => *byte,
            b'\n' => b'n',
            b'\t' => b't',
            b'\r' => b'r',
            0..b' ' => return false,
            _ => {
                out[written] = *byte;
                written += 1;
                continue;
            }
        };
        out[written..written + 2].copy_from_slice(&[b'\\', letter]);
        written += 2;
    }
    into.truncate(start + written);
    true
}

const WORD: usize = 8;

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
