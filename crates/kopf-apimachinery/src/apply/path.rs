//! One step of a field path, as written in `managedFields` and in conflict messages.
//!
//! Responsible for the notation (`f:name`, `k:{"name":"c"}`, `v:"x"`, `i:0`), its parser and the
//! order of steps. Does not use schemas: `typed` decides which step leads to an item.

use std::fmt;

use serde_json::Value;

use crate::encoding::{needs_escape, write_string};

/// A step from a value to a value inside it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum PathElement {
    /// A field of an object.
    Field(Box<str>),
    /// An item of an associative list, by its keys; sorted by key name.
    Key(Box<[(Box<str>, Scalar)]>),
    /// An item of a set, by its value.
    Value(Scalar),
    /// An item of a list, by its position.
    Index(i64),
}

/// A scalar inside a path element, kept as canonical JSON so that it has an order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Scalar(Box<str>);

impl Scalar {
    /// Wraps a value. Meant for scalars, but accepts any value.
    pub(crate) fn new(value: &Value) -> Self {
        // Whole floats and integers are the same key: clients differ in how they write `80`.
        if let Value::Number(number) = value
            && let Some(float) = number.as_f64()
            && number.is_f64()
            && float.fract() == 0.0
            && float.abs() < 9e15
        {
            #[expect(clippy::cast_possible_truncation, reason = "checked to be a whole number")]
            return Self((float as i64).to_string().into());
        }
        Self(value.to_string().into())
    }
}

/// Why a text is not a path element.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a path element")]
pub(crate) struct PathElementError {
    text: String,
}

impl PathElement {
    /// The step to a field.
    pub(crate) fn field(name: &str) -> Self {
        Self::Field(name.into())
    }

    /// The step to the item that has these keys.
    pub(crate) fn key(mut keys: Vec<(Box<str>, Scalar)>) -> Self {
        keys.sort();
        Self::Key(keys.into())
    }

    /// Parses the notation of `managedFields`.
    pub(crate) fn parse(text: &str) -> Result<Self, PathElementError> {
        let error = || PathElementError { text: text.to_owned() };
        let (kind, content) = text.split_once(':').ok_or_else(error)?;
        match kind {
            "f" => Ok(Self::field(content)),
            "v" => {
                let value: Value = serde_json::from_str(content).map_err(|_| error())?;
                Ok(Self::Value(Scalar::new(&value)))
            }
            "k" => {
                let value: Value = serde_json::from_str(content).map_err(|_| error())?;
                let keys = value.as_object().ok_or_else(error)?;
                let keys =
                    keys.iter().map(|(key, value)| (key.as_str().into(), Scalar::new(value)));
                Ok(Self::key(keys.collect()))
            }
            "i" => content.parse().map(Self::Index).map_err(|_| error()),
            _ => Err(error()),
        }
    }

    /// Whether a key of `managedFields`, as JSON spells it between quotes, is this step.
    pub(crate) fn is_spelled(&self, key: &[u8]) -> bool {
        match self {
            Self::Field(name) if !key.contains(&b'\\') => {
                key.strip_prefix(b"f:") == Some(name.as_bytes())
            }
            _ => super::json_text::unescaped(key).is_some_and(|key| key == self.encode()),
        }
    }

    /// Appends the step as a key of `managedFields`, in quotes.
    pub(crate) fn write(&self, into: &mut Vec<u8>) {
        match self {
            Self::Field(name) => write_field(name, into),
            _ => write_string(into, &self.encode()),
        }
    }

    /// The notation of `managedFields`.
    pub(crate) fn encode(&self) -> String {
        match self {
            Self::Field(name) => ["f:", name].concat(),
            Self::Key(keys) => {
                let mut text = String::from("k:{");
                for (index, (key, value)) in keys.iter().enumerate() {
                    if index > 0 {
                        text.push(',');
                    }
                    text.push_str(&Value::from(&**key).to_string());
                    text.push(':');
                    text.push_str(&value.0);
                }
                text.push('}');
                text
            }
            Self::Value(value) => format!("v:{}", value.0),
            Self::Index(index) => format!("i:{index}"),
        }
    }
}

/// Appends the step to a field as a key of `managedFields`, in quotes.
pub(crate) fn write_field(name: &str, into: &mut Vec<u8>) {
    if needs_escape(name.as_bytes()) {
        return write_string(into, &["f:", name].concat());
    }
    into.reserve(name.len() + 4);
    into.extend_from_slice(b"\"f:");
    into.extend_from_slice(name.as_bytes());
    into.push(b'"');
}

impl fmt::Display for PathElement {
    /// The notation of conflict messages: `.name`, `[name="c"]`, `[="x"]`, `[0]`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(formatter, ".{name}"),
            Self::Key(keys) => {
                formatter.write_str("[")?;
                for (index, (key, value)) in keys.iter().enumerate() {
                    let comma = if index > 0 { "," } else { "" };
                    write!(formatter, "{comma}{key}={}", value.0)?;
                }
                formatter.write_str("]")
            }
            Self::Value(value) => write!(formatter, "[={}]", value.0),
            Self::Index(index) => write!(formatter, "[{index}]"),
        }
    }
}
