//! Query strings: decoded pairs and options.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

use crate::{FieldError, StatusError};

/// The decoded pairs of a query string.
#[derive(Debug, Clone, Default)]
pub(crate) struct Query {
    pairs: Vec<(String, String)>,
}

impl Query {
    /// Decodes a query; empty pairs are skipped, bare keys get an empty value.
    pub(crate) fn parse(query: &str) -> Self {
        let pairs = query
            .split('&')
            .filter(|pair| !pair.is_empty())
            .map(|pair| {
                let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
                (decode(key).into_owned(), decode(value).into_owned())
            })
            .collect();
        Self { pairs }
    }

    /// The first value of a key.
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.pairs.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }

    /// The first value of a key, empty when absent.
    pub(crate) fn text(&self, key: &str) -> &str {
        self.get(key).unwrap_or_default()
    }

    /// Every value of a key.
    pub(crate) fn all(&self, key: &str) -> Vec<&str> {
        self.pairs
            .iter()
            .filter(|(known, _)| known == key)
            .map(|(_, value)| value.as_str())
            .collect()
    }

    /// A flag: present and neither `false` nor `0`.
    pub(crate) fn flag(&self, key: &str) -> bool {
        self.get(key).is_some_and(|value| value != "false" && value != "0")
    }
}

/// Percent-decodes a path, where `+` is literal. Invalid escapes are kept.
pub(crate) fn decode_path(text: &str) -> Cow<'_, str> {
    match text.contains('%') {
        true => percent_decode_str(text).decode_utf8_lossy(),
        false => Cow::Borrowed(text),
    }
}

/// Percent-decodes a component of a query, where `+` is a space.
fn decode(text: &str) -> Cow<'_, str> {
    match text.contains('+') {
        true => Cow::Owned(decode_path(&text.replace('+', " ")).into_owned()),
        false => decode_path(text),
    }
}

/// How unknown and duplicate fields are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum FieldValidation {
    /// Silently dropped.
    Ignore,
    /// Dropped, with a `Warning` header each.
    #[default]
    Warn,
    /// The request fails.
    Strict,
}

/// The options of a write.
#[derive(Debug, Clone, Default)]
pub(crate) struct WriteOptions {
    /// Whether to process the request without storing anything.
    pub(crate) dry_run: bool,
    /// The owner of the written fields; empty means the user agent's name.
    pub(crate) field_manager: String,
    /// How to treat unknown fields.
    pub(crate) field_validation: FieldValidation,
    /// Whether to take over fields of other managers (apply only).
    pub(crate) force: Option<bool>,
}

impl WriteOptions {
    /// Reads the options; `kind` is `CreateOptions`, `UpdateOptions` or `PatchOptions`.
    pub(crate) fn parse(query: &Query, kind: &str) -> Result<Self, StatusError> {
        let mut errors = Vec::new();
        let dry_run = parse_dry_run(&query.all("dryRun"), &mut errors);
        let field_validation = match query.text("fieldValidation") {
            "" | "Warn" => FieldValidation::Warn,
            "Ignore" => FieldValidation::Ignore,
            "Strict" => FieldValidation::Strict,
            other => {
                errors.push(FieldError::not_supported(
                    "fieldValidation",
                    &other.into(),
                    &["", "Ignore", "Strict", "Warn"],
                ));
                FieldValidation::Warn
            }
        };
        let field_manager = query.text("fieldManager").to_owned();
        if field_manager.len() > FIELD_MANAGER_LENGTH_MAX {
            errors.push(FieldError::too_long("fieldManager", FIELD_MANAGER_LENGTH_MAX));
        }
        let odd = field_manager.chars().enumerate().find(|(_, letter)| letter.is_control());
        if let Some((place, letter)) = odd {
            let code = u32::from(letter);
            let detail = format!("invalid character U+{code:04X} (at position {place})");
            let value = field_manager.as_str().into();
            errors.push(FieldError::invalid("fieldManager", &value, &detail));
        }
        let force = query.get("force").map(|value| value != "false" && value != "0");
        if !errors.is_empty() {
            return Err(StatusError::invalid("meta.k8s.io", kind, "", &errors));
        }
        Ok(Self { dry_run, field_manager, field_validation, force })
    }
}

const FIELD_MANAGER_LENGTH_MAX: usize = 128;

/// Whether `dryRun` asks for a dry run; anything but `All` is an error.
pub(crate) fn parse_dry_run(values: &[&str], errors: &mut Vec<FieldError>) -> bool {
    if values.iter().any(|value| *value != "All") {
        let quoted: Vec<String> = values.iter().map(|value| format!("{value:?}")).collect();
        errors.push(FieldError::new(
            crate::FieldErrorReason::NotSupported,
            "dryRun",
            format!(
                "Unsupported value: []string{{{}}}: supported values: \"All\"",
                quoted.join(", ")
            ),
        ));
    }
    !values.is_empty()
}

#[cfg(test)]
mod tests;
