//! Finds values in JSON bytes without building trees.
//!
//! Checks only the structure: strings end, brackets close. The code that parses the found parts
//! checks whether numbers, words and escapes are valid.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memmem;
use serde_json::{Map, Value};
use smallvec::SmallVec;

use crate::json::deep;

mod brackets;

/// The bytes are not JSON.
#[derive(Debug, thiserror::Error)]
#[error("it is not valid JSON at byte {0}")]
pub(crate) struct Malformed(usize);

impl Malformed {
    /// For JSON of which only some part was checked.
    pub(crate) fn somewhere() -> Self {
        Self(0)
    }
}

/// A string between quotes, in its encoded form.
#[derive(Clone, Copy)]
pub(crate) struct Text<'a> {
    raw: &'a [u8],
    start: usize,
    has_escapes: bool,
}

impl<'a> Text<'a> {
    /// The place of the string in the bytes, if it has no escapes.
    pub(crate) fn plain(&self) -> Option<Range<usize>> {
        (!self.has_escapes).then(|| self.start..self.start + self.raw.len())
    }

    /// Decodes the string.
    pub(crate) fn read(&self) -> Result<Cow<'a, str>, Malformed> {
        let malformed = Malformed(self.start);
        if self.has_escapes {
            if let Some(text) = unescaped(self.raw) {
                return Ok(Cow::Owned(text));
            }
            let quoted = [b"\"", self.raw, b"\""].concat();
            return serde_json::from_slice(&quoted).map(Cow::Owned).map_err(|_| malformed);
        }
        std::str::from_utf8(self.raw).map(Cow::Borrowed).map_err(|_| malformed)
    }

    /// Decodes the string as bytes; those of strings without escapes are not checked.
    pub(crate) fn bytes(&self) -> Result<Cow<'a, [u8]>, Malformed> {
        match self.has_escapes {
            false => Ok(Cow::Borrowed(self.raw)),
            true => Ok(Cow::Owned(self.read()?.into_owned().into_bytes())),
        }
    }

    /// The string with its quotes; `bytes` is the JSON that contains it.
    pub(crate) fn quoted(&self, bytes: &'a [u8]) -> &'a [u8] {
        &bytes[self.start - 1..=self.start + self.raw.len()]
    }

    /// Whether both strings have the same encoded form.
    pub(crate) fn is_written_as(&self, other: &Text<'_>) -> bool {
        self.raw == other.raw
    }

    /// Whether the string equals this one; always false for strings with escapes.
    pub(crate) fn is(&self, other: &str) -> bool {
        !self.has_escapes && self.raw == other.as_bytes()
    }
}

/// A position in JSON bytes.
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    /// Starts at the beginning of the bytes.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Passes every member of a map to a function, which must skip the value.
    pub(crate) fn members(
        &mut self,
        mut take: impl FnMut(&mut Self, Text<'a>) -> Result<(), Malformed>,
    ) -> Result<(), Malformed> {
        self.step(b'{')?;
        if self.peek()? == b'}' {
            self.at += 1;
            return Ok(());
        }
        loop {
            let key = self.text()?;
            self.step(b':')?;
            take(self, key)?;
            match self.peek()? {
                b',' => self.at += 1,
                b'}' => {
                    self.at += 1;
                    return Ok(());
                }
                _ => return Err(self.malformed()),
            }
        }
    }

    /// The next member of a map, which must be valid JSON: the first one at its beginning.
    pub(crate) fn next_member(&mut self) -> Result<Option<(Text<'a>, &'a [u8])>, Malformed> {
        if !self.goes_on((b'{', b'}'))? {
            return Ok(None);
        }
        let key = self.text()?;
        self.step(b':')?;
        let value = self.value()?;
        Ok(Some((key, self.at(&value))))
    }

    /// The same for a list.
    pub(crate) fn next_item(&mut self) -> Result<Option<&'a [u8]>, Malformed> {
        if !self.goes_on((b'[', b']'))? {
            return Ok(None);
        }
        let value = self.value()?;
        Ok(Some(self.at(&value)))
    }

    /// Skips the opening bracket or a comma; false at the closing bracket.
    fn goes_on(&mut self, (opening, closing): (u8, u8)) -> Result<bool, Malformed> {
        let first = self.peek()?;
        if first == opening || first == b',' {
            self.at += 1;
        } else if first != closing {
            return Err(self.malformed());
        }
        Ok(self.peek()? != closing)
    }

    /// Skips a string.
    pub(crate) fn text(&mut self) -> Result<Text<'a>, Malformed> {
        self.step(b'"')?;
        let start = self.at;
        let has_escapes = self.close_text()?;
        Ok(Text { raw: &self.bytes[start..self.at - 1], start, has_escapes })
    }

    /// Skips any value and returns its place.
    pub(crate) fn value(&mut self) -> Result<Range<usize>, Malformed> {
        let first = self.peek()?;
        let start = self.at;
        match first {
            b'"' => {
                self.at += 1;
                self.close_text()?;
            }
            b'{' | b'[' => self.close_brackets()?,
            _ => {
                let rest = &self.bytes[start..];
                let is_end = |byte: &u8| matches!(byte, b',' | b'}' | b']') || is_space(*byte);
                self.at += rest.iter().position(is_end).unwrap_or(rest.len());
                if self.at == start {
                    return Err(self.malformed());
                }
            }
        }
        Ok(start..self.at)
    }

    /// Whether null comes next; if so, skips it.
    pub(crate) fn null(&mut self) -> Result<bool, Malformed> {
        self.peek()?;
        let is_null = self.bytes[self.at..].starts_with(b"null");
        self.at += if is_null { 4 } else { 0 };
        Ok(is_null)
    }

    /// Fails if anything follows.
    pub(crate) fn end(mut self) -> Result<(), Malformed> {
        match self.peek() {
            Ok(_) => Err(self.malformed()),
            Err(_) => Ok(()),
        }
    }

    /// The bytes at a place.
    pub(crate) fn at(&self, place: &Range<usize>) -> &'a [u8] {
        &self.bytes[place.clone()]
    }

    pub(crate) fn malformed(&self) -> Malformed {
        Malformed(self.at)
    }

    /// The next byte that is not whitespace.
    fn peek(&mut self) -> Result<u8, Malformed> {
        while let Some(byte) = self.bytes.get(self.at) {
            if !is_space(*byte) {
                return Ok(*byte);
            }
            self.at += 1;
        }
        Err(self.malformed())
    }

    fn step(&mut self, wanted: u8) -> Result<(), Malformed> {
        if self.peek()? != wanted {
            return Err(self.malformed());
        }
        self.at += 1;
        Ok(())
    }

    /// Skips to the end of a string whose opening quote was read. Returns whether it has escapes.
    fn close_text(&mut self) -> Result<bool, Malformed> {
        let mut has_escapes = false;
        loop {
            while let Some(chunk) = self.bytes.get(self.at..).and_then(<[u8]>::first_chunk) {
                let chunk = u64::from_le_bytes(*chunk);
                let found = bytes_equal(chunk, b'"') | bytes_equal(chunk, b'\\');
                if found != 0 {
                    self.at += (found.trailing_zeros() / 8) as usize;
                    break;
                }
                self.at += 8;
            }
            match self.bytes.get(self.at) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(has_escapes);
                }
                Some(b'\\') => {
                    has_escapes = true;
                    self.at += 2;
                }
                Some(_) => self.at += 1,
                None => return Err(self.malformed()),
            }
        }
    }

    /// Skips a map or a list.
    fn close_brackets(&mut self) -> Result<(), Malformed> {
        match brackets::length(&self.bytes[self.at..]) {
            Some(length) => {
                self.at += length;
                Ok(())
            }
            None => {
                self.at = self.bytes.len();
                Err(self.malformed())
            }
        }
    }
}

/// The member of a map, or `None` if it is absent or this is not a map.
pub(crate) fn member<'a>(raw: &'a [u8], key: &str) -> Result<Option<&'a [u8]>, Malformed> {
    let mut cursor = Cursor::new(raw);
    if cursor.peek().ok() != Some(b'{') {
        return Ok(None);
    }
    let mut found = None;
    cursor.members(|cursor, name| {
        let value = cursor.value()?;
        if name.is(key) || (name.has_escapes && name.read()? == key) {
            found = Some(cursor.at(&value));
        }
        Ok(())
    })?;
    Ok(found)
}

/// Whether a string occurs, or may occur in escaped form, anywhere in the bytes. Much faster than
/// finding where.
pub(crate) fn may_mention(raw: &[u8], text: &str) -> bool {
    let has = |part: &[u8]| memmem::find(raw, part).is_some();
    // These escapes may stand for characters that do not need them. Most objects have none at all.
    has(text.as_bytes()) || (memchr::memchr(b'\\', raw).is_some() && (has(b"\\u") || has(b"\\/")))
}

/// Parses the members of a map whose keys are accepted.
pub(crate) fn members(
    raw: &[u8],
    accepts: impl Fn(&str) -> bool,
) -> Result<Map<String, Value>, Malformed> {
    let mut members = Map::new();
    Cursor::new(raw).members(|cursor, key| {
        let (key, place) = (key.read()?, cursor.value()?);
        if accepts(&key) {
            let value = deep::read(cursor.at(&place));
            members.insert(key.into_owned(), value.map_err(|_| cursor.malformed())?);
        }
        Ok(())
    })?;
    Ok(members)
}

/// A member of a map: its key, and its encoded value.
pub(crate) type Entry<'a> = (Cow<'a, str>, &'a [u8]);

/// The members of a map; those of typical labels and annotations need no allocation.
pub(crate) type Entries<'a> = SmallVec<[Entry<'a>; 6]>;

/// All members of a map; none if there are no bytes.
pub(crate) fn entries(raw: &[u8]) -> Result<Entries<'_>, Malformed> {
    let mut entries = Entries::new();
    if !raw.is_empty() {
        Cursor::new(raw).members(|cursor, key| {
            let value = cursor.value()?;
            entries.push((key.read()?, cursor.at(&value)));
            Ok(())
        })?;
    }
    Ok(entries)
}

/// Decodes a string with escapes of single characters; `None` if it has others or is invalid.
fn unescaped(raw: &[u8]) -> Option<String> {
    if raw.iter().any(|byte| *byte < b' ') {
        return None;
    }
    let mut text = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(plain) = memchr::memchr(b'\\', rest) {
        text.extend_from_slice(&rest[..plain]);
        text.push(match rest.get(plain + 1)? {
            letter @ (b'"' | b'\\' | b'/') => *letter,
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'b' => 0x08,
            b'f' => 0x0c,
            _ => return None,
        });
        rest = &rest[plain + 2..];
    }
    text.extend_from_slice(rest);
    String::from_utf8(text).ok()
}

/// Sets the highest bit of every byte that equals `wanted`, and possibly of bytes after the first
/// match.
pub(crate) fn bytes_equal(chunk: u64, wanted: u8) -> u64 {
    const LOWEST: u64 = 0x0101_0101_0101_0101;
    let differs = chunk ^ (LOWEST * u64::from(wanted));
    differs.wrapping_sub(LOWEST) & !differs & (LOWEST << 7)
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}

#[cfg(test)]
mod tests;
