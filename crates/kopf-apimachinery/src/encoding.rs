//! Encodes trees and determines whether the tree can be decoded from the result.
//!
//! Produces the same output as `serde_json`, faster: trees consist mostly of short strings without
//! escapes. The decoder rejects deep trees and rounds floats with many digits differently.

use std::cell::RefCell;
use std::ops::Range;

use bytes::Bytes;
use serde_json::{Map, Number, Value};

/// How deeply trees may nest; the decoder's limit is 128.
const DEPTH_MAX: usize = 120;

/// The largest buffer that a thread keeps between two encodings.
const SCRATCH_BYTES_MAX: usize = 64 << 10;

thread_local! {
    /// The buffer for encodings, so that the results have no spare capacity.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The encoding, and whether decoding it yields the same tree.
pub fn encode(value: &Value) -> (Bytes, bool) {
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

/// The encoding of an object with managed fields that are not part of its tree.
pub(crate) struct Composed {
    /// The encoding, possibly with spare capacity.
    pub text: Vec<u8>,
    /// The range of the resource version, without its quotes, if the object has one.
    pub version: Option<Range<usize>>,
    /// The range of the managed fields; empty if there are none.
    pub managed: Range<usize>,
    /// Whether decoding the text without managed fields yields the same tree.
    pub survives: bool,
}

/// Encodes an object, with managed fields as the last field of its metadata.
pub(crate) fn compose(object: &Value, managed: &[u8]) -> Composed {
    let mut text = Vec::with_capacity(OBJECT_BYTES_GUESS + managed.len());
    let mut writer = Writer { text: &mut text, survives: true };
    let (version, managed) = writer.object_with(object, managed);
    let survives = writer.survives;
    Composed { text, version, managed, survives }
}

/// The text before the managed fields.
pub(crate) const MANAGED_PREFIX: &[u8] = b"\"managedFields\":";

/// The initial capacity for an encoding of unknown length.
const OBJECT_BYTES_GUESS: usize = 1024;

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
            Value::String(text) => write_string(self.text, text),
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
            Value::Object(fields) => self.fields(fields, depth, |_, _, _| false),
        }
    }

    /// Writes an object; `other` may write a field itself and then returns true.
    fn fields(
        &mut self,
        fields: &Map<String, Value>,
        depth: usize,
        mut other: impl FnMut(&mut Self, &str, &Value) -> bool,
    ) {
        self.survives &= depth < DEPTH_MAX;
        self.text.push(b'{');
        for (index, (name, field)) in fields.iter().enumerate() {
            if index > 0 {
                self.text.push(b',');
            }
            write_string(self.text, name);
            self.text.push(b':');
            if !other(self, name, field) {
                self.value(field, depth + 1);
            }
        }
        self.text.push(b'}');
    }

    /// Writes an object with managed fields; returns where the version and the managed fields are.
    fn object_with(
        &mut self,
        object: &Value,
        managed: &[u8],
    ) -> (Option<Range<usize>>, Range<usize>) {
        let (mut version, mut place) = (None, 0..0);
        let Value::Object(fields) = object else {
            self.value(object, 0);
            return (version, place);
        };
        self.fields(fields, 0, |writer, name, field| {
            let Value::Object(metadata) = field else { return false };
            if name != "metadata" {
                return false;
            }
            writer.fields(metadata, 1, |writer, name, field| {
                if let (Value::String(text), "resourceVersion") = (field, name) {
                    let start = writer.text.len() + 1;
                    write_string(writer.text, text);
                    version = Some(start..writer.text.len() - 1);
                    return true;
                }
                false
            });
            if !managed.is_empty() {
                writer.text.pop();
                if !metadata.is_empty() {
                    writer.text.push(b',');
                }
                writer.text.extend_from_slice(MANAGED_PREFIX);
                let start = writer.text.len();
                writer.text.extend_from_slice(managed);
                place = start..writer.text.len();
                writer.text.push(b'}');
            }
            true
        });
        (version, place)
    }

    fn number(&mut self, number: &Number) {
        let start = self.text.len();
        write_other(self.text, number);
        if number.is_f64() {
            let again = serde_json::from_slice::<Number>(&self.text[start..]);
            self.survives &= again.is_ok_and(|again| again == *number);
        }
    }
}

/// Appends a string, in quotes.
pub(crate) fn write_string(into: &mut Vec<u8>, text: &str) {
    if needs_escape(text.as_bytes()) {
        return write_escaped(into, text);
    }
    into.reserve(text.len() + 2);
    into.push(b'"');
    into.extend_from_slice(text.as_bytes());
    into.push(b'"');
}

/// Appends a string with characters that need escapes, usually quotes.
fn write_escaped(into: &mut Vec<u8>, text: &str) {
    let start = into.len();
    let bytes = text.as_bytes();
    // Reserves two bytes per character; the rest is truncated.
    into.resize(start + 2 * bytes.len() + 2, b'"');
    let space = &mut into[start + 1..];
    let (mut from, mut at, mut is_rare) = (0, 0, false);
    while let Some(&byte) = bytes.get(from) {
        // Eight bytes at a time; those before the first special one are copied.
        if let (Some(word), Some(place)) =
            (bytes[from..].first_chunk::<8>(), space[at..].first_chunk_mut::<8>())
        {
            *place = *word;
            let plain = plain_length(*word);
            (from, at) = (from + plain, at + plain);
            if plain == 8 {
                continue;
            }
        } else if ESCAPES[usize::from(byte)] == NONE {
            space[at] = byte;
            (from, at) = (from + 1, at + 1);
            continue;
        }
        let letter = ESCAPES[usize::from(bytes[from])];
        space[at] = b'\\';
        space[at + 1] = letter;
        (from, at) = (from + 1, at + 2);
        is_rare |= letter == LONG;
    }
    space[at] = b'"';
    into.truncate(start + at + 2);
    if is_rare {
        into.truncate(start);
        write_other(into, text);
    }
}

/// No escape is needed.
const NONE: u8 = 0;
/// A control character without a one-letter escape.
const LONG: u8 = b'u';

/// The letter of the escape for each byte.
static ESCAPES: [u8; 256] = {
    let mut letters = [NONE; 256];
    let mut control = 0;
    while control < b' ' {
        letters[control as usize] = LONG;
        control += 1;
    }
    letters[b'"' as usize] = b'"';
    letters[b'\\' as usize] = b'\\';
    letters[b'\n' as usize] = b'n';
    letters[b'\t' as usize] = b't';
    letters[b'\r' as usize] = b'r';
    letters[8] = b'b';
    letters[12] = b'f';
    letters
};

fn write_other(into: &mut Vec<u8>, value: &(impl serde::Serialize + ?Sized)) {
    serde_json::to_writer(into, value).expect("strings and numbers always encode");
}

/// Whether any byte is a quote, a backslash or a control character; checks eight bytes at a time.
pub(crate) fn needs_escape(text: &[u8]) -> bool {
    let (words, rest) = text.as_chunks::<8>();
    words.iter().any(|word| specials(*word) != 0)
        || match text.last_chunk::<8>() {
            // Overlaps the previous chunk.
            Some(last) => !rest.is_empty() && specials(*last) != 0,
            None => rest.iter().any(|byte| ESCAPES[usize::from(*byte)] != NONE),
        }
}

/// The number of leading bytes that are not quotes, backslashes or control characters.
pub(crate) fn plain_length(word: [u8; 8]) -> usize {
    (specials(word).trailing_zeros() / 8) as usize
}

/// Sets the highest bit of the first byte that needs an escape, and possibly of some after it.
fn specials(word: [u8; 8]) -> u64 {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGHEST_BITS: u64 = ONES << 7;
    let word = u64::from_le_bytes(word);
    // The highest bit of a byte in the difference is set if the byte is less than the other.
    let has_less = |word: u64, than: u8| word.wrapping_sub(ONES * u64::from(than)) & !word;
    let has = |byte: u8| has_less(word ^ (ONES * u64::from(byte)), 1);
    (has_less(word, b' ') | has(b'"') | has(b'\\')) & HIGHEST_BITS
}

#[cfg(test)]
mod tests;
