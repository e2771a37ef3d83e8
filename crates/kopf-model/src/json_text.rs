//! JSON text exactly as Kopf writes it: compact, in insertion order, non-ASCII escaped.
//!
//! Used for what is stored on objects, where bytes should not change with the engine.

use std::io;

use serde::Serialize;
use serde_json::ser::Formatter;

/// Compact JSON in which every character outside printable ASCII is escaped as `\uXXXX`.
pub(crate) fn to_ascii(value: &impl Serialize) -> String {
    let mut text = Vec::with_capacity(256);
    let mut serializer = serde_json::Serializer::with_formatter(&mut text, AsciiFormatter);
    value.serialize(&mut serializer).expect("stored values have string keys and finite numbers");
    String::from_utf8(text).expect("only ASCII was written")
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
