//! Finds things in JSON bytes without building trees.
//!
//! Only the structure is looked at: strings end, brackets close. Whether numbers, words and escapes
//! are valid is checked by the code that parses the found parts.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memmem;
use serde_json::{Map, Value};

use crate::json::deep;

mod brackets;

/// The bytes are not JSON.
#[derive(Debug, thiserror::Error)]
#[error("it is not valid JSON at byte {0}")]
pub(crate) struct Malformed(usize);

impl Malformed {
    /// Of which only some part was looked at.
    pub(crate) fn somewhere() -> Self {
        Self(0)
    }
}

/// A text between quotes, as it is written.
#[derive(Clone, Copy)]
pub(crate) struct Text<'a> {
    raw: &'a [u8],
    start: usize,
    has_escapes: bool,
}

impl<'a> Text<'a> {
    /// Where the text is, if it stands there as it is.
    pub(crate) fn plain(&self) -> Option<Range<usize>> {
        (!self.has_escapes).then(|| self.start..self.start + self.raw.len())
    }

    /// What the text says.
    pub(crate) fn read(&self) -> Result<Cow<'a, str>, Malformed> {
        let malformed = Malformed(self.start);
        if self.has_escapes {
            let quoted = [b"\"", self.raw, b"\""].concat();
            return serde_json::from_slice(&quoted).map(Cow::Owned).map_err(|_| malformed);
        }
        std::str::from_utf8(self.raw).map(Cow::Borrowed).map_err(|_| malformed)
    }

    /// What the text says, as bytes; those of plain texts are not looked at.
    pub(crate) fn bytes(&self) -> Result<Cow<'a, [u8]>, Malformed> {
        match self.has_escapes {
            false => Ok(Cow::Borrowed(self.raw)),
            true => Ok(Cow::Owned(self.read()?.into_owned().into_bytes())),
        }
    }

    /// The text with its quotes; `bytes` are those that it was found in.
    pub(crate) fn quoted(&self, bytes: &'a [u8]) -> &'a [u8] {
        &bytes[self.start - 1..=self.start + self.raw.len()]
    }

    /// Whether the text is this one; texts with escapes never are.
    pub(crate) fn is(&self, other: &str) -> bool {
        !self.has_escapes && self.raw == other.as_bytes()
    }
}

/// A place in JSON bytes.
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    /// The beginning of the bytes.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Hands every member of a map to a function, which has to go over the value.
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

    /// Goes over a text.
    pub(crate) fn text(&mut self) -> Result<Text<'a>, Malformed> {
        self.step(b'"')?;
        let start = self.at;
        let has_escapes = self.close_text()?;
        Ok(Text { raw: &self.bytes[start..self.at - 1], start, has_escapes })
    }

    /// Goes over any value, and tells where it is.
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

    /// Whether null comes next; goes over it then.
    pub(crate) fn null(&mut self) -> Result<bool, Malformed> {
        self.peek()?;
        let is_null = self.bytes[self.at..].starts_with(b"null");
        self.at += if is_null { 4 } else { 0 };
        Ok(is_null)
    }

    /// Nothing may follow.
    pub(crate) fn end(mut self) -> Result<(), Malformed> {
        match self.peek() {
            Ok(_) => Err(self.malformed()),
            Err(_) => Ok(()),
        }
    }

    /// What the bytes at a place are.
    pub(crate) fn at(&self, place: &Range<usize>) -> &'a [u8] {
        &self.bytes[place.clone()]
    }

    pub(crate) fn malformed(&self) -> Malformed {
        Malformed(self.at)
    }

    /// The next byte that is not a space.
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

    /// Goes to the end of a text that was begun; tells whether it has escapes.
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

    /// Goes over a map or a list.
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

/// The member of a map, or `None` when it is absent or this is not a map.
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

/// Whether a text is anywhere in the bytes, or may be, written with escapes; found out much faster
/// than what it is there.
pub(crate) fn may_mention(raw: &[u8], text: &str) -> bool {
    // These escapes may stand for what has no need of them.
    [text.as_bytes(), b"\\u", b"\\/"].iter().any(|it| memmem::find(raw, it).is_some())
}

/// Those members of a map whose keys are accepted, read.
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

/// A member of a map: its key, and its value as it is written.
pub(crate) type Entry<'a> = (Cow<'a, str>, &'a [u8]);

/// All members of a map; nothing for no bytes.
pub(crate) fn entries(raw: &[u8]) -> Result<Vec<Entry<'_>>, Malformed> {
    let mut entries = Vec::new();
    if !raw.is_empty() {
        Cursor::new(raw).members(|cursor, key| {
            let value = cursor.value()?;
            entries.push((key.read()?, cursor.at(&value)));
            Ok(())
        })?;
    }
    Ok(entries)
}

/// Has the highest bit set in every byte that is the wanted one, and maybe in some after the first.
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
