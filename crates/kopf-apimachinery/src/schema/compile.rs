//! Compiles OpenAPI JSON into the internal representation.
//!
//! Two dialects: built-in definitions (references, `allOf` around a reference, Go zero values as
//! defaults) and the structural schemas of CRDs (no references, implicit metadata fields). Accepts
//! anything and ignores what it does not understand, since CRDs are validated elsewhere.

use serde_json::Value;

use super::ir::{Additional, Link, ListType, MapType, PatchStrategy, Rule, Schema, Type};
use super::pack;

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// Compiles one built-in definition from its JSON text.
pub(super) fn definition(source: &str) -> Schema {
    let json: Value = serde_json::from_str(source).expect("the pack holds JSON");
    let mut schema = node(&json, Dialect::Builtin);
    if schema.format.as_deref() == Some("int-or-string") {
        schema.int_or_string = true;
        schema.kind = None;
    }
    let is_number_too = json.get("oneOf").is_some() && schema.properties.is_empty();
    if is_number_too && schema.kind.is_none() && !schema.int_or_string {
        // Quantity: a string, or a bare number that is read as one.
        schema.kind = Some(Type::String);
        schema.format = Some("quantity".to_owned());
    }
    schema.one_of.clear();
    if schema.properties.is_empty() && matches!(schema.kind, None | Some(Type::Object)) {
        schema.preserve_unknown_fields = !schema.int_or_string && schema.additional.is_none();
    }
    schema
}

/// Compiles a definition whose content is one value for field managers.
pub(super) fn raw_definition(source: &str) -> Schema {
    Schema { map_type: Some(MapType::Atomic), ..definition(source) }
}

/// Compiles `openAPIV3Schema` of a CRD version, with the fields that every object has.
pub(super) fn custom(json: &Value) -> Schema {
    let mut schema = node(json, Dialect::Custom);
    add_object_fields(&mut schema);
    schema.source = Some(std::sync::Arc::new(json.clone()));
    schema
}

/// Compiles a part of a CRD's schema, without the fields that only whole objects have.
#[cfg(test)]
pub(super) fn node_for_tests(json: &Value) -> Schema {
    node(json, Dialect::Custom)
}

#[derive(Clone, Copy, PartialEq)]
enum Dialect {
    Builtin,
    Custom,
}

fn link(json: &Value, dialect: Dialect) -> Link {
    if dialect == Dialect::Custom {
        return node(json, dialect).into();
    }
    let reference = json.get("$ref").or_else(|| match json.get("allOf")?.as_array()?.as_slice() {
        [only] => only.get("$ref"),
        _ => None,
    });
    let Some(name) = reference.and_then(Value::as_str).and_then(|path| path.rsplit('/').next())
    else {
        return node(json, dialect).into();
    };
    let target = pack::definition(name).unwrap_or_else(|| Schema::anything().into());
    let decorated = node_decoration(json);
    match decorated {
        None => target,
        Some(decoration) => {
            let mut schema = (*target).clone();
            schema.patch_strategy = decoration.strategy;
            schema.patch_merge_key = decoration.merge_key.or(schema.patch_merge_key);
            schema.default = decoration.default.or(schema.default);
            schema.map_type = decoration.map_type.or(schema.map_type);
            schema.into()
        }
    }
}

/// The properties that a reference adds to its target.
struct Decoration {
    strategy: PatchStrategy,
    merge_key: Option<String>,
    default: Option<Value>,
    map_type: Option<MapType>,
}

/// The properties that a reference adds to its target, if any matter to patches and apply.
fn node_decoration(json: &Value) -> Option<Decoration> {
    let decoration = Decoration {
        strategy: patch_strategy(json),
        merge_key: text(json, "x-kubernetes-patch-merge-key"),
        default: json.get("default").filter(|value| !value.is_object()).cloned(),
        map_type: map_type(json),
    };
    let adds = decoration.strategy != PatchStrategy::default()
        || decoration.merge_key.is_some()
        || decoration.default.is_some()
        || decoration.map_type.is_some();
    adds.then_some(decoration)
}

fn node(json: &Value, dialect: Dialect) -> Schema {
    let mut schema = Schema {
        kind: json.get("type").and_then(Value::as_str).and_then(Type::parse),
        format: text(json, "format"),
        required: texts(json, "required"),
        nullable: flag(json, "nullable"),
        default: json.get("default").cloned(),
        enumeration: json.get("enum").and_then(Value::as_array).cloned(),
        preserve_unknown_fields: flag(json, "x-kubernetes-preserve-unknown-fields"),
        embedded_resource: flag(json, "x-kubernetes-embedded-resource"),
        int_or_string: flag(json, "x-kubernetes-int-or-string"),
        list_type: list_type(json),
        map_type: map_type(json),
        patch_strategy: patch_strategy(json),
        patch_merge_key: text(json, "x-kubernetes-patch-merge-key"),
        validations: rules(json),
        items: json.get("items").filter(|items| items.is_object()).map(|i| link(i, dialect)),
        additional: json.get("additionalProperties").map(|value| match value {
            Value::Bool(allowed) => Additional::Allowed(*allowed),
            schema => Additional::Values(link(schema, dialect)),
        }),
        ..Schema::default()
    };
    if let Some(properties) = json.get("properties").and_then(Value::as_object) {
        schema.properties = properties
            .iter()
            .map(|(name, property)| (name.clone(), link(property, dialect)))
            .collect();
    }
    if dialect == Dialect::Builtin && schema.default.as_ref().is_some_and(Value::is_object) {
        // Go's zero value of a struct is not a real default.
        schema.default = None;
    }
    limits(json, &mut schema);
    combinations(json, &mut schema, dialect);
    note_descendants(&mut schema);
    if schema.embedded_resource {
        add_object_fields(&mut schema);
    }
    schema
}

fn limits(json: &Value, schema: &mut Schema) {
    let number = |key: &str| json.get(key).and_then(Value::as_number).cloned();
    let count = |key: &str| json.get(key).and_then(Value::as_i64);
    schema.pattern = text(json, "pattern").filter(|pattern| !pattern.is_empty());
    schema.minimum = number("minimum");
    schema.exclusive_minimum = flag(json, "exclusiveMinimum");
    schema.maximum = number("maximum");
    schema.exclusive_maximum = flag(json, "exclusiveMaximum");
    schema.multiple_of = number("multipleOf");
    schema.min_length = count("minLength");
    schema.max_length = count("maxLength");
    schema.min_items = count("minItems");
    schema.max_items = count("maxItems");
    schema.min_properties = count("minProperties");
    schema.max_properties = count("maxProperties");
    schema.unique_items = flag(json, "uniqueItems");
}

fn combinations(json: &Value, schema: &mut Schema, dialect: Dialect) {
    let links = |key: &str| -> Vec<Link> {
        let branches = json.get(key).and_then(Value::as_array);
        branches.map(|all| all.iter().map(|each| link(each, dialect)).collect()).unwrap_or_default()
    };
    schema.any_of = links("anyOf");
    schema.one_of = links("oneOf");
    schema.all_of = links("allOf");
    schema.not = json.get("not").filter(|not| not.is_object()).map(|not| link(not, dialect));
}

/// Custom and embedded resources have `apiVersion`, `kind` and `metadata` without declaring them.
fn add_object_fields(schema: &mut Schema) {
    for name in ["apiVersion", "kind"] {
        let text = || Schema { kind: Some(Type::String), ..Schema::default() };
        schema.properties.entry(name.to_owned()).or_insert_with(|| text().into());
    }
    let Some(object_meta) = pack::definition(OBJECT_META) else { return };
    schema.metadata_limits = schema.properties.insert("metadata".to_owned(), object_meta);
}

fn note_descendants(schema: &mut Schema) {
    let mut has_defaults = schema.default.is_some();
    let mut has_rules = !schema.validations.is_empty();
    let mut has_embedded = schema.embedded_resource;
    let mut has_keyed_lists =
        matches!(schema.list_type, Some(ListType::Set | ListType::Map { .. }));
    let values = match &schema.additional {
        Some(Additional::Values(values)) => Some(values),
        _ => None,
    };
    let below = schema.properties.values().chain(schema.items.iter()).chain(values);
    for link in below.chain(schema.all_of.iter()) {
        if let Link::Inline(child) = link {
            has_defaults |= child.has_defaults;
            has_rules |= child.has_rules;
            has_embedded |= child.has_embedded;
            has_keyed_lists |= child.has_keyed_lists;
        }
    }
    schema.has_defaults = has_defaults;
    schema.has_rules = has_rules;
    schema.has_embedded = has_embedded;
    schema.has_keyed_lists = has_keyed_lists;
}

fn text(json: &Value, key: &str) -> Option<String> {
    json.get(key)?.as_str().map(str::to_owned)
}

fn texts(json: &Value, key: &str) -> Vec<String> {
    let items = json.get(key).and_then(Value::as_array);
    items.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn flag(json: &Value, key: &str) -> bool {
    json.get(key).and_then(Value::as_bool).unwrap_or_default()
}

fn list_type(json: &Value) -> Option<ListType> {
    Some(match json.get("x-kubernetes-list-type")?.as_str()? {
        "set" => ListType::Set,
        "map" => ListType::Map { keys: texts(json, "x-kubernetes-list-map-keys") },
        _ => ListType::Atomic,
    })
}

fn map_type(json: &Value) -> Option<MapType> {
    Some(match json.get("x-kubernetes-map-type")?.as_str()? {
        "atomic" => MapType::Atomic,
        _ => MapType::Granular,
    })
}

fn patch_strategy(json: &Value) -> PatchStrategy {
    let mut strategy = PatchStrategy::default();
    for part in text(json, "x-kubernetes-patch-strategy").unwrap_or_default().split(',') {
        strategy.merge |= part == "merge";
        strategy.replace |= part == "replace";
        strategy.retain_keys |= part == "retainKeys";
    }
    strategy
}

fn rules(json: &Value) -> Vec<Rule> {
    let rules = json.get("x-kubernetes-validations").and_then(Value::as_array);
    let rule = |json: &Value| Rule {
        rule: text(json, "rule").unwrap_or_default(),
        message: text(json, "message").filter(|message| !message.is_empty()),
        message_expression: text(json, "messageExpression").filter(|text| !text.is_empty()),
        reason: text(json, "reason"),
        field_path: text(json, "fieldPath").filter(|path| !path.is_empty()),
        optional_old_self: flag(json, "optionalOldSelf"),
    };
    rules.into_iter().flatten().map(rule).collect()
}
