//! Reads JSON that this server wrote, without making trees of it.
//!
//! Managed fields are kept as text, and most writes want to know one thing about a few of their
//! keys. Expects what the encoder writes: no white space, every bracket closed. Other text is
//! never read beyond its end, but what comes out of it means nothing.

use std::borrow::Cow;

use serde_json::{Map, Value};

/// One field of an object: the name as it is spelled between the quotes, and the value.
pub(crate) type RawField<'a> = (&'a [u8], &'a [u8]);

/// The fields of an object; none of anything else.
pub(crate) fn fields(text: &[u8]) -> impl Iterator<Item = RawField<'_>> {
    let mut rest = text.strip_prefix(b"{").unwrap_or_default();
    std::iter::from_fn(move || {
        rest = rest.strip_prefix(b",").unwrap_or(rest);
        let (name, after) = rest.split_at_checked(string_length(rest))?;
        let (value, after) = split_value(after.strip_prefix(b":")?);
        rest = after;
        Some((name.get(1..name.len().checked_sub(1)?)?, value))
    })
}

/// The items of a list; none of anything else.
pub(crate) fn items(text: &[u8]) -> impl Iterator<Item = &[u8]> {
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

/// The string that a text is, if it is one.
pub(crate) fn string(text: &[u8]) -> Option<Cow<'_, str>> {
    unescaped(text.strip_prefix(b"\"")?.strip_suffix(b"\"")?)
}

/// A name as it is between the quotes, without its escapes.
pub(crate) fn unescaped(name: &[u8]) -> Option<Cow<'_, str>> {
    if !name.contains(&b'\\') {
        return std::str::from_utf8(name).ok().map(Cow::Borrowed);
    }
    serde_json::from_slice(&[b"\"", name, b"\""].concat()).ok().map(Cow::Owned)
}

/// The tree of a text, however deep; the general decoder has a limit.
pub(crate) fn tree(text: &[u8]) -> Value {
    match text.first() {
        Some(b'{') => {
            let named = |(name, value)| Some((unescaped(name)?.into_owned(), tree(value)));
            Value::Object(fields(text).filter_map(named).collect::<Map<String, Value>>())
        }
        Some(b'[') => Value::Array(items(text).map(tree).collect()),
        _ => serde_json::from_slice(text).unwrap_or_default(),
    }
}

/// How long the string is with which a text begins, quotes included; 0 if there is none.
fn string_length(text: &[u8]) -> usize {
    if text.first() != Some(&b'"') {
        return 0;
    }
    let mut index = 1;
    while let Some(byte) = text.get(index) {
        match byte {
            b'"' => return index + 1,
            b'\\' => index += 2,
            _ => index += 1,
        }
    }
    text.len()
}

/// The value with which a text begins, and what follows it.
fn split_value(text: &[u8]) -> (&[u8], &[u8]) {
    let mut depth = 0_usize;
    let mut index = 0;
    while let Some(byte) = text.get(index) {
        match byte {
            b'"' => index += string_length(&text[index..]) - 1,
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth > 0 => depth -= 1,
            b'}' | b']' | b',' if depth == 0 => return text.split_at(index),
            _ => {}
        }
        index += 1;
        if depth == 0 && matches!(byte, b'"' | b'}' | b']') {
            break;
        }
    }
    text.split_at(index.min(text.len()))
}

#[cfg(test)]
mod tests;
