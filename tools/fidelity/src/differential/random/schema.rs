//! Random structural schemas with CEL rules, and values that usually fit them.
//!
//! Pure. The schema limits sizes, so that rules stay within the cost limits of the server; about a
//! fifth of the values violate the schema.

use fastrand::Rng;
use serde_json::{Map, Value, json};

use super::kinds::pick;

const DEPTH_MAX: usize = 3;
const FIELDS_MAX: usize = 5;

/// A schema for `spec`: always an object.
pub(super) fn random(rng: &mut Rng) -> Value {
    object(rng, 0)
}

/// The definition of `widgets` with this schema for `spec`.
pub(super) fn definition(rng: &mut Rng, spec: &Value) -> Value {
    let mut version = json!({
        "name": "v1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {
            "spec": spec,
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        }}},
    });
    if rng.bool() {
        version["subresources"] = json!({"status": {}});
    }
    if rng.bool() {
        version["additionalPrinterColumns"] =
            json!([{"name": "F0", "type": "string", "jsonPath": ".spec.f0"}]);
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.${ns}.kopf.dev"},
        "spec": {
            "group": "${ns}.kopf.dev", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
            "versions": [version],
        },
    })
}

/// A value for the schema, or sometimes one that violates it.
pub(super) fn value(rng: &mut Rng, schema: &Value) -> Value {
    if rng.u32(0..40) == 0 {
        return [json!(null), json!("odd"), json!(-7), json!([]), json!({"odd": 1})]
            [rng.usize(..5)]
        .clone();
    }
    match schema["type"].as_str() {
        Some("string") => string_value(rng, schema),
        Some("integer") => json!(rng.i64(0..12)),
        Some("number") => json!(f64::from(rng.u32(0..40)) / 4.0),
        Some("boolean") => json!(rng.bool()),
        Some("array") => {
            let count = rng.usize(0..4);
            (0..count).map(|_| value(rng, &schema["items"])).collect()
        }
        Some("object") => object_value(rng, schema),
        _ => [json!(5), json!("50%")][rng.usize(..2)].clone(),
    }
}

fn schema(rng: &mut Rng, depth: usize) -> Value {
    let last = if depth < DEPTH_MAX { 9 } else { 5 };
    let mut schema = match rng.u32(0..last) {
        0 | 1 => string(rng),
        2 => integer(rng),
        3 => json!({"type": "number", "maximum": 8.5}),
        4 => json!({"type": "boolean"}),
        5 => json!({"x-kubernetes-int-or-string": true}),
        6 => array(rng, depth),
        7 => map(rng, depth),
        _ => object(rng, depth),
    };
    if rng.u32(0..8) == 0 {
        schema["nullable"] = json!(true);
    }
    schema
}

fn string(rng: &mut Rng) -> Value {
    let mut schema = match rng.u32(0..5) {
        0 => json!({"type": "string", "enum": ["a", "bb", "ccc"]}),
        1 => json!({"type": "string", "maxLength": 4, "minLength": 1}),
        2 => json!({"type": "string", "maxLength": 20, "pattern": "^[a-c]+$"}),
        3 => {
            json!({"type": "string", "maxLength": 40, "format": pick(rng, &["date-time", "ipv4"])})
        }
        _ => json!({"type": "string", "maxLength": 10}),
    };
    if rng.u32(0..3) == 0 {
        add_rule(
            rng,
            &mut schema,
            &["self.size() <= 3", "self.startsWith('a')", "self == oldSelf"],
        );
    }
    if rng.u32(0..4) == 0 {
        schema["default"] = json!("a");
    }
    schema
}

fn integer(rng: &mut Rng) -> Value {
    let mut schema = match rng.u32(0..3) {
        0 => json!({"type": "integer", "minimum": 1, "maximum": 10}),
        1 => json!({"type": "integer", "multipleOf": 2}),
        _ => json!({"type": "integer", "format": "int32", "minimum": 0, "exclusiveMinimum": true}),
    };
    if rng.u32(0..3) == 0 {
        add_rule(rng, &mut schema, &["self < 8", "self >= oldSelf", "self % 2 == 0 || self > 5"]);
    }
    if rng.u32(0..4) == 0 {
        schema["default"] = json!(2);
    }
    schema
}

fn array(rng: &mut Rng, depth: usize) -> Value {
    match rng.u32(0..4) {
        0 => json!({"type": "array", "maxItems": 3, "x-kubernetes-list-type": "set",
            "items": {"type": "string", "maxLength": 5}}),
        1 => {
            let mut schema = json!({"type": "array", "maxItems": 5, "items": {"type": "object",
                "required": ["name"], "properties": {
                    "name": {"type": "string", "maxLength": 5}, "v": {"type": "integer"}}},
                "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]});
            if rng.bool() {
                add_rule(rng, &mut schema, &["self.all(x, x.name != 'odd')", "self.size() < 3"]);
            }
            schema
        }
        2 => json!({"type": "array", "maxItems": 3, "minItems": 1,
            "x-kubernetes-list-type": "atomic", "items": schema(rng, depth + 1)}),
        _ => json!({"type": "array", "maxItems": 4, "items": schema(rng, depth + 1)}),
    }
}

fn map(rng: &mut Rng, depth: usize) -> Value {
    let mut map = json!({"type": "object", "maxProperties": 3,
        "additionalProperties": schema(rng, depth + 1)});
    if rng.u32(0..3) == 0 {
        add_rule(rng, &mut map, &["self.size() < 2", "self.all(k, k != 'odd')"]);
    }
    map
}

fn object(rng: &mut Rng, depth: usize) -> Value {
    let mut properties = Map::new();
    for index in 0..rng.usize(1..FIELDS_MAX) {
        properties.insert(format!("f{index}"), schema(rng, depth + 1));
    }
    let mut object = json!({"type": "object", "properties": properties});
    if rng.bool() {
        object["required"] = json!(["f0"]);
    }
    if rng.u32(0..5) == 0 {
        object["x-kubernetes-preserve-unknown-fields"] = json!(true);
    }
    if rng.u32(0..4) == 0 {
        add_rule(rng, &mut object, &["has(self.f0)", "!has(self.f0) || has(self.f0)"]);
    }
    object
}

fn add_rule(rng: &mut Rng, schema: &mut Value, rules: &[&str]) {
    let mut rule = json!({"rule": pick(rng, rules)});
    match rng.u32(0..3) {
        0 => rule["message"] = json!("the rule was broken"),
        1 => rule["reason"] = json!("FieldValueForbidden"),
        _ => {}
    }
    schema["x-kubernetes-validations"] = json!([rule]);
}

fn string_value(rng: &mut Rng, schema: &Value) -> Value {
    match schema["format"].as_str() {
        Some("date-time") => json!(pick(rng, &["2020-01-01T00:00:00Z", "yesterday"])),
        Some(_) => json!(pick(rng, &["10.0.0.1", "10.0.0"])),
        None => json!(pick(rng, &["a", "a", "bb", "bb", "ccc", "abcab", ""])),
    }
}

fn object_value(rng: &mut Rng, schema: &Value) -> Value {
    let mut fields = Map::new();
    if schema.get("additionalProperties").is_some() {
        for _ in 0..rng.usize(0..3) {
            let key = pick(rng, &["k1", "k2", "odd"]);
            fields.insert(key.to_owned(), value(rng, &schema["additionalProperties"]));
        }
        return Value::Object(fields);
    }
    if is_entry(schema) {
        fields.insert("name".into(), json!(pick(rng, &["a", "b", "c", "d", "odd"])));
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        if name == "name" {
            continue;
        }
        let is_required = schema["required"].get(0).is_some_and(|required| required == name);
        if rng.u32(0..10) < if is_required { 9 } else { 6 } {
            fields.insert(name.clone(), value(rng, property));
        }
    }
    if rng.u32(0..10) == 0 {
        fields.insert("surplus".into(), json!(1));
    }
    Value::Object(fields)
}

/// An entry of a list that is a map by `name`.
fn is_entry(schema: &Value) -> bool {
    schema["properties"].get("name").is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_is_an_object_with_fields() {
        for seed in 0..50 {
            let schema = random(&mut Rng::with_seed(seed));
            assert_eq!(schema["type"], "object");
            assert!(schema["properties"].get("f0").is_some());
        }
    }
}
