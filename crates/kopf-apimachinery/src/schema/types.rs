//! Finds values of the wrong JSON type in bodies of built-in kinds.
//!
//! Upstream decodes into Go structs, so a wrong type is a 400 with the message of Go's decoder. The
//! first error in document order is reported.

use std::sync::LazyLock;

use serde_json::Value;

use super::ir::{Field, Link, Schema, Type};
use crate::go_print::go_syntax;

/// Reports the first value that Go could not decode, in its words.
pub(super) fn check(schema: &Schema, object: &Value) -> Result<(), String> {
    if schema.is_builtin() {
        return Walk::of("", Words::Decoder).value(schema, object);
    }
    // Custom resources are free-form except for their metadata.
    check_metadata(schema, object)?;
    check_embedded(schema, object, "")
}

/// Like [`check`], for the metadata of any kind alone.
pub(super) fn check_object_meta(metadata: &Value) -> Result<(), String> {
    static OBJECT_META: LazyLock<Option<Link>> = LazyLock::new(|| {
        let holder = super::builtin("", "v1", "ConfigMap")?;
        holder.properties.get("metadata").cloned()
    });
    let Some(schema) = &*OBJECT_META else { return Ok(()) };
    Walk::of("ObjectMeta", Words::Decoder).value(schema, metadata)
}

/// Reports the first value that Go could not convert from a map, in the words of its converter.
pub(super) fn check_conversion(schema: &Schema, object: &Value) -> Result<(), String> {
    Walk::of("", Words::Converter).value(schema, object)
}

fn check_metadata(schema: &Schema, object: &Value) -> Result<(), String> {
    match (schema.property("metadata"), object.get("metadata")) {
        (Some(metadata), Some(value)) => {
            Walk::of("ObjectMeta", Words::Decoder).value(metadata, value)
        }
        _ => Ok(()),
    }
}

/// Checks that embedded resources also have metadata that can be decoded.
fn check_embedded(schema: &Schema, value: &Value, path: &str) -> Result<(), String> {
    if !schema.has_embedded {
        return Ok(());
    }
    match value {
        Value::Object(fields) => {
            if schema.embedded_resource {
                for name in ["apiVersion", "kind"] {
                    if let Some(other) = fields.get(name).filter(|value| !value.is_string()) {
                        let shown = go_syntax(other);
                        return Err(format!(
                            "{path}.{name}: Invalid value: {shown}: must be a string"
                        ));
                    }
                }
                check_metadata(schema, value).map_err(|problem| {
                    let shown = go_syntax(&fields["metadata"]);
                    format!("{path}.metadata: Invalid value: {shown}: {problem}")
                })?;
            }
            for (name, value) in fields {
                let child = match schema.field(name) {
                    Field::Declared(child) => {
                        let dot = if path.is_empty() { "" } else { "." };
                        (child, format!("{path}{dot}{name}"))
                    }
                    Field::Entry(child) => (child, format!("{path}[{name}]")),
                    Field::Free | Field::Unknown => continue,
                };
                check_embedded(child.0, value, &child.1)?;
            }
            Ok(())
        }
        Value::Array(items) => {
            let Some(item) = schema.item() else { return Ok(()) };
            items.iter().enumerate().try_for_each(|(index, value)| {
                check_embedded(item, value, &format!("{path}[{index}]"))
            })
        }
        _ => Ok(()),
    }
}

struct Walk<'a> {
    path: String,
    /// The Go struct that holds the current field.
    owner: &'a str,
    /// The definition of that struct and the field, if the value is the field itself.
    direct: Option<(&'a str, &'a str)>,
    words: Words,
}

/// The source of the error: Go's JSON decoder, or the converter that fills structs from maps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Words {
    Decoder,
    Converter,
}

impl<'a> Walk<'a> {
    fn of(owner: &'a str, words: Words) -> Self {
        Self { path: String::new(), owner, direct: None, words }
    }

    fn value(&mut self, schema: &'a Schema, value: &'a Value) -> Result<(), String> {
        if value.is_null() {
            return Ok(());
        }
        if schema.int_or_string {
            return self.int_or_string(value);
        }
        if let Some(answer) = special(schema, value) {
            return answer;
        }
        match (schema.kind, value) {
            (None, _) | (Some(Type::Boolean), Value::Bool(_)) => Ok(()),
            (Some(Type::String), Value::String(text)) => check_text(schema, text).map_err(|it| {
                let is_bytes = schema.format.as_deref() == Some("byte");
                let is_wrapped = is_bytes && self.words == Words::Converter;
                if is_wrapped { format!("error decoding from json: {it}") } else { it }
            }),
            (Some(Type::Object), Value::Object(fields)) => {
                fields.iter().try_for_each(|(name, value)| self.field(schema, name, value))
            }
            (Some(Type::Array), Value::Array(items)) => {
                let Some(item) = schema.item() else { return Ok(()) };
                self.direct = None;
                items.iter().try_for_each(|value| self.value(item, value))
            }
            (Some(Type::Integer), Value::Number(number)) => {
                let fits = match schema.format.as_deref() {
                    Some("int32") => number.as_i64().is_some_and(|n| i32::try_from(n).is_ok()),
                    _ => number.is_i64() || number.is_u64(),
                };
                if fits { Ok(()) } else { Err(self.mismatch(schema, value)) }
            }
            (Some(Type::Number), Value::Number(_)) => Ok(()),
            _ => Err(self.mismatch(schema, value)),
        }
    }

    fn int_or_string(&self, value: &Value) -> Result<(), String> {
        let integer = Schema {
            kind: Some(Type::Integer),
            format: Some("int32".to_owned()),
            ..Schema::default()
        };
        match value {
            Value::String(_) => Ok(()),
            Value::Number(number) if number.as_i64().is_some_and(|n| i32::try_from(n).is_ok()) => {
                Ok(())
            }
            other => Err(self.mismatch(&integer, other)),
        }
    }

    fn field(&mut self, schema: &'a Schema, name: &'a str, value: &'a Value) -> Result<(), String> {
        let length = self.path.len();
        let owner = self.owner;
        let result = match schema.field(name) {
            Field::Declared(property) => {
                if length > 0 {
                    self.path.push('.');
                }
                self.path.push_str(name);
                self.owner = schema.short_name().unwrap_or(owner);
                self.direct = schema.name.as_deref().map(|owner| (owner, name));
                self.value(property, value)
            }
            Field::Entry(entry) => {
                self.direct = None;
                self.value(entry, value)
            }
            Field::Free | Field::Unknown => Ok(()),
        };
        self.path.truncate(length);
        self.owner = owner;
        result
    }

    fn mismatch(&self, schema: &Schema, value: &Value) -> String {
        let named = self.direct.and_then(|(owner, field)| crate::protobuf::go_type(owner, field));
        let wanted = named.map_or_else(|| go_type(schema), str::to_owned);
        if self.words == Words::Converter {
            return unconvertible(schema, value, &wanted);
        }
        let found = match (schema.kind, value) {
            (Some(Type::Integer), Value::Number(number)) => format!("number {number}"),
            _ => json_type(value).to_owned(),
        };
        if self.path.is_empty() {
            return format!("json: cannot unmarshal {found} into Go value of type {wanted}");
        }
        format!(
            "json: cannot unmarshal {found} into Go struct field {}.{} of type {wanted}",
            self.owner, self.path
        )
    }
}

fn unconvertible(schema: &Schema, value: &Value, wanted: &str) -> String {
    let (kind, full) = match value {
        Value::Null => ("invalid", "invalid"),
        Value::Bool(_) => ("bool", "bool"),
        Value::Number(number) if number.is_f64() => ("float64", "float64"),
        Value::Number(_) => ("int64", "int64"),
        Value::String(_) => ("string", "string"),
        Value::Array(_) => ("slice", "[]interface {}"),
        Value::Object(_) => ("map", "map[string]interface {}"),
    };
    match schema.kind {
        Some(Type::Array) => format!("cannot restore slice from {kind}"),
        Some(Type::String) if schema.format.as_deref() == Some("byte") => {
            format!("cannot restore slice from {kind}")
        }
        Some(Type::Object) if schema.name.is_some() => {
            format!("cannot restore struct from: {kind}")
        }
        Some(Type::Object) => format!("cannot restore map from {kind}"),
        // Go can convert numbers to strings and truncate fractions, but refuses to here.
        Some(Type::String) if kind == "int64" => format!("cannot convert {full} to {wanted}"),
        Some(Type::Integer) if kind == "float64" => format!("cannot convert {full} to {wanted}"),
        Some(Type::String) => "unrecognized type: string".to_owned(),
        _ => format!("unrecognized type: {wanted}"),
    }
}

/// Types with their own decoder; `None` if the schema is not one of them.
fn special(schema: &Schema, value: &Value) -> Option<Result<(), String>> {
    if schema.format.as_deref() == Some("quantity") {
        let is_quantity = match value {
            Value::Number(_) => true,
            Value::String(text) => super::formats::is_quantity(text),
            _ => false,
        };
        let words = "quantities must match the regular expression \
                     '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
        return Some(if is_quantity { Ok(()) } else { Err(words.to_owned()) });
    }
    None
}

fn check_text(schema: &Schema, text: &str) -> Result<(), String> {
    match schema.format.as_deref() {
        Some("date-time") if schema.short_name() == Some("MicroTime") => micro_time(text),
        Some("date-time") if !text.is_empty() && !super::formats::is_rfc3339(text) => Err(format!(
            "parsing time {text:?} as \"2006-01-02T15:04:05Z07:00\": cannot parse {text:?} as \
             \"2006\""
        )),
        Some("byte") if !super::formats::is_base64(text) => {
            let at = text.bytes().position(|byte| !super::formats::is_base64_byte(byte));
            Err(format!("illegal base64 data at input byte {}", at.unwrap_or(text.len() / 4 * 4)))
        }
        _ => Ok(()),
    }
}

/// A time with microseconds has exactly six decimals.
fn micro_time(text: &str) -> Result<(), String> {
    const LAYOUT: &str = "2006-01-02T15:04:05.000000Z07:00";
    const SECONDS_LENGTH: usize = "2006-01-02T15:04:05".len();
    const FRACTION_LENGTH: usize = ".000000".len();
    let refuse = |rest: &str, part: &str| {
        Err(format!("parsing time {text:?} as {LAYOUT:?}: cannot parse {rest:?} as {part:?}"))
    };
    if text.is_empty() {
        return Ok(());
    }
    let (seconds, rest) = text.split_at_checked(SECONDS_LENGTH).unwrap_or_default();
    if !super::formats::is_rfc3339(&format!("{seconds}Z")) {
        const DAY_LENGTH: usize = "2006-01-02".len();
        let (day, time) = text.split_at_checked(DAY_LENGTH).unwrap_or_default();
        return match super::formats::is_rfc3339(&format!("{day}T00:00:00Z")) {
            true if !time.starts_with('T') => refuse(time, "T"),
            _ => refuse(text, "2006"),
        };
    }
    let (fraction, zone) = rest.split_at_checked(FRACTION_LENGTH).unwrap_or_default();
    let digits = fraction.strip_prefix('.').unwrap_or_default();
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return refuse(rest, ".000000");
    }
    match super::formats::is_rfc3339(&format!("{seconds}{zone}")) {
        true => Ok(()),
        false => refuse(zone, "Z07:00"),
    }
}

fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The Go type of a schema, as error texts spell it: `[]v1.Container`.
fn go_type(schema: &Schema) -> String {
    if schema.format.as_deref() == Some("date-time") {
        return "string".to_owned();
    }
    if let Some(name) = &schema.name {
        let mut parts = name.rsplit('.');
        let kind = parts.next().unwrap_or_default();
        return format!("{}.{kind}", parts.next().unwrap_or_default());
    }
    match schema.kind {
        Some(Type::Array) => {
            format!("[]{}", schema.item().map_or_else(|| "interface {}".to_owned(), go_type))
        }
        Some(Type::Object) => {
            format!("map[string]{}", schema.values().map_or_else(|| "string".to_owned(), go_type))
        }
        Some(Type::Integer) => schema.format.clone().unwrap_or_else(|| "int64".to_owned()),
        Some(Type::Number) => "float64".to_owned(),
        Some(Type::Boolean) => "bool".to_owned(),
        _ if schema.format.as_deref() == Some("byte") => "[]uint8".to_owned(),
        _ => "string".to_owned(),
    }
}
