//! The text of an essence, made of parts of the object's own text.

use std::collections::BTreeSet;
use std::ops::Range;

use super::{is_essential_annotation, owned_prefixes};
use crate::json_text::push_ascii;
use crate::object::{Object, is_system_key};
use crate::raw::{Cursor, Entry, Malformed, entries};

/// The essence as text: everything but the system's stanzas, then the labels and annotations.
///
/// None for unusual objects.
pub(super) fn write(object: &Object, keeps: impl Fn(&str) -> bool) -> Option<String> {
    let raw = object.raw();
    let mut text = String::with_capacity(raw.len());
    text.push('{');
    let mut metadata = None;
    let mut cursor = Cursor::new(raw);
    let found = cursor.members(|cursor, key| {
        let name = key.read()?;
        let value = cursor.value()?;
        match &*name {
            "metadata" => metadata = Some(value),
            system if is_system_key(system) => {}
            _ => push_member(&mut text, key.quoted(raw), cursor.at(&value))?,
        }
        Ok(())
    });
    found.ok()?;
    if let Some(metadata) = metadata {
        let start = text.len();
        push_separator(&mut text);
        text.push_str("\"metadata\":{");
        let inner = text.len();
        push_metadata(&mut text, &raw[metadata], keeps).ok()?;
        match text.len() == inner {
            true => text.truncate(start),
            false => text.push('}'),
        }
    }
    text.push('}');
    Some(text)
}

fn push_metadata(
    text: &mut String,
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
        None | Some(b"null") => Ok(Vec::new()),
        Some(raw) => entries(raw),
    };
    let annotations = of(annotations)?;
    let owned: BTreeSet<&str> = owned_prefixes(annotations.iter().map(|it| &*it.0)).collect();
    push_stanza(text, "labels", &of(labels)?, |_| true)?;
    push_stanza(text, "annotations", &annotations, |key| {
        is_essential_annotation(key, &owned) && keeps(key)
    })
}

/// Adds those entries of a map that are kept; an empty map means the same as an absent one.
fn push_stanza(
    text: &mut String,
    name: &str,
    entries: &[Entry<'_>],
    keeps: impl Fn(&str) -> bool,
) -> Result<(), Malformed> {
    let mut is_open = false;
    for (key, value) in entries.iter().filter(|(key, _)| keeps(key)) {
        if !is_open {
            push_separator(text);
            text.push('"');
            text.push_str(name);
            text.push_str("\":{");
            is_open = true;
        }
        let key = serde_json::to_string(key).expect("texts always encode");
        push_member(text, key.as_bytes(), value)?;
    }
    if is_open {
        text.push('}');
    }
    Ok(())
}

fn push_member(text: &mut String, key: &[u8], value: &[u8]) -> Result<(), Malformed> {
    push_separator(text);
    push_ascii(text, key)?;
    text.push(':');
    push_ascii(text, value)
}

fn push_separator(text: &mut String) {
    if !text.ends_with('{') {
        text.push(',');
    }
}
