//! Rows of custom resources: the columns that their CRD declares.

use serde_json::{Value, json};

use super::{CREATED_DESCRIPTION, NAME_DESCRIPTION, Row, age, column};
use crate::json_path::JsonPath;

/// The columns of a version; the age if none are declared.
pub(super) fn columns(declared: &[Value]) -> Value {
    let mut columns = vec![column("Name", "string", "name", 0, NAME_DESCRIPTION)];
    for declaration in declared {
        let text = |field: &str| declaration[field].as_str().unwrap_or_default();
        let priority = declaration["priority"].as_i64().unwrap_or_default();
        let path = text("jsonPath");
        let generic = format!("Custom resource definition column (in JSONPath format): {path}");
        let description = Some(text("description")).filter(|text| !text.is_empty());
        let description = description.unwrap_or(&generic);
        columns.push(column(text("name"), text("type"), text("format"), priority, description));
    }
    if declared.is_empty() {
        columns.push(column("Age", "date", "", 0, CREATED_DESCRIPTION));
    }
    Value::Array(columns)
}

pub(super) fn cells(declared: &[Value], row: &Row<'_>) -> Vec<Value> {
    let mut cells = vec![row.name()];
    for declaration in declared {
        let text = |field: &str| declaration[field].as_str().unwrap_or_default();
        let path = JsonPath::parse(text("jsonPath")).ok();
        let found = path.and_then(|path| path.first(row.object));
        cells.push(found.map_or(Value::Null, |value| cell(text("type"), &value, row)));
    }
    if declared.is_empty() {
        cells.push(row.age());
    }
    cells
}

fn cell(kind: &str, value: &Value, row: &Row<'_>) -> Value {
    match (kind, value) {
        ("integer", Value::Number(number)) => match (number.as_i64(), number.as_f64()) {
            (Some(integer), _) => json!(integer),
            #[expect(clippy::cast_possible_truncation, reason = "upstream truncates as well")]
            (None, Some(float)) => json!(float as i64),
            _ => Value::Null,
        },
        ("number", Value::Number(number)) => match number.as_f64() {
            // Go prints whole numbers without a fraction.
            #[expect(clippy::cast_possible_truncation, reason = "whole and small enough")]
            Some(float) if float.fract() == 0.0 && float.abs() < 1e15 => json!(float as i64),
            float => json!(float),
        },
        ("boolean", Value::Bool(_)) => value.clone(),
        // Go's templates print this for nil.
        ("string", Value::Null) => json!("<no value>"),
        ("string", Value::String(text)) => json!(text),
        ("string", Value::Object(_) | Value::Array(_)) => json!(sorted_json(value)),
        ("string", other) => json!(other.to_string()),
        ("date", Value::String(time)) => match time.parse::<jiff::Timestamp>() {
            Ok(_) => json!(age::since(time, row.now)),
            Err(_) => json!("<invalid>"),
        },
        _ => Value::Null,
    }
}

/// JSON with sorted keys, as Go prints maps.
fn sorted_json(value: &Value) -> String {
    fn sorted(value: &Value) -> Value {
        match value {
            Value::Object(fields) => {
                let mut pairs: Vec<_> = fields.iter().collect();
                pairs.sort_by_key(|(key, _)| key.as_str());
                let pairs = pairs.into_iter().map(|(key, value)| (key.clone(), sorted(value)));
                Value::Object(pairs.collect())
            }
            Value::Array(items) => items.iter().map(sorted).collect(),
            other => other.clone(),
        }
    }
    sorted(value).to_string()
}
