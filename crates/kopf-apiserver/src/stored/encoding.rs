//! The encoding of a tree, and whether the tree can be made from it again.
//!
//! Writes what `serde_json` writes, in less time: trees consist of short strings without escapes.
//! The decoder refuses deep trees, and rounds floats with many digits differently.

use std::cell::RefCell;

use bytes::Bytes;
use serde_json::{Number, Value};

/// How deeply trees may nest; the decoder's limit is 128.
const DEPTH_MAX: usize = 120;

/// The most that a thread holds on to between two encodings.
const SCRATCH_BYTES_MAX: usize = 64 << 10;

thread_local! {
    /// Where encodings grow, so that what is kept has no spare capacity.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The encoding, and whether decoding it gives the same tree.
pub(super) fn encode(value: &Value) -> (Bytes, bool) {
    SCRATCH.with_borrow_mut(|scratch| {
        scratch.clear();
        let mut writer = Writer { text: scratch, survives: true };
        writer.value(value, 0);
        let survives = writer.survives;
        let encoded = Bytes::copy_from_slice(scratch);
        scratch.shrink_to(SCRATCH_BYTES_MAX);
        (encoded, survives)
    })
}

struct Writer<'a> {
    text: &'a mut Vec<u8>,
    survives: bool,
}

impl Writer<'_> {
    fn value(&mut self, value: &Value, depth: usize) {
        match value {
            Value::Null => self.text.extend_from_slice(b"null"),
            Value::Bool(true) => self.text.extend_from_slice(b"true"),
            Value::Bool(false) => self.text.extend_from_slice(b"false"),
            Value::Number(number) => self.number(number),
            Value::String(text) => self.string(text),
            Value::Array(items) => {
                self.survives &= depth < DEPTH_MAX;
                self.text.push(b'[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        self.text.push(b',');
                    }
                    self.value(item, depth + 1);
                }
                self.text.push(b']');
            }
            Value::Object(fields) => {
                self.survives &= depth < DEPTH_MAX;
                self.text.push(b'{');
                for (index, (name, field)) in fields.iter().enumerate() {
                    if index > 0 {
                        self.text.push(b',');
                    }
                    self.string(name);
                    self.text.push(b':');
                    self.value(field, depth + 1);
                }
                self.text.push(b'}');
            }
        }
    }

    fn string(&mut self, text: &str) {
        if needs_escape(text.as_bytes()) {
            return self.other(text);
        }
        self.text.reserve(text.len() + 2);
        self.text.push(b'"');
        self.text.extend_from_slice(text.as_bytes());
        self.text.push(b'"');
    }

    fn number(&mut self, number: &Number) {
        let start = self.text.len();
        self.other(number);
        if number.is_f64() {
            let again = serde_json::from_slice::<Number>(&self.text[start..]);
            self.survives &= again.is_ok_and(|again| again == *number);
        }
    }

    fn other(&mut self, value: &(impl serde::Serialize + ?Sized)) {
        serde_json::to_writer(&mut *self.text, value).expect("strings and numbers always encode");
    }
}

/// Whether any byte is a quote, a backslash or a control character; eight of them at a time.
fn needs_escape(text: &[u8]) -> bool {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGHEST_BITS: u64 = ONES << 7;
    // The highest bit of a byte becomes set in a difference if the byte is less than the other.
    let has_less = |word: u64, than: u8| word.wrapping_sub(ONES * u64::from(than)) & !word;
    let has = |word: u64, byte: u8| has_less(word ^ (ONES * u64::from(byte)), 1);
    let (words, rest) = text.as_chunks::<8>();
    words.iter().any(|word| {
        let word = u64::from_ne_bytes(*word);
        let found = has_less(word, b' ') | has(word, b'"') | has(word, b'\\');
        found & HIGHEST_BITS != 0
    }) || rest.iter().any(|byte| matches!(byte, 0..b' ' | b'"' | b'\\'))
}

#[cfg(test)]
mod tests;
