//! Objects seen through their schema: which parts are owned as a whole and which field by field.
//!
//! Responsible for the view of a schema that apply needs ([`TypeRef`], [`Shape`]), the steps to
//! list items and type checks. The submodules walk the objects.

pub(crate) mod compare;
pub(crate) mod merge;
pub(crate) mod owned;
pub(crate) mod remove;
pub(crate) mod written;

use serde_json::Value;

use super::path::{PathElement, Scalar};
use crate::go_print::go_type;
use crate::schema::ir::{Additional, ListType, MapType, Schema, Type};

/// What is known about the type of one value.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TypeRef<'schema> {
    /// The root of an object: has `apiVersion` and `kind` even if the schema does not declare them.
    Root(&'schema Schema),
    /// A declared type.
    Declared(&'schema Schema),
    /// A declared type inside something that preserves unknown fields.
    Preserving(&'schema Schema),
    /// Free content: objects are owned field by field, lists as a whole.
    Deduced,
    /// Content of something that is owned as a whole.
    Atomic,
}

/// How a value is owned.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shape<'schema> {
    Scalar(Option<Type>),
    List(ListShape<'schema>),
    Map(MapShape<'schema>),
}

/// How a list is owned.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ListShape<'schema> {
    pub relation: Relation<'schema>,
    pub item: TypeRef<'schema>,
}

/// How the items of a list are identified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Relation<'schema> {
    /// Not at all: the list is one value.
    Atomic,
    /// By value.
    Set,
    /// By the values of these keys; the schema knows their defaults.
    Keys(&'schema [String]),
    /// By the value of the one key that strategic merge patches use.
    MergeKey(&'schema str),
}

/// How an object is owned.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MapShape<'schema> {
    owner: TypeRef<'schema>,
    pub(crate) is_atomic: bool,
}

impl<'schema> TypeRef<'schema> {
    /// The root type of an object with or without a schema.
    pub(crate) fn root(schema: Option<&'schema Schema>) -> Self {
        schema.map_or(Self::Deduced, Self::Root)
    }

    fn schema(self) -> Option<&'schema Schema> {
        match self {
            Self::Root(schema) | Self::Declared(schema) | Self::Preserving(schema) => Some(schema),
            Self::Deduced | Self::Atomic => None,
        }
    }

    fn preserves(self) -> bool {
        match self {
            Self::Preserving(_) | Self::Deduced | Self::Atomic => true,
            Self::Root(schema) | Self::Declared(schema) => schema.preserve_unknown_fields,
        }
    }

    /// The type of something inside this one.
    fn inner(self, schema: &'schema Schema) -> Self {
        if self.preserves() { Self::Preserving(schema) } else { Self::Declared(schema) }
    }

    /// The shape that this type gives to a value; if any shape fits, the value decides.
    pub(crate) fn shape(self, value: &Value) -> Shape<'schema> {
        // Integer-or-string is not a type, so it imposes no shape on ownership.
        let declared = self.schema().filter(|schema| !schema.int_or_string);
        let declared = declared.and_then(|schema| schema.kind);
        let kind = declared.unwrap_or(match value {
            Value::Object(_) | Value::Null => Type::Object,
            Value::Array(_) => Type::Array,
            _ => Type::String,
        });
        match kind {
            Type::Object => Shape::Map(MapShape { owner: self, is_atomic: self.is_atomic_map() }),
            Type::Array => Shape::List(self.list_shape()),
            _ => Shape::Scalar(self.scalar_type()),
        }
    }

    fn scalar_type(self) -> Option<Type> {
        let schema = self.schema()?;
        let has_format = schema.format.as_deref().is_some_and(|format| format != "byte");
        match schema.kind {
            _ if schema.int_or_string => None,
            Some(Type::String) if has_format => None,
            kind => kind,
        }
    }

    fn is_atomic_map(self) -> bool {
        match self {
            Self::Atomic => true,
            Self::Deduced => false,
            _ => self.schema().is_some_and(|schema| schema.map_type() == MapType::Atomic),
        }
    }

    fn list_shape(self) -> ListShape<'schema> {
        let Some(schema) = self.schema() else {
            return ListShape { relation: Relation::Atomic, item: Self::Atomic };
        };
        let relation = match &schema.list_type {
            Some(ListType::Atomic) => Relation::Atomic,
            Some(ListType::Set) => Relation::Set,
            Some(ListType::Map { keys }) => Relation::Keys(keys),
            None if schema.patch_strategy.merge => match schema.merge_key() {
                Some(key) => Relation::MergeKey(key),
                None => Relation::Set,
            },
            None => Relation::Atomic,
        };
        let item = schema.item().map_or(Self::Atomic, |item| self.inner(item));
        ListShape { relation, item }
    }
}

impl<'schema> MapShape<'schema> {
    /// Whether the schema names this field, as opposed to allowing any map key.
    pub(crate) fn declares(&self, name: &str) -> bool {
        match self.owner {
            TypeRef::Root(schema) => schema.property(name).is_some() || is_header(name),
            TypeRef::Declared(schema) | TypeRef::Preserving(schema) => {
                schema.property(name).is_some()
            }
            TypeRef::Deduced | TypeRef::Atomic => false,
        }
    }

    /// The type of a field; `None` when the schema does not allow it.
    pub(crate) fn field(&self, name: &str) -> Option<TypeRef<'schema>> {
        if matches!(self.owner, TypeRef::Root(_)) && is_header(name) {
            return Some(TypeRef::Deduced);
        }
        let Some(schema) = self.owner.schema() else { return Some(self.owner) };
        if let Some(field) = schema.property(name) {
            return Some(self.owner.inner(field));
        }
        match &schema.additional {
            Some(Additional::Values(values)) => Some(self.owner.inner(values)),
            Some(Additional::Allowed(true)) => Some(TypeRef::Deduced),
            Some(Additional::Allowed(false)) => None,
            None if self.owner.preserves() || schema.properties.is_empty() => {
                Some(TypeRef::Deduced)
            }
            None => None,
        }
    }

    /// The type of a field; undeclared fields are free content.
    pub(crate) fn field_or_free(&self, name: &str) -> TypeRef<'schema> {
        self.field(name).unwrap_or(TypeRef::Deduced)
    }
}

fn is_header(name: &str) -> bool {
    matches!(name, "apiVersion" | "kind")
}

impl ListShape<'_> {
    /// The step to an item of a list that is not atomic, or the reason why there is none.
    pub(crate) fn element(&self, item: &Value) -> Result<PathElement, String> {
        match self.relation {
            Relation::Atomic => Err("invalid indexing of non-associative list".into()),
            Relation::Set => set_element(item),
            Relation::Keys(keys) => self.keyed_element(item, keys.iter().map(String::as_str)),
            Relation::MergeKey(key) => self.keyed_element(item, std::iter::once(key)),
        }
    }

    fn keyed_element<'keys>(
        &self,
        item: &Value,
        keys: impl Iterator<Item = &'keys str>,
    ) -> Result<PathElement, String> {
        let fields = match item {
            Value::Object(fields) => fields,
            Value::Null => {
                return Err("associative list with keys may not have a null element".into());
            }
            _ => return Err("associative list with keys may not have non-map elements".into()),
        };
        let mut found = Vec::new();
        for key in keys {
            let default = || self.item.schema()?.property(key)?.default.as_ref();
            let Some(value) = fields.get(key).or_else(default) else {
                return Err(format!(
                    "associative list with keys has an element that omits key field {key:?} \
                     (and doesn't have default value)"
                ));
            };
            found.push((key.into(), Scalar::new(value)));
        }
        Ok(PathElement::key(found))
    }
}

fn set_element(item: &Value) -> Result<PathElement, String> {
    match item {
        Value::Object(_) => {
            Err("associative list without keys has an element that's a map type".into())
        }
        Value::Array(_) => Err("not supported: associative list with lists as elements".into()),
        Value::Null => {
            Err("associative list without keys has an element that's an explicit null".into())
        }
        scalar => Ok(PathElement::Value(Scalar::new(scalar))),
    }
}

/// Checks that a value fits its type; the errors are `.path: problem`, in upstream's words.
pub(crate) fn check(value: &Value, of: TypeRef<'_>, allow_duplicates: bool) -> Vec<String> {
    let mut problems = Vec::new();
    check_into(value, of, allow_duplicates, &mut String::new(), &mut problems);
    problems.sort();
    problems
}

fn check_into(
    value: &Value,
    of: TypeRef<'_>,
    allow_duplicates: bool,
    path: &mut String,
    problems: &mut Vec<String>,
) {
    let mut report = |path: &str, problem: &str| problems.push(format!("{path}: {problem}"));
    match (of.shape(value), value) {
        (_, Value::Null) => {}
        (Shape::Map(shape), Value::Object(fields)) => {
            for (name, field) in fields {
                let length = path.len();
                path.push('.');
                path.push_str(name);
                match shape.field(name) {
                    Some(of) => check_into(field, of, allow_duplicates, path, problems),
                    None => problems.push(format!("{path}: field not declared in schema")),
                }
                path.truncate(length);
            }
        }
        (Shape::List(shape), Value::Array(items)) => {
            let mut seen = std::collections::HashSet::new();
            for (index, item) in items.iter().enumerate() {
                let element = match shape.relation {
                    Relation::Atomic => PathElement::Index(index as i64),
                    _ => match shape.element(item) {
                        Ok(element) => element,
                        Err(problem) => {
                            return problems.push(format!("{path}: element {index}: {problem}"));
                        }
                    },
                };
                if !seen.insert(element.clone()) && !allow_duplicates {
                    problems.push(format!("{path}: duplicate entries for key {element}"));
                }
                let length = path.len();
                path.push_str(&element.to_string());
                check_into(item, shape.item, allow_duplicates, path, problems);
                path.truncate(length);
            }
        }
        (Shape::Map(_), other) => report(path, &format!("expected map, got {}", shown(other))),
        (Shape::List(_), other) => report(path, &format!("expected list, got {}", shown(other))),
        (Shape::Scalar(wanted), other) => {
            if let Some(problem) = scalar_problem(wanted, other) {
                report(path, &problem);
            }
        }
    }
}

fn scalar_problem(wanted: Option<Type>, value: &Value) -> Option<String> {
    let fits = match wanted {
        Some(Type::Integer | Type::Number) => value.is_number(),
        Some(Type::String) => value.is_string(),
        Some(Type::Boolean) => value.is_boolean(),
        _ => !value.is_object() && !value.is_array(),
    };
    if fits {
        return None;
    }
    Some(match wanted {
        Some(Type::Integer | Type::Number) => {
            format!("expected numeric (int or float), got {}", go_type(value))
        }
        Some(Type::String) => {
            format!("expected string, got &value.valueUnstructured{{Value:{}}}", go_literal(value))
        }
        Some(Type::Boolean) => format!("expected boolean, got {}", shown(value)),
        _ => format!("expected any scalar, got {}", shown(value)),
    })
}

/// A value as Go prints it with `%#v`.
fn go_literal(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(go_literal).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(key, _)| key.as_str());
            let fields: Vec<String> = fields
                .iter()
                .map(|(key, field)| format!("{key:?}:{}", go_literal(field)))
                .collect();
            format!("map[string]interface {{}}{{{}}}", fields.join(", "))
        }
        scalar => scalar.to_string(),
    }
}

fn shown(value: &Value) -> String {
    format!("&{{{}}}", go_plain(value))
}

/// A value as Go prints it with `%v`.
fn go_plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".into(),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(go_plain).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(key, _)| key.as_str());
            let fields: Vec<String> =
                fields.iter().map(|(key, field)| format!("{key}:{}", go_plain(field))).collect();
            format!("map[{}]", fields.join(" "))
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests;
