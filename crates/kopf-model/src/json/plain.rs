//! Checks and compares texts in Kopf's form without building trees.
//!
//! Last-handled states are stored in this form, so most changes are found here. Everything unusual
//! is left to the trees.

use crate::json::raw::Cursor;
use crate::json::text::{plain_integer, plain_string};

/// Deeper texts are left to the trees.
const LEVELS_MAX: usize = 64;
/// Maps with more keys are left to the trees, since each key is compared with all others.
const KEYS_MAX: usize = 32;

/// Whether the text is valid JSON, is written exactly as `to_ascii` would write its tree, has no
/// other numbers than integers, and no key occurs twice in a map.
pub(crate) fn is_plain(json: &[u8]) -> bool {
    let mut check = Check { json, at: 0 };
    check.value(0).is_some() && check.at == json.len()
}

/// Whether the trees of two texts differ, by the rules of [`Diff`](crate::Diff); `None` if that
/// cannot be told without them.
///
/// The first text must be plain. The second one must have Kopf's form.
pub(crate) fn differ(old: &[u8], new: &[u8]) -> Option<bool> {
    if old == new {
        return Some(false);
    }
    let is_number = |byte: u8| matches!(byte, b'-' | b'0'..=b'9');
    match (*old.first()?, *new.first()?) {
        (b'{', b'{') => differ_as_maps(old, new),
        (b'[', b'[') => differ_as_lists(old, new),
        // An integer may equal a float.
        (one, other) if is_number(one) && is_number(other) => plain_integer(new).map(|_| true),
        // The form has one text for each string.
        _ => Some(true),
    }
}

/// Compares all values, even after a difference: a key that occurs twice must be found.
fn differ_as_maps(old: &[u8], new: &[u8]) -> Option<bool> {
    let (mut old, mut new) = (Cursor::new(old), Cursor::new(new));
    let mut is_different = false;
    loop {
        match (old.next_member().ok()?, new.next_member().ok()?) {
            (Some((key, one)), Some((other_key, other))) if key.is_written_as(&other_key) => {
                is_different |= differ(one, other)?;
            }
            (None, None) => return Some(is_different),
            // Null equals absence, and the order does not matter.
            _ => return None,
        }
    }
}

fn differ_as_lists(old: &[u8], new: &[u8]) -> Option<bool> {
    let (mut old, mut new) = (Cursor::new(old), Cursor::new(new));
    let mut is_different = false;
    loop {
        match (old.next_item().ok()?, new.next_item().ok()?) {
            (Some(one), Some(other)) => is_different |= differ(one, other)?,
            (None, None) => return Some(is_different),
            _ => return Some(true),
        }
    }
}

/// A position in a text that is being checked.
struct Check<'a> {
    json: &'a [u8],
    at: usize,
}

impl<'a> Check<'a> {
    /// Skips a value; `None` if it is not plain.
    fn value(&mut self, level: usize) -> Option<()> {
        let rest = self.json.get(self.at..)?;
        let length = match rest.first()? {
            b'{' => return self.map(level + 1),
            b'[' => return self.list(level + 1),
            b'"' => plain_string(rest)?,
            b'-' | b'0'..=b'9' => plain_integer(rest)?,
            _ => ["true", "false", "null"].iter().find(|it| rest.starts_with(it.as_bytes()))?.len(),
        };
        self.at += length;
        Some(())
    }

    fn map(&mut self, level: usize) -> Option<()> {
        let mut keys: [&[u8]; KEYS_MAX] = [&[]; KEYS_MAX];
        let mut count = 0;
        self.at += 1;
        if level > LEVELS_MAX || self.closes(b'}') {
            return (level <= LEVELS_MAX).then_some(());
        }
        loop {
            let key = self.key()?;
            if count == KEYS_MAX || keys[..count].contains(&key) {
                return None;
            }
            keys[count] = key;
            count += 1;
            self.value(level)?;
            if self.closes(b'}') {
                return Some(());
            }
            self.step(b',')?;
        }
    }

    fn list(&mut self, level: usize) -> Option<()> {
        self.at += 1;
        if level > LEVELS_MAX || self.closes(b']') {
            return (level <= LEVELS_MAX).then_some(());
        }
        loop {
            self.value(level)?;
            if self.closes(b']') {
                return Some(());
            }
            self.step(b',')?;
        }
    }

    /// Skips a key and the colon after it. Returns the key with its quotes.
    fn key(&mut self) -> Option<&'a [u8]> {
        let rest = self.json.get(self.at..).filter(|rest| rest.first() == Some(&b'"'))?;
        let length = plain_string(rest)?;
        self.at += length;
        self.step(b':')?;
        Some(&rest[..length])
    }

    /// Whether this bracket comes next; if so, skips it.
    fn closes(&mut self, bracket: u8) -> bool {
        self.step(bracket).is_some()
    }

    fn step(&mut self, wanted: u8) -> Option<()> {
        let is_next = self.json.get(self.at) == Some(&wanted);
        self.at += usize::from(is_next);
        is_next.then_some(())
    }
}

#[cfg(test)]
mod tests;
