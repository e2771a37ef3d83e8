//! JSON text exactly as Kopf writes it: compact, in insertion order, with non-ASCII escaped.
//!
//! Used for data stored on objects, where the bytes should not depend on the engine.

use std::io;

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::Formatter;

use crate::json::deep;
use crate::json::raw::{Malformed, bytes_equal};

/// Integers with at most this many digits are written as they are read.
const PLAIN_DIGITS_MAX: usize = 18;

/// Compact JSON in which every character outside printable ASCII is escaped as `\uXXXX`.
pub(crate) fn to_ascii(value: &impl Serialize) -> String {
    let mut text = Vec::with_capacity(256);
    let mut serializer = serde_json::Serializer::with_formatter(&mut text, AsciiFormatter);
    value.serialize(&mut serializer).expect("stored values have string keys and finite numbers");
    String::from_utf8(text).expect("only ASCII was written")
}

/// Appends JSON in the same form; unchanged if it already has that form.
///
/// Appends only ASCII.
pub(crate) fn push_ascii(text: &mut Vec<u8>, json: &[u8]) -> Result<(), Malformed> {
    if has_form(json) {
        text.extend_from_slice(json);
    } else {
        let value: Value = deep::read(json).map_err(|_| Malformed::somewhere())?;
        text.extend_from_slice(to_ascii(&value).as_bytes());
    }
    Ok(())
}

/// Appends a string in the same form.
pub(crate) fn push_ascii_text(text: &mut Vec<u8>, plain: &str) {
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\');
    if plain.bytes().all(is_plain) {
        text.push(b'"');
        text.extend_from_slice(plain.as_bytes());
        text.push(b'"');
    } else {
        text.extend_from_slice(to_ascii(&plain).as_bytes());
    }
}

/// Whether JSON certainly has the form that [`to_ascii`] would give it.
fn has_form(json: &[u8]) -> bool {
    let mut at = 0;
    while let Some(byte) = json.get(at) {
        let length = match byte {
            b'{' | b'}' | b'[' | b']' | b':' | b',' => Some(1),
            b'"' => plain_string(&json[at..]),
            b'-' | b'0'..=b'9' => plain_integer(&json[at..]),
            _ => ["true", "false", "null"]
                .iter()
                .find(|word| json[at..].starts_with(word.as_bytes()))
                .map(|word| word.len()),
        };
        match length {
            Some(length) => at += length,
            None => return false,
        }
    }
    true
}

/// The length of a leading string, if it has only printable ASCII and the shortest escapes.
pub(crate) fn plain_string(json: &[u8]) -> Option<usize> {
    let mut at = 1;
    loop {
        while let Some(chunk) = json.get(at..at + 8) {
            let chunk = u64::from_le_bytes(chunk.try_into().expect("there are eight bytes"));
            let found = special_bytes(chunk);
            if found != 0 {
                at += (found.trailing_zeros() / 8) as usize;
                break;
            }
            at += 8;
        }
        match json.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => match json.get(at + 1)? {
                b'"' | b'\\' | b'n' | b'r' | b't' | b'b' | b'f' => at += 2,
                _ => return None,
            },
            b' '..=b'~' => at += 1,
            _ => return None,
        }
    }
}

/// Sets the highest bit of every byte that is not printable ASCII, a quote or a backslash, and
/// possibly of bytes after the first.
fn special_bytes(chunk: u64) -> u64 {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGHEST_BITS: u64 = ONES << 7;
    let control = chunk.wrapping_sub(ONES * u64::from(b' ')) & !chunk;
    let marks = bytes_equal(chunk, b'"') | bytes_equal(chunk, b'\\') | bytes_equal(chunk, 0x7f);
    (control | chunk | marks) & HIGHEST_BITS
}

/// The length of a leading number, if it is an integer of ordinary size.
pub(crate) fn plain_integer(json: &[u8]) -> Option<usize> {
    let sign = usize::from(json.first() == Some(&b'-'));
    let digits = json[sign..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let is_plain = match json.get(sign) {
        Some(b'0') => digits == 1 && sign == 0,
        _ => (1..=PLAIN_DIGITS_MAX).contains(&digits),
    };
    let end = sign + digits;
    let ends = json.get(end).is_none_or(|byte| matches!(byte, b',' | b'}' | b']'));
    (is_plain && ends).then_some(end)
}

struct AsciiFormatter;

impl Formatter for AsciiFormatter {
    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut plain_from = 0;
        for (index, character) in fragment.char_indices() {
            if character <= '~' {
                continue;
            }
            writer.write_all(&fragment.as_bytes()[plain_from..index])?;
            for unit in character.encode_utf16(&mut [0; 2]) {
                write!(writer, "\\u{unit:04x}")?;
            }
            plain_from = index + character.len_utf8();
        }
        writer.write_all(&fragment.as_bytes()[plain_from..])
    }
}

#[cfg(test)]
mod tests;
