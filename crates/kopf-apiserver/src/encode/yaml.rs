//! YAML as the real server writes it: sorted keys, unindented lists, Go's quoting.

use std::fmt::Write as _;

use serde_json::Value;

/// A whole document.
pub(super) fn write(value: &Value) -> String {
    let mut text = String::new();
    match value {
        Value::Object(fields) if !fields.is_empty() => write_fields(&mut text, value, 0),
        Value::Array(items) if !items.is_empty() => write_items(&mut text, items, 0),
        scalar => {
            write_scalar(&mut text, scalar, 0);
            text.push('\n');
        }
    }
    text
}

fn write_fields(text: &mut String, value: &Value, indent: usize) {
    let mut entries: Vec<(&String, &Value)> = value.as_object().into_iter().flatten().collect();
    entries.sort_by_key(|(key, _)| *key);
    for (index, (key, item)) in entries.into_iter().enumerate() {
        // The first key of a list item continues the line of its dash.
        if index > 0 || !text.ends_with("- ") {
            push_indent(text, indent);
        }
        write_text(text, key, indent);
        text.push(':');
        write_nested(text, item, indent);
    }
}

fn write_nested(text: &mut String, item: &Value, indent: usize) {
    match item {
        Value::Object(fields) if !fields.is_empty() => {
            text.push('\n');
            write_fields(text, item, indent + 2);
        }
        Value::Array(items) if !items.is_empty() => {
            text.push('\n');
            write_items(text, items, indent);
        }
        scalar => {
            text.push(' ');
            write_scalar(text, scalar, indent);
            text.push('\n');
        }
    }
}

fn write_items(text: &mut String, items: &[Value], indent: usize) {
    for item in items {
        push_indent(text, indent);
        text.push_str("- ");
        match item {
            Value::Object(fields) if !fields.is_empty() => write_fields(text, item, indent + 2),
            Value::Array(inner) if !inner.is_empty() => {
                // A list in a list starts on the line of the outer dash.
                let mut nested = String::new();
                write_items(&mut nested, inner, indent + 2);
                text.push_str(nested.trim_start());
            }
            scalar => {
                write_scalar(text, scalar, indent);
                text.push('\n');
            }
        }
    }
}

fn push_indent(text: &mut String, indent: usize) {
    text.extend(std::iter::repeat_n(' ', indent));
}

fn write_scalar(text: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Null => text.push_str("null"),
        Value::Object(_) => text.push_str("{}"),
        Value::Array(_) => text.push_str("[]"),
        Value::String(content) => write_text(text, content, indent),
        other => {
            let _ = write!(text, "{other}");
        }
    }
}

fn write_text(text: &mut String, content: &str, indent: usize) {
    let printable = |letter: char| letter == '\n' || letter == '\t' || !letter.is_control();
    if !content.chars().all(printable) || (content.contains('\n') && content.trim().is_empty()) {
        let _ = write!(text, "{content:?}");
    } else if content.contains('\n') && !content.starts_with([' ', '\n']) {
        let chomp = match content.strip_suffix('\n') {
            None => "-",
            Some(rest) if rest.ends_with('\n') => "+",
            Some(_) => "",
        };
        let _ = write!(text, "|{chomp}");
        for line in content.strip_suffix('\n').unwrap_or(content).split('\n') {
            text.push('\n');
            if !line.is_empty() {
                push_indent(text, indent + 2);
                text.push_str(line);
            }
        }
    } else if resolves_to_other_type(content) || content.contains('\n') {
        let _ = write!(text, "{content:?}");
    } else if needs_quotes(content) {
        push_folded(text, &format!("'{}'", content.replace('\'', "''")), indent + 2);
    } else {
        push_folded(text, content, indent + 2);
    }
}

/// Appends a text, broken at spaces after the line width that Go's encoder prefers.
fn push_folded(text: &mut String, content: &str, indent: usize) {
    const WIDTH: usize = 80;
    let line = text.rsplit('\n').next().unwrap_or_default();
    let mut column = line.chars().count();
    let mut letters = content.chars().peekable();
    let mut before = ' ';
    while let Some(letter) = letters.next() {
        let is_between = before != ' ' && letters.peek().is_some_and(|next| *next != ' ');
        if letter == ' ' && column > WIDTH && is_between {
            text.push('\n');
            push_indent(text, indent);
            column = indent;
        } else {
            text.push(letter);
            column += 1;
        }
        before = letter;
    }
}

/// Whether YAML 1.1 reads the text as a boolean, null, number or time.
fn resolves_to_other_type(content: &str) -> bool {
    let word = matches!(
        content.to_ascii_lowercase().as_str(),
        "" | "~"
            | "null"
            | "true"
            | "false"
            | "yes"
            | "no"
            | "on"
            | "off"
            | "y"
            | "n"
            | "<<"
            | "="
            | ".nan"
            | ".inf"
            | "-.inf"
            | "+.inf"
    );
    word || is_number(content) || is_time(content)
}

fn is_number(content: &str) -> bool {
    let plain = content.replace('_', "");
    let unsigned = plain.trim_start_matches(['-', '+']);
    let prefixed = ["0x", "0o", "0b"].iter().any(|prefix| {
        unsigned.strip_prefix(prefix).is_some_and(|digits| {
            !digits.is_empty() && digits.chars().all(|digit| digit.is_ascii_hexdigit())
        })
    });
    let starts_like_number =
        unsigned.starts_with(|first: char| first.is_ascii_digit() || first == '.');
    prefixed || (starts_like_number && plain.parse::<f64>().is_ok())
}

fn is_time(content: &str) -> bool {
    let bytes = content.as_bytes();
    bytes.len() >= 8
        && bytes[..4].iter().all(u8::is_ascii_digit)
        && bytes[4] == b'-'
        && (content.parse::<jiff::Timestamp>().is_ok()
            || content.parse::<jiff::civil::Date>().is_ok())
}

fn needs_quotes(content: &str) -> bool {
    let indicator = |first: char| "-?:,[]{}#&*!|>'\"%@`".contains(first);
    let first = content.chars().next();
    let dash_or_question = content.len() > 1
        && (content.starts_with('-') || content.starts_with('?') || content.starts_with(':'))
        && !content[1..].starts_with(' ');
    (first.is_some_and(indicator) && !dash_or_question)
        || content.starts_with(' ')
        || content.ends_with(' ')
        || content.ends_with(':')
        || content.contains(": ")
        || content.contains(" #")
        || content.starts_with("---")
}

#[cfg(test)]
mod tests {
    //! Tests for YAML responses.
    use serde_json::json;

    use super::write;

    #[test]
    fn documents_look_like_those_of_the_real_server() {
        let value = json!({
            "metadata": {"name": "a", "finalizers": ["x/y"], "time": "2026-01-01T00:00:00Z"},
            "data": {"k": "", "n": "1", "b": "yes", "t": "a\nb\n", "c": "a: b", "s": ".", "l": {}},
            "rules": [{"verbs": ["*"], "x": null}, {"y": [[1]]}],
        });
        assert_eq!(
            write(&value),
            "data:\n  b: \"yes\"\n  c: 'a: b'\n  k: \"\"\n  l: {}\n  \"n\": \"1\"\n  s: .\n  t: |\n    \
             a\n    b\nmetadata:\n  finalizers:\n  - x/y\n  name: a\n  time: \
             \"2026-01-01T00:00:00Z\"\nrules:\n- verbs:\n  - '*'\n  x: null\n- \"y\":\n  - - 1\n"
        );
    }
}
