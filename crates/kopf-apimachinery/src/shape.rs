//! The JSON shape of built-in objects after a round trip through the real server.
//!
//! The real server decodes into Go structs and encodes those again: empty optional fields vanish,
//! empty required ones and nested structs appear, unknown fields are lost, times and quantities get
//! their canonical text. Implements that round trip, based on the extracted `go-shapes.txt`. Knows
//! nothing about defaults and validation.

use std::collections::HashMap;
use std::sync::OnceLock;

use serde_json::{Map, Value};

use crate::quantity::Quantity;

/// The struct of one kind.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    index: usize,
}

impl Shape {
    /// The shape of a built-in kind, such as `apps/v1` `Deployment`.
    pub fn of(api_version: &str, kind: &str) -> Option<Self> {
        let shapes = shapes();
        let separator = if api_version.contains('/') { "" } else { "/" };
        let key = [separator, api_version, "/", kind].concat();
        shapes.kinds.get(key.as_str()).map(|index| Self { index: *index })
    }

    /// The object of this kind with nothing set.
    pub fn empty(self) -> Value {
        let mut object = self.normalised(Value::Object(Map::new()));
        if let Value::Object(fields) = &mut object {
            fields.shift_remove("kind");
            fields.shift_remove("apiVersion");
        }
        object
    }

    /// The object as the real server would return it.
    pub(crate) fn normalised(self, object: Value) -> Value {
        normalise_struct(self.index, object)
    }

    /// Whether the kind has this top-level field.
    pub fn has_field(self, name: &str) -> bool {
        shapes().structs[self.index].fields.iter().any(|field| field.name == name)
    }
}

/// Converts a built-in object to its canonical shape; other objects stay unchanged.
pub fn normalise(object: &mut Value) {
    let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
    let Some(shape) = Shape::of(text("apiVersion"), text("kind")) else { return };
    // An empty list of managed fields is a request to reset them, not just an empty field.
    let managed_fields = crate::meta::field(object, "managedFields");
    let forgets = managed_fields.and_then(Value::as_array).is_some_and(Vec::is_empty);
    *object = shape.normalised(object.take());
    if forgets && let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.insert("managedFields".to_owned(), Value::Array(Vec::new()));
    }
}

struct Shapes {
    kinds: HashMap<&'static str, usize>,
    structs: Vec<Struct>,
}

#[derive(Default)]
struct Struct {
    fields: Vec<Field>,
}

struct Field {
    name: &'static str,
    may_omit: bool,
    content: Content,
}

/// The content of a Go field.
enum Content {
    Text,
    Number,
    Bool,
    Bytes,
    Time,
    MicroTime,
    IntOrString,
    Quantity,
    Json,
    Struct(usize),
    Pointer(Box<Content>),
    List(Box<Content>),
    Map(Box<Content>),
}

fn shapes() -> &'static Shapes {
    static SHAPES: OnceLock<Shapes> = OnceLock::new();
    SHAPES.get_or_init(|| parse(include_str!("shape/go-shapes.txt")))
}

/// Removes the empty lists that storage does not preserve.
///
/// Most kinds are stored as protobuf, which does not distinguish an empty list from an absent one.
/// Only fields that are always written can have one, since others vanish when empty.
pub fn forget_empty_lists(object: &mut Value) {
    let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
    let is_stored_as_json = text("apiVersion").starts_with("apiextensions.k8s.io/")
        || text("apiVersion").starts_with("apiregistration.k8s.io/");
    let Some(shape) = Shape::of(text("apiVersion"), text("kind")) else { return };
    if !is_stored_as_json {
        forget_in_struct(shape.index, object);
    }
}

fn forget_in_struct(index: usize, value: &mut Value) {
    for field in &shapes().structs[index].fields {
        if let Some(value) = value.get_mut(field.name) {
            forget_in_content(&field.content, value);
        }
    }
}

fn forget_in_content(content: &Content, value: &mut Value) {
    match content {
        Content::Struct(index) => forget_in_struct(*index, value),
        Content::Pointer(inner) => forget_in_content(inner, value),
        Content::List(_) if value.as_array().is_some_and(Vec::is_empty) => *value = Value::Null,
        Content::List(inner) => {
            let items = value.as_array_mut().into_iter().flatten();
            items.for_each(|item| forget_in_content(inner, item));
        }
        _ => {}
    }
}

fn parse(text: &'static str) -> Shapes {
    let is_struct = |line: &&str| !line.starts_with([' ', '=', '#']) && !line.is_empty();
    let names: HashMap<&str, usize> =
        text.lines().filter(is_struct).enumerate().map(|(index, name)| (name, index)).collect();
    let mut kinds = HashMap::new();
    let mut structs: Vec<Struct> = Vec::new();
    for line in text.lines() {
        if let Some((kind, name)) = line.strip_prefix('=').and_then(|line| line.split_once(' ')) {
            kinds.insert(kind, names[name]);
        } else if let Some(field) = line.strip_prefix(' ') {
            let field = parse_field(field, &names);
            structs.last_mut().expect("fields follow the name of their struct").fields.push(field);
        } else if is_struct(&line) {
            structs.push(Struct::default());
        }
    }
    Shapes { kinds, structs }
}

fn parse_field(text: &'static str, names: &HashMap<&str, usize>) -> Field {
    let end = text.find(['?', '!']).expect("a field says whether it may be omitted");
    Field {
        name: &text[..end],
        may_omit: text[end..].starts_with('?'),
        content: parse_content(&text[end + 1..], names),
    }
}

fn parse_content(text: &str, names: &HashMap<&str, usize>) -> Content {
    let inner = |rest: &str| Box::new(parse_content(rest, names));
    if let Some(rest) = text.strip_prefix('*') {
        return Content::Pointer(inner(rest));
    }
    if let Some(rest) = text.strip_prefix("[]") {
        return Content::List(inner(rest));
    }
    if let Some(rest) = text.strip_prefix("{}") {
        return Content::Map(inner(rest));
    }
    if let Some(name) = text.strip_prefix('@') {
        return Content::Struct(names[name]);
    }
    match text {
        "s" | "D" => Content::Text,
        "n" => Content::Number,
        "b" => Content::Bool,
        "y" => Content::Bytes,
        "T" => Content::Time,
        "M" => Content::MicroTime,
        "I" => Content::IntOrString,
        "Q" => Content::Quantity,
        _ => Content::Json,
    }
}

fn normalise_struct(index: usize, value: Value) -> Value {
    let mut given = match value {
        Value::Object(given) => given,
        Value::Null => Map::new(),
        // The schema check reports the wrong type.
        other => return other,
    };
    let fields = &shapes().structs[index].fields;
    let mut result = Map::with_capacity(given.len());
    for field in fields {
        let value = given.swap_remove(field.name).unwrap_or(Value::Null);
        if let Some(value) = normalise_field(field, value) {
            result.insert(field.name.to_owned(), value);
        }
    }
    Value::Object(result)
}

fn normalise_field(field: &Field, value: Value) -> Option<Value> {
    let value = normalise_content(&field.content, value);
    if field.may_omit && is_omitted(&field.content, &value) { None } else { Some(value) }
}

/// Whether Go's `omitempty` omits the value; structs are never empty.
fn is_omitted(content: &Content, value: &Value) -> bool {
    match content {
        Content::Struct(_)
        | Content::Time
        | Content::MicroTime
        | Content::IntOrString
        | Content::Quantity => false,
        Content::Pointer(_) | Content::Json => value.is_null(),
        Content::Text => value.as_str().is_some_and(str::is_empty),
        Content::Bytes => value.is_null() || value.as_str().is_some_and(str::is_empty),
        Content::Number => value.as_f64() == Some(0.0),
        Content::Bool => value == &Value::Bool(false),
        Content::List(_) => value.is_null() || value.as_array().is_some_and(Vec::is_empty),
        Content::Map(_) => value.is_null() || value.as_object().is_some_and(Map::is_empty),
    }
}

fn normalise_content(content: &Content, value: Value) -> Value {
    match (content, value) {
        (Content::Struct(index), value) => normalise_struct(*index, value),
        (Content::Pointer(_), Value::Null) => Value::Null,
        (Content::Pointer(inner), value) => normalise_content(inner, value),
        (Content::Text, Value::Null) => Value::String(String::new()),
        (Content::Number | Content::IntOrString, Value::Null) => Value::from(0),
        (Content::Number, value) => whole(value),
        (Content::Bool, Value::Null) => Value::Bool(false),
        (Content::Quantity, value) => canonical_quantity(value),
        (Content::Time, Value::String(text)) => Value::String(canonical_time(text, 0)),
        (Content::MicroTime, Value::String(text)) => Value::String(canonical_time(text, 6)),
        (Content::List(inner), Value::Array(items)) => {
            Value::Array(items.into_iter().map(|item| normalise_content(inner, item)).collect())
        }
        (Content::Map(inner), Value::Object(mut fields)) => {
            // Go writes maps in the order of their keys.
            fields.sort_keys();
            for value in fields.values_mut() {
                *value = normalise_content(inner, value.take());
            }
            Value::Object(fields)
        }
        (_, value) => value,
    }
}

/// Writes numbers as Go does, which has no `1.0`.
pub fn tidy_numbers(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => *value = whole(value.take()),
        Value::Array(items) => items.iter_mut().for_each(tidy_numbers),
        Value::Object(fields) => fields.values_mut().for_each(tidy_numbers),
        _ => {}
    }
}

/// Integers that a client wrote as `1.0`.
fn whole(value: Value) -> Value {
    match value.as_f64() {
        Some(float) if !value.is_i64() && !value.is_u64() => {
            #[expect(clippy::cast_possible_truncation, reason = "checked to be a whole number")]
            let integer = float as i64;
            #[expect(clippy::cast_precision_loss, reason = "only equal values are replaced")]
            if integer as f64 == float { Value::from(integer) } else { value }
        }
        _ => value,
    }
}

fn canonical_quantity(value: Value) -> Value {
    let text = match &value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        Value::Null => "0".to_owned(),
        _ => return value,
    };
    Quantity::parse(&text).map_or(value, |quantity| Value::String(quantity.canonical()))
}

/// RFC 3339 in UTC with this many decimals of a second; invalid times are returned unchanged.
pub(crate) fn canonical_time(text: String, decimals: u8) -> String {
    let Ok(time) = text.parse::<jiff::Timestamp>() else { return text };
    let unit = if decimals == 0 { jiff::Unit::Second } else { jiff::Unit::Microsecond };
    let truncated =
        time.round(jiff::TimestampRound::new().smallest(unit).mode(jiff::RoundMode::Floor));
    match (truncated, decimals) {
        (Ok(time), 0) => format!("{time:.0}"),
        (Ok(time), _) => format!("{time:.6}"),
        (Err(_), _) => text,
    }
}

#[cfg(test)]
mod tests;
