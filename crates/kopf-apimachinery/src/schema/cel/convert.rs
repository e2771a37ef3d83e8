//! Turns JSON into CEL values with the types that the schema gives them.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use kube_cel::cel::Value as CelValue;
use kube_cel::cel::common::ast::IdedExpr;
use kube_cel::cel::objects::{Key, Map};
use serde_json::Value;

use super::program::{parse, with_functions};
use crate::schema::ir::{Field, Schema, Type};

static TIMESTAMP: LazyLock<IdedExpr> =
    LazyLock::new(|| parse("timestamp(text)").expect("a constant expression parses"));
static DURATION: LazyLock<IdedExpr> =
    LazyLock::new(|| parse("duration(text)").expect("a constant expression parses"));

/// A value, with the places where its JSON does not have the type declared in the schema.
pub(super) struct Converted {
    pub(super) value: CelValue,
    problems: Vec<(String, String)>,
}

impl Converted {
    pub(super) fn new(schema: &Schema, value: &Value, is_root: bool) -> Self {
        let mut problems = Vec::new();
        let value = convert(Some(schema), value, is_root, "", &mut problems);
        Self { value, problems }
    }

    /// A type problem that affects the rule, since it mentions the field.
    pub(super) fn problem_for(&self, rule: &str) -> Option<&str> {
        let mentions = |(field, _): &&(String, String)| {
            field.is_empty() || rule.contains(&format!(".{}", escape(field)))
        };
        self.problems.iter().find(mentions).map(|(_, problem)| problem.as_str())
    }
}

/// Converts a value without a known type.
pub(super) fn untyped(value: &Value) -> CelValue {
    convert(None, value, false, "", &mut Vec::new())
}

/// Converts a value to JSON; the error says what cannot be converted.
pub(super) fn to_json(value: &CelValue) -> Result<Value, String> {
    Ok(match value {
        CelValue::Null => Value::Null,
        CelValue::Bool(value) => (*value).into(),
        CelValue::Int(value) => (*value).into(),
        CelValue::UInt(value) => (*value).into(),
        CelValue::Float(value) => (*value).into(),
        CelValue::String(text) => text.as_str().into(),
        CelValue::Bytes(bytes) => {
            use base64::Engine;
            base64::engine::general_purpose::STANDARD.encode(bytes.as_slice()).into()
        }
        CelValue::List(items) => items.iter().map(to_json).collect::<Result<_, _>>()?,
        CelValue::Map(map) => {
            let field = |(key, value): (&Key, &CelValue)| match key {
                Key::String(key) => Ok((key.to_string(), to_json(value)?)),
                _ => Err("JSON has no keys but texts".to_owned()),
            };
            map.map.iter().map(field).collect::<Result<_, _>>()?
        }
        other => {
            let kind = super::program::type_name(other).unwrap_or("value");
            return Err(format!("a {kind} could not be marshalled to JSON"));
        }
    })
}

fn convert(
    schema: Option<&Schema>,
    value: &Value,
    is_root: bool,
    field: &str,
    problems: &mut Vec<(String, String)>,
) -> CelValue {
    match value {
        Value::Null => CelValue::Null,
        Value::Bool(value) => CelValue::Bool(*value),
        Value::Number(number) => {
            let kind = schema.and_then(|schema| schema.kind);
            match (kind, number.as_i64()) {
                (Some(Type::Number), Some(_)) | (_, None) => {
                    if kind == Some(Type::Integer) {
                        let problem = "invalid data, expected int, got float64".to_owned();
                        problems.push((field.to_owned(), problem));
                    }
                    CelValue::Float(number.as_f64().unwrap_or_default())
                }
                (_, Some(integer)) => CelValue::Int(integer),
            }
        }
        Value::String(text) => string(schema, text),
        Value::Array(items) => {
            let item = schema.and_then(Schema::item);
            let convert = |value| convert(item, value, false, field, problems);
            CelValue::List(Arc::new(items.iter().map(convert).collect()))
        }
        Value::Object(fields) => {
            let mut map = HashMap::with_capacity(fields.len());
            for (name, value) in fields {
                if value.is_null() && schema.is_some_and(|schema| schema.property(name).is_some()) {
                    // A null field counts as absent.
                    continue;
                }
                let (child, is_key) = match schema.map(|schema| schema.field(name)) {
                    Some(Field::Declared(child)) => (Some(child), false),
                    Some(Field::Entry(child)) => (Some(child), true),
                    _ => (None, true),
                };
                let value = if name == "metadata" && is_root {
                    metadata(value)
                } else {
                    convert(child, value, false, name, problems)
                };
                let name = if is_key { name.clone() } else { escape(name) };
                map.insert(Key::String(Arc::new(name)), value);
            }
            CelValue::Map(Map { map: Arc::new(map) })
        }
    }
}

/// Rules see only the name fields of metadata.
fn metadata(value: &Value) -> CelValue {
    let mut map = HashMap::new();
    for name in ["name", "generateName"] {
        if let Some(value) = value.get(name) {
            map.insert(Key::String(Arc::new(name.to_owned())), untyped(value));
        }
    }
    CelValue::Map(Map { map: Arc::new(map) })
}

fn string(schema: Option<&Schema>, text: &str) -> CelValue {
    let plain = || CelValue::String(Arc::new(text.to_owned()));
    let expression = match schema.and_then(|schema| schema.format.as_deref()) {
        Some("date-time") => &*TIMESTAMP,
        Some("duration") => &*DURATION,
        Some("byte") => {
            use base64::Engine;
            let bytes = base64::engine::general_purpose::STANDARD.decode(text);
            return bytes.map_or_else(|_| plain(), |bytes| CelValue::Bytes(Arc::new(bytes)));
        }
        Some("date") => {
            return parsed(&TIMESTAMP, &format!("{text}T00:00:00Z")).unwrap_or_else(plain);
        }
        _ => return plain(),
    };
    parsed(expression, text).unwrap_or_else(plain)
}

fn parsed(expression: &IdedExpr, text: &str) -> Option<CelValue> {
    with_functions(|functions| {
        let mut context = functions.new_inner_scope();
        context.add_variable_from_value("text", CelValue::String(Arc::new(text.to_owned())));
        CelValue::resolve(expression, &context).ok()
    })
}

/// How rules write a field name that is not an identifier: `a-b` is `a__dash__b`.
pub(super) fn escape(name: &str) -> String {
    const RESERVED: [&str; 21] = [
        "true",
        "false",
        "null",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    ];
    if RESERVED.contains(&name) {
        return format!("__{name}__");
    }
    if !name.contains(['_', '.', '-', '/']) {
        return name.to_owned();
    }
    name.replace("__", "__underscores__")
        .replace('.', "__dot__")
        .replace('-', "__dash__")
        .replace('/', "__slash__")
}
