//! Merges an applied configuration into a live object.
//!
//! The configuration wins where both have a value. Associative lists are merged item by item: the
//! configuration determines the order of its items, the live list the positions of the others.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::{ListShape, MapShape, Relation, Shape, TypeRef};
use crate::apply::path::PathElement;

/// The live value merged with the configuration.
pub(crate) fn merge(live: &Value, config: &Value, of: TypeRef<'_>) -> Value {
    let shape = of.shape(config);
    match (shape, live, config) {
        (Shape::Map(shape), Value::Object(live), Value::Object(config))
            if !shape.is_atomic && (!live.is_empty() || !config.is_empty()) =>
        {
            Value::Object(merge_fields(live, config, shape))
        }
        // An empty object does not affect fields that others own.
        (Shape::Map(shape), Value::Object(live), Value::Null)
            if !shape.is_atomic && !live.is_empty() =>
        {
            Value::Object(live.clone())
        }
        (Shape::List(shape), Value::Array(live), Value::Array(config))
            if shape.relation != Relation::Atomic && (!live.is_empty() || !config.is_empty()) =>
        {
            Value::Array(merge_items(live, config, shape))
        }
        (Shape::List(shape), Value::Array(live), Value::Null)
            if shape.relation != Relation::Atomic && !live.is_empty() =>
        {
            Value::Array(live.clone())
        }
        _ => config.clone(),
    }
}

fn merge_fields(
    live: &Map<String, Value>,
    config: &Map<String, Value>,
    shape: MapShape<'_>,
) -> Map<String, Value> {
    let mut merged = live.clone();
    for (name, field) in config {
        let value = match live.get(name) {
            Some(live) => merge(live, field, shape.field_or_free(name)),
            None => field.clone(),
        };
        merged.insert(name.clone(), value);
    }
    merged
}

/// The items of a list by their step; repeated ones have no single value.
fn index<'list>(
    items: &'list [Value],
    shape: ListShape<'_>,
) -> (Vec<PathElement>, HashMap<PathElement, Option<&'list Value>>) {
    let mut elements = Vec::with_capacity(items.len());
    let mut values: HashMap<PathElement, Option<&Value>> = HashMap::with_capacity(items.len());
    for item in items {
        let element = shape.element(item).unwrap_or(PathElement::Index(elements.len() as i64));
        values.entry(element.clone()).and_modify(|value| *value = None).or_insert(Some(item));
        elements.push(element);
    }
    (elements, values)
}

fn merge_items(live: &[Value], config: &[Value], shape: ListShape<'_>) -> Vec<Value> {
    let (live_elements, live_values) = index(live, shape);
    let (config_elements, config_values) = index(config, shape);
    let mut shared =
        config_elements.iter().filter(|element| live_values.contains_key(*element)).peekable();
    let mut done: HashSet<&PathElement> = HashSet::new();
    let mut merged = Vec::with_capacity(live.len() + config.len());
    let merge_one = |element: &PathElement| {
        let live = live_values.get(element).copied().flatten();
        let config = config_values.get(element).copied().flatten();
        match (live, config) {
            (Some(live), Some(config)) => merge(live, config, shape.item),
            (live, config) => config.or(live).cloned().unwrap_or(Value::Null),
        }
    };
    let (mut at_live, mut at_config) = (0, 0);
    while at_live < live_elements.len() || at_config < config_elements.len() {
        if let (Some(from_live), Some(from_config)) =
            (live_elements.get(at_live), config_elements.get(at_config))
        {
            if from_live == from_config {
                done.insert(from_config);
                merged.push(merge_one(from_config));
                at_live += 1;
                at_config += 1;
                shared.next();
                continue;
            }
            let is_shared = config_values.contains_key(from_live);
            if is_shared && shared.peek().is_some_and(|next| *next != from_live) {
                // In both lists, but the configuration has it at a later position.
                at_live += 1;
                continue;
            }
        }
        if let Some(from_live) = live_elements.get(at_live) {
            if !config_values.contains_key(from_live) {
                merged.push(live[at_live].clone());
                at_live += 1;
                continue;
            }
            if done.contains(from_live) {
                at_live += 1;
            }
        }
        if let Some(from_config) = config_elements.get(at_config) {
            done.insert(from_config);
            merged.push(merge_one(from_config));
            at_config += 1;
            if shared.peek() == Some(&from_config) {
                shared.next();
            }
        }
    }
    merged
}
