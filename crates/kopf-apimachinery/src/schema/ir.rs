//! The internal representation of a schema, the same for built-in kinds and custom resources.
//!
//! Responsible for the data structure and for questions about a single node. Does not know where a
//! schema comes from and never walks a value: pruning, defaulting, validation, patches and apply do
//! that. Descriptions are left out on purpose: they make up nine tenths of the bytes, and only the
//! published OpenAPI documents need them.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use indexmap::IndexMap;
use serde_json::Value;

/// The JSON type that a schema requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Type {
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
}

impl Type {
    /// The name of the type in schemas and in error messages.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }

    /// The type with this name, if there is one.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "object" => Self::Object,
            "array" => Self::Array,
            "string" => Self::String,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "boolean" => Self::Boolean,
            _ => return None,
        })
    }
}

/// How the items of a list relate to each other (`x-kubernetes-list-type`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum ListType {
    /// The list is one value; also the default.
    #[default]
    Atomic,
    /// The items are scalars, each present at most once.
    Set,
    /// The items are objects, identified by the values of these keys.
    Map { keys: Vec<String> },
}

/// Whether the fields of an object are owned one by one (`x-kubernetes-map-type`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum MapType {
    /// Each field has its own owner; also the default.
    #[default]
    Granular,
    /// The object is one value.
    Atomic,
}

/// What a strategic merge patch does with a field (`x-kubernetes-patch-strategy`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PatchStrategy {
    /// Lists are merged by key (objects) or by value (scalars) instead of being replaced.
    pub merge: bool,
    /// Objects are replaced instead of being merged.
    pub(crate) replace: bool,
    /// Keys that are not listed in `$retainKeys` are cleared.
    pub(crate) retain_keys: bool,
}

/// Rules for fields that `properties` does not name.
#[derive(Clone, Debug)]
pub(crate) enum Additional {
    /// `additionalProperties: true` or `false`.
    Allowed(bool),
    /// A map: every value has this schema.
    Values(Link),
}

/// One entry of `x-kubernetes-validations`, as written.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Rule {
    pub rule: String,
    pub message: Option<String>,
    pub message_expression: Option<String>,
    /// The cause's reason; `FieldValueInvalid` when absent.
    pub reason: Option<String>,
    /// Where the error is reported, relative to the rule: `.spec.replicas`.
    pub(crate) field_path: Option<String>,
    pub(crate) optional_old_self: bool,
}

/// The declared fields of an object, looked up for each field of each request.
pub(crate) type Properties = IndexMap<String, Link, foldhash::fast::RandomState>;

/// One node of a schema.
///
/// All fields are as declared; an absent keyword is `None`, empty or `false`.
#[derive(Clone, Debug, Default)]
pub struct Schema {
    /// The full name of the built-in definition (`io.k8s.api.core.v1.Pod`), if this is one.
    pub(crate) name: Option<Arc<str>>,
    /// `None` means that any JSON value fits (unless `int_or_string`).
    pub(crate) kind: Option<Type>,
    pub(crate) format: Option<String>,
    pub(crate) properties: Properties,
    pub(crate) additional: Option<Additional>,
    pub(crate) items: Option<Link>,
    pub(crate) required: Vec<String>,
    pub(crate) nullable: bool,
    pub(crate) default: Option<Value>,
    pub(crate) enumeration: Option<Vec<Value>>,
    pub(crate) pattern: Option<String>,
    pub(crate) minimum: Option<serde_json::Number>,
    pub(crate) exclusive_minimum: bool,
    pub(crate) maximum: Option<serde_json::Number>,
    pub(crate) exclusive_maximum: bool,
    pub(crate) multiple_of: Option<serde_json::Number>,
    pub(crate) min_length: Option<i64>,
    pub(crate) max_length: Option<i64>,
    pub(crate) min_items: Option<i64>,
    pub(crate) max_items: Option<i64>,
    pub(crate) min_properties: Option<i64>,
    pub(crate) max_properties: Option<i64>,
    pub(crate) unique_items: bool,
    pub(crate) any_of: Vec<Link>,
    pub(crate) one_of: Vec<Link>,
    pub(crate) all_of: Vec<Link>,
    pub(crate) not: Option<Link>,
    pub(crate) preserve_unknown_fields: bool,
    pub(crate) embedded_resource: bool,
    pub(crate) int_or_string: bool,
    pub(crate) list_type: Option<ListType>,
    pub(crate) map_type: Option<MapType>,
    pub(crate) patch_strategy: PatchStrategy,
    pub(crate) patch_merge_key: Option<String>,
    pub(crate) validations: Vec<Rule>,
    /// The parsed rules; filled when the first value is validated.
    pub(crate) programs: OnceLock<Arc<super::cel::Programs>>,
    /// The CRD's constraints on `metadata`, whose shape is fixed.
    pub(crate) metadata_limits: Option<Link>,
    /// The JSON that a CRD declared, kept at the root for publishing.
    pub source: Option<Arc<Value>>,
    /// Whether this node or one below it has a default; never computed across definitions.
    pub(crate) has_defaults: bool,
    /// Whether this node or one below it has CEL rules; never computed across definitions.
    pub(crate) has_rules: bool,
    /// Whether this node or one below it is a set or an associative list; as above.
    pub(crate) has_keyed_lists: bool,
    /// Whether this node or one below it is an embedded resource; as above.
    pub(crate) has_embedded: bool,
}

/// What a schema declares about a field name.
#[derive(Clone, Copy, Debug)]
pub enum Field<'schema> {
    /// Named in `properties`.
    Declared(&'schema Schema),
    /// A key of a map whose values have this schema.
    Entry(&'schema Schema),
    /// Not named, but kept: unknown fields are preserved or everything is allowed.
    Free,
    /// Not in the schema: strict decoding complains, pruning drops it.
    Unknown,
}

impl Schema {
    /// A schema that any value fits and that declares nothing about its content.
    pub fn anything() -> Self {
        Self { preserve_unknown_fields: true, ..Self::default() }
    }

    /// The schema of a field that `properties` names.
    pub fn property(&self, name: &str) -> Option<&Schema> {
        // Comparing a few names is faster than hashing one.
        const SCANNED_MAX: usize = 16;
        if self.properties.len() > SCANNED_MAX {
            return self.properties.get(name).map(|link| &**link);
        }
        self.properties.iter().find(|(known, _)| *known == name).map(|(_, link)| &**link)
    }

    /// The schema of list items.
    pub fn item(&self) -> Option<&Schema> {
        self.items.as_deref()
    }

    /// The schema of the values of a map (`additionalProperties` with a schema).
    pub fn values(&self) -> Option<&Schema> {
        match &self.additional {
            Some(Additional::Values(link)) => Some(link),
            _ => None,
        }
    }

    /// Determines whether a field is declared, a map entry, free or unknown.
    pub fn field(&self, name: &str) -> Field<'_> {
        if let Some(declared) = self.property(name) {
            return Field::Declared(declared);
        }
        match &self.additional {
            Some(Additional::Values(values)) => Field::Entry(values),
            Some(Additional::Allowed(true)) => Field::Free,
            _ if self.preserve_unknown_fields => Field::Free,
            _ => Field::Unknown,
        }
    }

    /// Whether the fields of an object are owned one by one.
    pub(crate) fn map_type(&self) -> MapType {
        self.map_type.unwrap_or_default()
    }

    /// What a strategic merge patch does with this field.
    pub(crate) fn patch_strategy(&self) -> PatchStrategy {
        self.patch_strategy
    }

    /// The key by which a strategic merge patch matches list items.
    pub(crate) fn merge_key(&self) -> Option<&str> {
        self.patch_merge_key.as_deref()
    }

    /// The last part of the definition's name: `Pod`.
    pub(crate) fn short_name(&self) -> Option<&str> {
        self.name.as_deref().map(|name| name.rsplit('.').next().unwrap_or(name))
    }

    /// Whether this is the schema of a built-in kind or part of one.
    pub fn is_builtin(&self) -> bool {
        self.name.is_some()
    }
}

/// A reference to a schema, cheap to clone.
///
/// Derefs to the schema. References to built-in definitions are resolved on first use and once per
/// process, so recursive definitions (`JSONSchemaProps`) are finite.
#[derive(Clone)]
pub(crate) enum Link {
    /// A node that belongs to one schema.
    Inline(Arc<Schema>),
    /// A named definition of the built-in pack.
    Definition(&'static Definition),
}

impl Link {
    /// The schema behind the link, shared.
    pub(crate) fn to_arc(&self) -> Arc<Schema> {
        match self {
            Self::Inline(schema) => schema.clone(),
            Self::Definition(definition) => definition.schema().clone(),
        }
    }
}

impl From<Schema> for Link {
    fn from(schema: Schema) -> Self {
        Self::Inline(Arc::new(schema))
    }
}

impl Deref for Link {
    type Target = Schema;

    fn deref(&self) -> &Schema {
        match self {
            Self::Inline(schema) => schema,
            Self::Definition(definition) => definition.schema(),
        }
    }
}

impl std::fmt::Debug for Link {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Inline(schema) => schema.fmt(formatter),
            // Do not print the content: definitions may contain themselves.
            Self::Definition(definition) => write!(formatter, "Definition({})", definition.name()),
        }
    }
}

/// A named built-in definition, compiled on first use.
pub(crate) struct Definition {
    name: String,
    source: Box<str>,
    compile: fn(&str) -> Schema,
    schema: OnceLock<Arc<Schema>>,
}

impl Definition {
    /// A definition that `compile` turns into a schema on first use.
    pub(crate) fn new(name: String, source: Box<str>, compile: fn(&str) -> Schema) -> Self {
        Self { name, source, compile, schema: OnceLock::new() }
    }

    /// The definition's name: `io.k8s.api.core.v1.Pod`.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The compiled schema.
    pub(crate) fn schema(&self) -> &Arc<Schema> {
        self.schema.get_or_init(|| {
            let mut schema = (self.compile)(&self.source);
            schema.name = Some(self.name.as_str().into());
            Arc::new(schema)
        })
    }
}
