//! The text of an essence, composed of parts of the object's text.

use std::ops::Range;

use super::{is_essential_annotation, owned_prefixes};
use crate::json::raw::{Cursor, Entries, Entry, Malformed, entries};
use crate::json::text::{push_ascii, push_ascii_text};
use crate::object::{Object, is_system_key};

/// The essence as text: everything except the system's stanzas, then the labels and annotations.
///
/// `None` for unusual objects.
pub(super) fn write(object: &Object, keeps: impl Fn(&str) -> bool) -> Option<String> {
    let raw = object.raw();
    // Only ASCII, which is checked once at the end.
    let mut text = Vec::with_capacity(raw.len());
    text.push(b'{');
    let mut metadata = None;
    let mut cursor = Cursor::new(raw);
    let found = cursor.members(|cursor, key| {
        let name = key.bytes()?;
        let value = cursor.value()?;
        match &*name {
            b"metadata" => metadata = Some(value),
            system if is_system_key(system) => {}
            _ => {
                push_separator(&mut text);
                push_ascii(&mut text, key.quoted(raw))?;
                push_value(&mut text, cursor.at(&value))?;
            }
        }
        Ok(())
    });
    found.ok()?;
    if let Some(metadata) = metadata {
        let start = text.len();
        push_separator(&mut text);
        text.extend_from_slice(b"\"metadata\":{");
        let inner = text.len();
        push_metadata(&mut text, &raw[metadata], keeps).ok()?;
        match text.len() == inner {
            true => text.truncate(start),
            false => text.push(b'}'),
        }
    }
    text.push(b'}');
    String::from_utf8(text).ok()
}

fn push_metadata(
    text: &mut Vec<u8>,
    raw: &[u8],
    keeps: impl Fn(&str) -> bool,
) -> Result<(), Malformed> {
    let (mut labels, mut annotations) = (None, None);
    Cursor::new(raw).members(|cursor, key| {
        let value = cursor.value()?;
        if key.is("labels") {
            labels = Some(value);
        } else if key.is("annotations") {
            annotations = Some(value);
        }
        Ok(())
    })?;
    let of = |place: Option<Range<usize>>| match place.map(|place| &raw[place]) {
        None | Some(b"null") => Ok(Entries::new()),
        Some(raw) => entries(raw),
    };
    let annotations = of(annotations)?;
    let owned = owned_prefixes(annotations.iter().map(|it| &*it.0));
    push_stanza(text, "labels", &of(labels)?, |_| true)?;
    push_stanza(text, "annotations", &annotations, |key| {
        is_essential_annotation(key, &owned) && keeps(key)
    })
}

/// Adds the entries of a map that are kept; an empty map is equivalent to an absent one.
fn push_stanza(
    text: &mut Vec<u8>,
    name: &str,
    entries: &[Entry<'_>],
    keeps: impl Fn(&str) -> bool,
) -> Result<(), Malformed> {
    let mut is_open = false;
    for (key, value) in entries.iter().filter(|(key, _)| keeps(key)) {
        push_separator(text);
        if !is_open {
            text.push(b'"');
            text.extend_from_slice(name.as_bytes());
            text.extend_from_slice(b"\":{");
            is_open = true;
        }
        push_ascii_text(text, key);
        push_value(text, value)?;
    }
    if is_open {
        text.push(b'}');
    }
    Ok(())
}

fn push_value(text: &mut Vec<u8>, value: &[u8]) -> Result<(), Malformed> {
    text.push(b':');
    push_ascii(text, value)
}

fn push_separator(text: &mut Vec<u8>) {
    if text.last() != Some(&b'{') {
        text.push(b',');
    }
}
