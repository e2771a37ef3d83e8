//! Finds fields that a schema does not declare.
//!
//! Built-in kinds report them in document order, as a decoder encounters them; custom resources
//! report metadata first and the rest sorted, as pruning does.

use serde_json::Value;

use super::ir::{Field, Schema};

const IMPLICIT_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// The paths of unknown fields: `spec.foo`, `spec.ports[0].bar`.
pub(super) fn unknown_fields(schema: &Schema, object: &Value) -> Vec<String> {
    let mut walk = Walk { path: String::new(), found: Vec::new(), embedded: Vec::new() };
    if schema.is_builtin() {
        walk.value(schema, object);
        return walk.found;
    }
    if let (Some(metadata), Some(value)) = (schema.property("metadata"), object.get("metadata")) {
        walk.path.push_str("metadata");
        walk.value(metadata, value);
        walk.path.clear();
    }
    let mut unknown = std::mem::take(&mut walk.found);
    walk.object(schema, object, true);
    walk.found.sort();
    unknown.append(&mut walk.found);
    walk.embedded.sort();
    unknown.append(&mut walk.embedded);
    unknown
}

/// Whether there is neither an unknown field nor a null, which is true for most objects.
pub(super) fn is_clean(schema: &Schema, value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.iter().all(|(name, value)| match schema.field(name) {
            Field::Declared(child) | Field::Entry(child) => is_clean(child, value),
            Field::Free => true,
            Field::Unknown => false,
        }),
        Value::Array(items) => {
            schema.item().is_none_or(|item| items.iter().all(|value| is_clean(item, value)))
        }
        Value::Null => false,
        _ => true,
    }
}

struct Walk {
    path: String,
    found: Vec<String>,
    /// Unknown fields of the metadata of embedded resources, which upstream reports last.
    embedded: Vec<String>,
}

impl Walk {
    fn value(&mut self, schema: &Schema, value: &Value) {
        match value {
            Value::Object(_) => self.object(schema, value, schema.embedded_resource),
            Value::Array(items) => {
                let Some(item) = schema.item() else { return };
                let length = self.path.len();
                for (index, value) in items.iter().enumerate() {
                    self.path.push_str(&format!("[{index}]"));
                    self.value(item, value);
                    self.path.truncate(length);
                }
            }
            _ => {}
        }
    }

    fn object(&mut self, schema: &Schema, object: &Value, is_resource: bool) {
        let Value::Object(fields) = object else { return };
        let length = self.path.len();
        for (name, value) in fields {
            if length > 0 {
                self.path.push('.');
            }
            self.path.push_str(name);
            if is_resource && IMPLICIT_FIELDS.contains(&name.as_str()) {
                self.embedded_metadata(schema, name, value, length > 0);
                self.path.truncate(length);
                continue;
            }
            match schema.field(name) {
                Field::Declared(child) | Field::Entry(child) => self.value(child, value),
                Field::Free => {}
                Field::Unknown => self.found.push(self.path.clone()),
            }
            self.path.truncate(length);
        }
    }

    fn embedded_metadata(&mut self, schema: &Schema, name: &str, value: &Value, nested: bool) {
        if name != "metadata" || !nested {
            return;
        }
        if let Some(metadata) = schema.property("metadata") {
            let found = std::mem::take(&mut self.found);
            self.value(metadata, value);
            let unknown = std::mem::replace(&mut self.found, found);
            self.embedded.extend(unknown);
        }
    }
}
