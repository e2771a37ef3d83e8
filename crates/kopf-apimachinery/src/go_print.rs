//! Prints values as Go's `%#v` prints decoded JSON, for error messages.

use std::fmt::Write;

use serde_json::Value;

/// `map[string]interface {}{"name":"a"}`, `[]interface {}{1, "x"}`.
pub(crate) fn go_syntax(value: &Value) -> String {
    let mut text = String::new();
    print(value, &mut text);
    text
}

fn print(value: &Value, text: &mut String) {
    match value {
        Value::Null => text.push_str("interface {}(nil)"),
        Value::String(string) => text.push_str(&quoted(string)),
        Value::Array(items) => {
            text.push_str("[]interface {}{");
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push_str(", ");
                }
                print(item, text);
            }
            text.push('}');
        }
        Value::Object(fields) => {
            text.push_str("map[string]interface {}{");
            let mut names: Vec<&String> = fields.keys().collect();
            names.sort();
            for (index, name) in names.into_iter().enumerate() {
                if index > 0 {
                    text.push_str(", ");
                }
                let _ = write!(text, "{}:", quoted(name));
                print(&fields[name], text);
            }
            text.push('}');
        }
        Value::Number(number) if number.is_f64() => {
            text.push_str(&float(number.as_f64().unwrap_or_default()));
        }
        other => {
            let _ = write!(text, "{other}");
        }
    }
}

/// Go's `%v` of a float: shortest digits, an exponent beyond six digits.
fn float(value: f64) -> String {
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..6).contains(&exponent) {
        return format!("{value}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

/// The name of the Go type of a decoded JSON value.
pub fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// Go's `%q`.
pub fn quoted(string: &str) -> String {
    let mut text = String::with_capacity(string.len() + 2);
    text.push('"');
    for character in string.chars() {
        match character {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\u{7}' => text.push_str("\\a"),
            '\u{8}' => text.push_str("\\b"),
            '\u{b}' => text.push_str("\\v"),
            '\u{c}' => text.push_str("\\f"),
            control if control.is_control() && (control as u32) < 0x80 => {
                let _ = write!(text, "\\x{:02x}", control as u32);
            }
            other => text.push(other),
        }
    }
    text.push('"');
    text
}

/// Go's `%+v` of decoded JSON: `map[a:map[b:1] c:[x y]]`.
pub fn go_map(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(string) => string.clone(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(go_map).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(fields) => {
            let mut fields: Vec<(&String, &Value)> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            let fields: Vec<String> =
                fields.iter().map(|(name, value)| format!("{name}:{}", go_map(value))).collect();
            format!("map[{}]", fields.join(" "))
        }
        other => other.to_string(),
    }
}
