//! One problem with one field, as validation reports it.
//!
//! Responsible for upstream's wording of field errors. Created by schema, CEL and kind validation;
//! becomes a cause of a 422 in `status_error`.

use serde_json::Value;

use crate::Cause;
use crate::go_print::{go_syntax, quoted};

/// The type of a field error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldErrorReason {
    /// A required value is missing.
    Required,
    /// A value that must be unique occurs more than once.
    Duplicate,
    /// A value breaks a rule.
    Invalid,
    /// A value is not one of the allowed ones.
    NotSupported,
    /// A value may not be set or changed here.
    Forbidden,
    /// A string is too long.
    TooLong,
    /// A list has too many items.
    TooMany,
    /// A value has the wrong JSON type.
    TypeInvalid,
    /// A referenced object does not exist.
    NotFound,
    /// The server failed while checking.
    Internal,
}

impl FieldErrorReason {
    /// The reason as causes carry it, such as `FieldValueInvalid`.
    pub fn cause_reason(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::NotFound => "FieldValueNotFound",
            Self::Internal => "InternalError",
        }
    }
}

/// One problem with one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    /// The type of the error.
    pub reason: FieldErrorReason,
    /// The path of the field, such as `spec.replicas`.
    pub field: String,
    /// The text after the path, such as `Invalid value: -1: must be positive`.
    pub message: String,
}

impl FieldError {
    /// Creates a field error with a complete message.
    pub fn new(
        reason: FieldErrorReason,
        field: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self { reason, field: field.into(), message: message.into() }
    }

    /// `Required value` with an optional detail.
    pub fn required(field: impl Into<String>, detail: &str) -> Self {
        Self::new(FieldErrorReason::Required, field, with_detail("Required value".into(), detail))
    }

    /// `Invalid value: VALUE: detail`.
    pub fn invalid(field: impl Into<String>, value: &Value, detail: &str) -> Self {
        let text = format!("Invalid value: {}", shown(value));
        Self::new(FieldErrorReason::Invalid, field, with_detail(text, detail))
    }

    /// `Invalid value: VALUE: detail` with reason `FieldValueTypeInvalid`.
    pub fn type_invalid(field: impl Into<String>, value: &Value, detail: &str) -> Self {
        let text = format!("Invalid value: {}", shown(value));
        Self::new(FieldErrorReason::TypeInvalid, field, with_detail(text, detail))
    }

    /// `Forbidden: detail`.
    pub fn forbidden(field: impl Into<String>, detail: &str) -> Self {
        Self::new(FieldErrorReason::Forbidden, field, with_detail("Forbidden".into(), detail))
    }

    /// `Duplicate value: VALUE`.
    pub fn duplicate(field: impl Into<String>, value: &Value) -> Self {
        let text = format!("Duplicate value: {}", shown(value));
        Self::new(FieldErrorReason::Duplicate, field, text)
    }

    /// `Unsupported value: VALUE: supported values: "a", "b"`.
    pub fn not_supported(field: impl Into<String>, value: &Value, supported: &[&str]) -> Self {
        let text = format!("Unsupported value: {}", shown(value));
        let quoted: Vec<String> = supported.iter().map(|item| quoted(item)).collect();
        let detail = if quoted.is_empty() {
            String::new()
        } else {
            format!("supported values: {}", quoted.join(", "))
        };
        Self::new(FieldErrorReason::NotSupported, field, with_detail(text, &detail))
    }

    /// `Too long: may not be more than MAX bytes`.
    pub fn too_long(field: impl Into<String>, max: usize) -> Self {
        let text = format!("Too long: may not be more than {max} bytes");
        Self::new(FieldErrorReason::TooLong, field, text)
    }

    /// `field: message`, the form in which errors appear in a 422's message.
    pub fn full_message(&self) -> String {
        if self.field.is_empty() {
            return self.message.clone();
        }
        format!("{}: {}", self.field, self.message)
    }

    /// The cause that a 422 carries for this error.
    pub fn to_cause(&self) -> Cause {
        Cause {
            reason: self.reason.cause_reason().to_owned(),
            message: self.message.clone(),
            field: self.field.clone(),
        }
    }
}

fn with_detail(text: String, detail: &str) -> String {
    if detail.is_empty() { text } else { format!("{text}: {detail}") }
}

/// How upstream prints a bad value: quoted strings, bare scalars, Go syntax for the rest.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "\"null\"".to_owned(),
        other => go_syntax(other),
    }
}
