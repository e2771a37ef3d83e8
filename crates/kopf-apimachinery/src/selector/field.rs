//! Field selectors: `metadata.name=a,status.phase!=Running`.

use serde_json::Value;

use crate::resource::ResourceInfo;

/// A conjunction of comparisons of fields with strings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FieldSelector {
    terms: Vec<Term>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Term {
    field: String,
    value: String,
    equal: bool,
}

impl FieldSelector {
    /// Parses the text form, with upstream's error messages.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut terms = Vec::new();
        let mut parts = split_terms(text);
        // Errors are about the first part in this order.
        parts.sort_unstable();
        for part in parts {
            if part.is_empty() {
                continue;
            }
            let (field, value, equal) = split_operator(&part)
                .ok_or_else(|| format!("invalid selector: '{text}'; can't understand '{part}'"))?;
            terms.push(Term { field: field.to_owned(), value: unescape(value)?, equal });
        }
        Ok(Self { terms })
    }

    /// Whether everything matches.
    pub(crate) fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Whether the object matches every term.
    pub(crate) fn matches(&self, object: &Value) -> bool {
        self.terms.iter().all(|term| {
            let actual = field_text(object, &term.field);
            (actual == term.value) == term.equal
        })
    }

    /// The value of a `metadata.name=` term.
    pub(crate) fn name(&self) -> Option<&str> {
        self.terms
            .iter()
            .find(|term| term.equal && term.field == "metadata.name")
            .map(|term| term.value.as_str())
    }

    /// Rejects fields that the resource does not support in selectors, with upstream's two
    /// messages.
    pub(crate) fn check(
        &self,
        resource: &ResourceInfo,
        known: Option<&[&str]>,
    ) -> Result<(), String> {
        for term in &self.terms {
            let field = term.field.as_str();
            if field == "metadata.name"
                || (field == "metadata.namespace" && (resource.namespaced || !resource.is_custom()))
            {
                continue;
            }
            if let Some(custom) = &resource.custom {
                let is_known = custom
                    .selectable_fields
                    .iter()
                    .any(|path| path.trim_start_matches('.') == field);
                if is_known {
                    continue;
                }
                return Err(format!("field label not supported: {field}"));
            }
            match known {
                Some(fields) if fields.contains(&field) => {}
                Some(_) if resource.group == "batch" => {
                    return Err(format!(
                        "field label {field:?} not supported for {}",
                        resource.kind
                    ));
                }
                Some(_) if resource.resource == "events" || resource.group.is_empty() => {
                    return Err(format!("field label not supported: {field}"));
                }
                Some(_) | None => {
                    return Err(format!(
                        "{field:?} is not a known field selector: only \"metadata.name\", \
                         \"metadata.namespace\""
                    ));
                }
            }
        }
        Ok(())
    }
}

fn split_terms(text: &str) -> Vec<String> {
    let mut terms = vec![String::new()];
    let mut escaped = false;
    for character in text.chars() {
        if character == ',' && !escaped {
            terms.push(String::new());
            continue;
        }
        escaped = character == '\\' && !escaped;
        if let Some(term) = terms.last_mut() {
            term.push(character);
        }
    }
    terms
}

fn split_operator(term: &str) -> Option<(&str, &str, bool)> {
    term.char_indices().find_map(|(position, _)| {
        let (field, rest) = term.split_at(position);
        rest.strip_prefix("!=")
            .map(|value| (field, value, false))
            .or_else(|| rest.strip_prefix("==").map(|value| (field, value, true)))
            .or_else(|| rest.strip_prefix('=').map(|value| (field, value, true)))
    })
}

fn unescape(value: &str) -> Result<String, String> {
    const INVALID: &str = "invalid field selector";
    let mut text = String::with_capacity(value.len());
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        match (character, character == '\\') {
            (_, true) => match characters.next() {
                Some(escaped @ ('\\' | ',' | '=')) => text.push(escaped),
                other => {
                    let other = other.map(String::from).unwrap_or_default();
                    return Err(format!("{INVALID}: invalid escape sequence: \\{other}"));
                }
            },
            (',' | '=', _) => {
                let number = u32::from(character);
                return Err(format!("{INVALID}: unescaped character in value: {number}"));
            }
            _ => text.push(character),
        }
    }
    Ok(text)
}

/// The value of a field as selectors see it; objects are always in their storage version.
fn field_text(object: &Value, field: &str) -> String {
    let field = match field {
        "source" => {
            let component = &object["source"]["component"];
            if component.as_str().is_some_and(|text| !text.is_empty()) {
                "source.component"
            } else {
                "reportingComponent"
            }
        }
        "reportingController" => "reportingComponent",
        "status.successful" => "status.succeeded",
        other => other,
    };
    let field = field.replacen("regarding.", "involvedObject.", 1);
    let mut value = object;
    for key in field.split('.') {
        value = &value[key];
    }
    match value {
        Value::String(text) => text.clone(),
        Value::Null => default_text(&field).to_owned(),
        Value::Array(items) => items
            .iter()
            .filter_map(|item| item["ip"].as_str().or(item.as_str()))
            .collect::<Vec<_>>()
            .join(","),
        other => other.to_string(),
    }
}

fn default_text(field: &str) -> &'static str {
    match field {
        "spec.unschedulable" | "spec.hostNetwork" => "false",
        "status.replicas" | "status.succeeded" => "0",
        _ => "",
    }
}
