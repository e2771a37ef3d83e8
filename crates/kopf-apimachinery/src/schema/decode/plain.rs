//! A fast decoder for the JSON that programs usually write.
//!
//! Gives up on everything rare: errors, duplicate keys, `\u` escapes, numbers other than small
//! integers, deep trees. The general decoder then decodes the text or reports the error.

use serde_json::{Map, Value};

use crate::encoding::plain_length;

/// How deeply values may nest; deeper ones are left to the general decoder.
const DEPTH_MAX: usize = 100;

/// The number of digits with which any integer fits.
const DIGITS_MAX: usize = 18;

/// The tree of a text; `None` if the general decoder has to read it.
pub fn plain(text: &[u8]) -> Option<Value> {
    let mut reader = Reader { text: std::str::from_utf8(text).ok()?, at: 0 };
    let value = reader.value(0)?;
    (reader.next().is_none()).then_some(value)
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    /// The next byte that is not white space; does not consume it.
    fn next(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while matches!(bytes.get(self.at)?, b' ' | b'\n' | b'\t' | b'\r') {
            self.at += 1;
        }
        bytes.get(self.at).copied()
    }

    fn take(&mut self, wanted: u8) -> Option<()> {
        (self.next()? == wanted).then(|| self.at += 1)
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        match self.next()? {
            b'"' => self.string().map(Value::String),
            b'{' if depth < DEPTH_MAX => self.object(depth),
            b'[' if depth < DEPTH_MAX => self.list(depth),
            b't' => self.word("true", Value::Bool(true)),
            b'f' => self.word("false", Value::Bool(false)),
            b'n' => self.word("null", Value::Null),
            b'-' | b'0'..=b'9' => self.integer(),
            _ => None,
        }
    }

    fn word(&mut self, word: &str, value: Value) -> Option<Value> {
        self.text[self.at..].starts_with(word).then(|| {
            self.at += word.len();
            value
        })
    }

    fn integer(&mut self) -> Option<Value> {
        let rest = &self.text[self.at..];
        let is_negative = rest.starts_with('-');
        let unsigned = &rest[usize::from(is_negative)..];
        let count = unsigned.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, after) = unsigned.split_at(count);
        let is_odd = count == 0 || count > DIGITS_MAX || digits.starts_with('0');
        // Only zero itself may start with a zero, and only without a sign.
        if (is_odd && (digits != "0" || is_negative)) || after.starts_with(['.', 'e', 'E']) {
            return None;
        }
        let number: i64 = digits.parse().ok()?;
        self.at += usize::from(is_negative) + count;
        Some(Value::from(if is_negative { -number } else { number }))
    }

    fn list(&mut self, depth: usize) -> Option<Value> {
        self.take(b'[')?;
        let mut items = Vec::new();
        if self.next()? == b']' {
            self.at += 1;
            return Some(Value::Array(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            match self.next()? {
                b',' => self.at += 1,
                b']' => break,
                _ => return None,
            }
        }
        self.at += 1;
        Some(Value::Array(items))
    }

    fn object(&mut self, depth: usize) -> Option<Value> {
        self.take(b'{')?;
        let mut fields = Map::new();
        if self.next()? == b'}' {
            self.at += 1;
            return Some(Value::Object(fields));
        }
        loop {
            if self.next()? != b'"' {
                return None;
            }
            let name = self.string()?;
            self.take(b':')?;
            let value = self.value(depth + 1)?;
            if fields.insert(name, value).is_some() {
                return None;
            }
            match self.next()? {
                b',' => self.at += 1,
                b'}' => break,
                _ => return None,
            }
        }
        self.at += 1;
        Some(Value::Object(fields))
    }

    /// The string at the next byte, which is a quote.
    fn string(&mut self) -> Option<String> {
        let start = self.at + 1;
        let end = self.special(start)?;
        if self.text.as_bytes()[end] == b'"' {
            self.at = end + 1;
            return Some(self.text[start..end].to_owned());
        }
        self.escaped_string(start, end)
    }

    /// A string whose first escape is at `place`.
    fn escaped_string(&mut self, mut start: usize, mut place: usize) -> Option<String> {
        let bytes = self.text.as_bytes();
        let mut string = String::with_capacity(2 * (place - start) + ESCAPED_BYTES_GUESS);
        loop {
            string.push_str(&self.text[start..place]);
            match bytes[place] {
                b'"' => {
                    self.at = place + 1;
                    string.shrink_to_fit();
                    return Some(string);
                }
                b'\\' => string.push(unescaped(*bytes.get(place + 1)?)?),
                _ => return None,
            }
            start = place + 2;
            place = self.special(start)?;
        }
    }

    /// The position of the next quote, backslash or control character.
    fn special(&self, from: usize) -> Option<usize> {
        let bytes = self.text.as_bytes();
        let mut at = from;
        while let Some(word) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
            let plain = plain_length(*word);
            at += plain;
            if plain < 8 {
                return Some(at);
            }
        }
        let is_special = |byte: &u8| matches!(byte, 0..b' ' | b'"' | b'\\');
        bytes.get(at..)?.iter().position(is_special).map(|offset| at + offset)
    }
}

/// The initial capacity for a string with escapes.
const ESCAPED_BYTES_GUESS: usize = 512;

/// The character of a one-letter escape.
fn unescaped(letter: u8) -> Option<char> {
    Some(match letter {
        b'"' | b'\\' | b'/' => char::from(letter),
        b'n' => '\n',
        b't' => '\t',
        b'r' => '\r',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
