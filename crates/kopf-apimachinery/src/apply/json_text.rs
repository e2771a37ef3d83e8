//! Reads JSON that this server wrote, without building trees.
//!
//! Managed fields are kept as text, and most writes only need to know about a few of their keys.
//! Expects the encoder's output: no white space and balanced brackets. Other text never causes a
//! read past its end, but gives meaningless results.

use std::borrow::Cow;

use serde_json::{Map, Value};

/// One field of an object: the name as it is spelled between the quotes, and the value.
pub(crate) type RawField<'a> = (&'a [u8], &'a [u8]);

/// The fields of an object; empty for any other value.
pub fn fields(text: &[u8]) -> impl Iterator<Item = RawField<'_>> {
    let mut rest = text.strip_prefix(b"{").unwrap_or_default();
    std::iter::from_fn(move || next_field(&mut rest))
}

/// Takes the next field of an object whose `{` has already been removed; `None` at the end.
pub(crate) fn next_field<'a>(rest: &mut &'a [u8]) -> Option<RawField<'a>> {
    let text = rest.strip_prefix(b",").unwrap_or(rest);
    let (name, after) = text.split_at_checked(string_length(text))?;
    let (value, after) = split_value(after.strip_prefix(b":")?);
    *rest = after;
    Some((name.get(1..name.len().checked_sub(1)?)?, value))
}

/// The items of a list; empty for any other value.
fn items(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = text.strip_prefix(b"[").unwrap_or_default();
    std::iter::from_fn(move || {
        rest = rest.strip_prefix(b",").unwrap_or(rest);
        if rest.is_empty() || rest.starts_with(b"]") {
            return None;
        }
        let (item, after) = split_value(rest);
        rest = after;
        Some(item)
    })
}

/// The string that a text encodes, if it encodes one.
pub fn string(text: &[u8]) -> Option<Cow<'_, str>> {
    unescaped(text.strip_prefix(b"\"")?.strip_suffix(b"\"")?)
}

/// Decodes a name as it is written between its quotes.
pub(crate) fn unescaped(name: &[u8]) -> Option<Cow<'_, str>> {
    if !name.contains(&b'\\') {
        return std::str::from_utf8(name).ok().map(Cow::Borrowed);
    }
    serde_json::from_slice(&[b"\"", name, b"\""].concat()).ok().map(Cow::Owned)
}

/// Parses a text of any depth; the general decoder has a depth limit.
pub fn tree(text: &[u8]) -> Value {
    match text.first() {
        Some(b'{') => {
            let named = |(name, value)| Some((unescaped(name)?.into_owned(), tree(value)));
            Value::Object(fields(text).filter_map(named).collect::<Map<String, Value>>())
        }
        Some(b'[') => Value::Array(items(text).map(tree).collect()),
        _ => serde_json::from_slice(text).unwrap_or_default(),
    }
}

/// The length of the string at the start of a text, including its quotes; 0 if there is none.
fn string_length(text: &[u8]) -> usize {
    let Some(mut rest) = text.strip_prefix(b"\"") else { return 0 };
    while let Some(place) = rest.iter().position(|byte| matches!(byte, b'"' | b'\\')) {
        let is_end = rest[place] == b'"';
        rest = rest.get(place + if is_end { 1 } else { 2 }..).unwrap_or_default();
        if is_end {
            break;
        }
    }
    text.len() - rest.len()
}

/// Splits a text into the value at its start and the rest.
fn split_value(text: &[u8]) -> (&[u8], &[u8]) {
    let mut depth = 0_usize;
    let mut index = 0;
    while let Some(byte) = text.get(index) {
        match byte {
            b'"' => {
                index += string_length(&text[index..]);
                if depth == 0 {
                    break;
                }
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' | b',' if depth == 0 => break,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    index += 1;
                    break;
                }
            }
            _ => {}
        }
        index += 1;
    }
    text.split_at(index)
}

#[cfg(test)]
mod tests;
