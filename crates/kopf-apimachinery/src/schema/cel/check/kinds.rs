//! The types of expressions.

use std::fmt;

use kube_cel::cel::common::ast::LiteralValue;

use super::is_called;
use crate::schema::ir::{Additional, Schema, Type};

/// What is known about the type of an expression.
#[derive(Debug, Clone)]
pub(super) enum Kind<'a> {
    /// Nothing is known, or nothing can be known.
    Anything,
    Null,
    Boolean,
    Integer,
    Unsigned,
    Double,
    Text,
    Bytes,
    Timestamp,
    Duration,
    List(Box<Kind<'a>>),
    Map(Box<Kind<'a>>, Box<Kind<'a>>),
    Optional(Box<Kind<'a>>),
    /// An object of the schema, with the name that upstream gives its type.
    Object(&'a Schema, String),
    /// A whole resource as policies see it, with all of its metadata.
    Resource(&'a Schema, String),
    /// The variables of a policy.
    Variables(Vec<String>),
    /// A value constructed by a mutation, by the name of its type.
    Constructed(String),
    /// The metadata of a resource, of which rules see only the name fields.
    Metadata(String),
}

impl<'a> Kind<'a> {
    pub(super) fn of(schema: &'a Schema, name: &str) -> Self {
        let format = schema.format.as_deref().unwrap_or_default();
        if schema.int_or_string || schema.nullable {
            return Self::Anything;
        }
        match schema.kind {
            None => Self::Anything,
            Some(Type::Boolean) => Self::Boolean,
            Some(Type::Integer) => Self::Integer,
            Some(Type::Number) => Self::Double,
            Some(Type::String) => match format {
                "date-time" | "date" => Self::Timestamp,
                "duration" => Self::Duration,
                "byte" => Self::Bytes,
                _ => Self::Text,
            },
            Some(Type::Array) => {
                let item =
                    schema.items.as_ref().map(|item| Self::of(item, &format!("{name}.@idx")));
                Self::List(Box::new(item.unwrap_or(Self::Anything)))
            }
            Some(Type::Object) => match &schema.additional {
                Some(Additional::Values(values)) => {
                    let values = Self::of(values, &format!("{name}.@elem"));
                    Self::Map(Box::new(Self::Text), Box::new(values))
                }
                _ if schema.properties.is_empty() => Self::Anything,
                _ => Self::Object(schema, name.to_owned()),
            },
        }
    }

    pub(super) fn of_literal(literal: &LiteralValue) -> Self {
        match literal {
            LiteralValue::Boolean(_) => Self::Boolean,
            LiteralValue::Bytes(_) => Self::Bytes,
            LiteralValue::Double(_) => Self::Double,
            LiteralValue::Int(_) => Self::Integer,
            LiteralValue::Null => Self::Null,
            LiteralValue::String(_) => Self::Text,
            LiteralValue::UInt(_) => Self::Unsigned,
        }
    }

    /// The name of the type itself, which may differ from what checkers print.
    pub(super) fn type_name(&self) -> String {
        match self {
            Self::Null => "null_type".to_owned(),
            Self::Timestamp => "google.protobuf.Timestamp".to_owned(),
            Self::Duration => "google.protobuf.Duration".to_owned(),
            other => other.to_string(),
        }
    }

    pub(super) fn is_known(&self) -> bool {
        !matches!(self, Self::Anything)
    }

    pub(super) fn is_number(&self) -> bool {
        matches!(self, Self::Integer | Self::Unsigned | Self::Double)
    }

    /// Whether the two types are assignable to each other.
    pub(super) fn fits(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Anything, _) | (_, Self::Anything) => true,
            (Self::List(one), Self::List(other)) | (Self::Optional(one), Self::Optional(other)) => {
                one.fits(other)
            }
            (Self::Map(key, value), Self::Map(other_key, other_value)) => {
                key.fits(other_key) && value.fits(other_value)
            }
            (Self::Object(one, _), Self::Object(other, _)) => std::ptr::eq(*one, *other),
            (Self::Constructed(one), Self::Constructed(other)) => one == other,
            // Objects and times may be compared with null.
            (Self::Null, other) | (other, Self::Null) => matches!(
                other,
                Self::Null
                    | Self::Object(..)
                    | Self::Resource(..)
                    | Self::Metadata(_)
                    | Self::Timestamp
                    | Self::Duration
                    | Self::Optional(_)
            ),
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }

    /// The type of a field, or upstream's error message.
    pub(super) fn field(&self, name: &str) -> Result<Self, String> {
        match self {
            Self::Map(_, values) => Ok((**values).clone()),
            Self::Resource(..) if matches!(name, "metadata" | "apiVersion" | "kind") => {
                Ok(Self::Anything)
            }
            Self::Object(schema, own) | Self::Resource(schema, own) => {
                let declared = schema.properties.iter().find(|(key, _)| is_called(key, name));
                match declared {
                    Some((key, property)) if key == "metadata" && property.is_builtin() => {
                        Ok(Self::Metadata(format!("{own}.metadata")))
                    }
                    Some((key, property)) => Ok(Self::of(property, &format!("{own}.{key}"))),
                    None => Err(format!("undefined field '{name}'")),
                }
            }
            Self::Variables(names) => match names.iter().any(|known| known == name) {
                true => Ok(Self::Anything),
                false => Err(format!("undefined field '{name}'")),
            },
            Self::Metadata(_) => match name {
                "name" | "generateName" => Ok(Self::Text),
                _ => Err(format!("undefined field '{name}'")),
            },
            Self::Anything | Self::Optional(_) | Self::Constructed(_) => Ok(Self::Anything),
            other => Err(format!("type '{other}' does not support field selection")),
        }
    }

    /// The type of an indexed element; `None` if this index is not possible.
    pub(super) fn element(&self, index: &Self) -> Option<Self> {
        match self {
            Self::List(item) => index.fits(&Self::Integer).then(|| (**item).clone()),
            Self::Map(keys, values) => index.fits(keys).then(|| (**values).clone()),
            Self::Anything | Self::Optional(_) => Some(Self::Anything),
            _ => None,
        }
    }

    /// The type of the items that a comprehension iterates over.
    pub(super) fn item(&self) -> Self {
        match self {
            Self::List(item) => (**item).clone(),
            Self::Map(keys, _) => (**keys).clone(),
            _ => Self::Anything,
        }
    }
}

impl fmt::Display for Kind<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Anything => formatter.write_str("dyn"),
            Self::Null => formatter.write_str("null"),
            Self::Boolean => formatter.write_str("bool"),
            Self::Integer => formatter.write_str("int"),
            Self::Unsigned => formatter.write_str("uint"),
            Self::Double => formatter.write_str("double"),
            Self::Text => formatter.write_str("string"),
            Self::Bytes => formatter.write_str("bytes"),
            Self::Timestamp => formatter.write_str("timestamp"),
            Self::Duration => formatter.write_str("duration"),
            Self::List(item) => write!(formatter, "list({item})"),
            Self::Map(key, value) => write!(formatter, "map({key}, {value})"),
            Self::Optional(inner) => write!(formatter, "optional_type({inner})"),
            Self::Variables(_) => formatter.write_str("kubernetes.variables"),
            Self::Object(_, name)
            | Self::Resource(_, name)
            | Self::Metadata(name)
            | Self::Constructed(name) => formatter.write_str(name),
        }
    }
}
