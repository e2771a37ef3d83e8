//! Formats the log lines of the operator for developers.
//!
//! Pure. The operator logs JSON, which is shortened here; other lines are shown unchanged.

use serde_json::Value;

use super::screen::Paint;

/// Shortens one line.
pub(super) fn shorten(line: &str, paint: Paint) -> String {
    let Ok(Value::Object(fields)) = serde_json::from_str(line) else { return line.to_owned() };
    let (Some(message), Some(severity)) =
        (fields.get("message").and_then(Value::as_str), fields.get("severity"))
    else {
        return line.to_owned();
    };
    let level = match severity.as_str() {
        Some("error") => paint.red("ERROR"),
        Some("warn") => paint.yellow("WARN "),
        Some("debug") => paint.dim("DEBUG"),
        _ => paint.dim("INFO "),
    };
    let timestamp = fields.get("timestamp").and_then(Value::as_str).unwrap_or_default();
    let time = timestamp.get(11..19).unwrap_or("--:--:--");
    let object = fields.get("object").map(place).unwrap_or_default();
    let mut text = format!("{} {level} {}{message}", paint.dim(time), paint.cyan(&object));
    for (key, value) in &fields {
        let is_known = ["message", "severity", "timestamp", "object", "exc_info"];
        if is_known.contains(&key.as_str()) || value.is_null() {
            continue;
        }
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        text.push_str(&paint.dim(&format!(" {key}={value}")));
    }
    if let Some(details) = fields.get("exc_info").and_then(Value::as_str) {
        text.push('\n');
        text.push_str(details);
    }
    text
}

fn place(object: &Value) -> String {
    let name = object["name"].as_str().unwrap_or_default();
    match object["namespace"].as_str() {
        Some(namespace) => format!("{namespace}/{name} "),
        None => format!("{name} "),
    }
}

#[cfg(test)]
mod tests;
