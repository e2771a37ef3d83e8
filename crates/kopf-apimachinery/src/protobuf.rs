//! Decodes protobuf request bodies (`k8s\0` envelopes) into JSON trees.
//!
//! Responsible for the wire format and for the types whose JSON differs from their message. Field
//! numbers and JSON names come from the committed pack. The server's responses are always JSON.

mod special;
mod tables;
mod wire;

use serde_json::{Map, Value};

use self::tables::{Field, Kind};
use self::wire::{Reader, Wire};
use crate::pack;

/// The magic bytes at the start of protobuf bodies.
const MAGIC: &[u8] = b"k8s\0";

/// How deeply messages may nest.
const DEPTH_MAX: usize = 100;

/// Decodes a whole body, including the envelope, into an object with `apiVersion` and `kind`.
pub(crate) fn decode(body: &[u8]) -> Result<Value, String> {
    decode_nested(body, 0)
}

/// The name of a field's Go type if OpenAPI does not have it: `v1.ServiceType`.
pub(crate) fn go_type(definition: &str, field: &str) -> Option<&'static str> {
    tables::go_type(definition, field)
}

fn decode_nested(body: &[u8], depth: usize) -> Result<Value, String> {
    let envelope = body.strip_prefix(MAGIC).ok_or_else(|| {
        "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
            .to_owned()
    })?;
    let mut api_version = String::new();
    let mut kind = String::new();
    let mut raw: &[u8] = &[];
    let mut reader = Reader::new(envelope);
    while let Some((number, value)) = reader.next()? {
        match (number, value) {
            (1, Wire::Bytes(type_meta)) => {
                let mut reader = Reader::new(type_meta);
                while let Some((number, value)) = reader.next()? {
                    match (number, value) {
                        (1, Wire::Bytes(text)) => api_version = wire::text(text)?,
                        (2, Wire::Bytes(text)) => kind = wire::text(text)?,
                        _ => {}
                    }
                }
            }
            (2, Wire::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
    }
    let mut object = Map::new();
    object.insert("apiVersion".to_owned(), api_version.clone().into());
    object.insert("kind".to_owned(), kind.clone().into());
    let name = message_name(&api_version, &kind)
        .ok_or_else(|| format!("no kind {kind:?} is registered for version {api_version:?}"))?;
    fill(&mut object, name, raw, depth)?;
    Ok(Value::Object(object))
}

/// The message of a kind; kinds common to all groups are found in any group.
fn message_name(api_version: &str, kind: &str) -> Option<&'static str> {
    let (group, version) = crate::api_version::split_api_version(api_version);
    let own = tables::find(&pack::definition_name(group, version, kind));
    own.or_else(|| tables::find(&pack::definition_name("meta.k8s.io", "v1", kind)))
}

/// Reads the fields of a message into an object.
fn fill(
    object: &mut Map<String, Value>,
    message: &str,
    bytes: &[u8],
    depth: usize,
) -> Result<(), String> {
    if depth >= DEPTH_MAX {
        return Err("proto: exceeded max depth".to_owned());
    }
    let fields = tables::fields(message);
    let mut reader = Reader::new(bytes);
    while let Some((number, value)) = reader.next()? {
        // Unknown fields of newer clients are ignored, as in Go.
        let Some(field) = fields.iter().find(|field| field.number == number) else { continue };
        if field.inline {
            if let (Kind::Message(name), Wire::Bytes(bytes)) = (&field.kind, value) {
                fill(object, name, bytes, depth + 1)?;
            }
            continue;
        }
        add(object, field, value, depth)?;
    }
    Ok(())
}

fn add(
    object: &mut Map<String, Value>,
    field: &Field,
    value: Wire<'_>,
    depth: usize,
) -> Result<(), String> {
    match (&field.kind, value) {
        (Kind::List(kind), value) => {
            let list = object.entry(field.name.clone()).or_insert_with(|| Value::Array(Vec::new()));
            let Value::Array(items) = list else { return Ok(()) };
            match (&**kind, value) {
                (Kind::Integer, Wire::Bytes(packed)) => {
                    let mut reader = Reader::new(packed);
                    while !reader.is_empty() {
                        items.push(Value::from(reader.varint()?.cast_signed()));
                    }
                }
                (kind, value) => items.push(single(kind, value, depth)?),
            }
        }
        (Kind::Map(kind), Wire::Bytes(entry)) => {
            let map = object.entry(field.name.clone()).or_insert_with(|| Value::Object(Map::new()));
            let Value::Object(entries) = map else { return Ok(()) };
            let (key, value) = map_entry(kind, entry, depth)?;
            entries.insert(key, value);
        }
        (kind, value) => {
            let value = single(kind, value, depth)?;
            // Go always writes fields that are not pointers, and omits them from JSON when they are
            // empty; a pointer to zero is an explicit zero.
            let is_unset = field.omit_empty && !field.pointer && is_zero(&value);
            if !is_unset && !value.is_null() {
                object.insert(field.name.clone(), value);
            }
        }
    }
    Ok(())
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        // Go's `omitempty` does not omit structs.
        Value::Object(_) => false,
    }
}

fn map_entry(kind: &Kind, entry: &[u8], depth: usize) -> Result<(String, Value), String> {
    let mut key = String::new();
    let mut value = kind.zero();
    let mut reader = Reader::new(entry);
    while let Some((number, wire)) = reader.next()? {
        match (number, wire) {
            (1, Wire::Bytes(text)) => key = wire::text(text)?,
            (1, Wire::Varint(number)) => key = number.cast_signed().to_string(),
            (2, wire) => value = single(kind, wire, depth)?,
            _ => {}
        }
    }
    Ok((key, value))
}

fn single(kind: &Kind, value: Wire<'_>, depth: usize) -> Result<Value, String> {
    Ok(match (kind, value) {
        (Kind::Text, Wire::Bytes(bytes)) => wire::text(bytes)?.into(),
        (Kind::Boolean, Wire::Varint(value)) => (value != 0).into(),
        (Kind::Integer, Wire::Varint(value)) => value.cast_signed().into(),
        (Kind::Double, Wire::Fixed64(bits)) => {
            let number = serde_json::Number::from_f64(f64::from_bits(bits));
            number.map_or(Value::Null, Value::Number)
        }
        (Kind::Bytes, Wire::Bytes(bytes)) => {
            use base64::Engine;
            base64::engine::general_purpose::STANDARD.encode(bytes).into()
        }
        (Kind::TextList, Wire::Bytes(bytes)) => special::text_list(bytes)?,
        (Kind::Message(name), Wire::Bytes(bytes)) => message(name, bytes, depth + 1)?,
        _ => return Err("proto: wrong wireType".to_owned()),
    })
}

fn message(name: &str, bytes: &[u8], depth: usize) -> Result<Value, String> {
    if let Some(value) = special::decode(name, bytes, depth)? {
        return Ok(value);
    }
    let mut object = Map::new();
    fill(&mut object, name, bytes, depth)?;
    Ok(Value::Object(object))
}

#[cfg(test)]
mod tests;
