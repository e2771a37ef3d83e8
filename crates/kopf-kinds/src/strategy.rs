//! The strategy of all built-in kinds, which dispatches to the other modules.

use serde_json::Value;

use super::kind::Kind;
use super::{KindContext, KindStrategy, app_armor, defaults, gated, rules};
use crate::{FieldError, shape};

/// Every kind that is not declared by a CRD.
pub(super) struct BuiltIn;

impl KindStrategy for BuiltIn {
    fn default(&self, context: &KindContext<'_>, object: &mut Value) {
        complete(context, object);
    }

    fn admit(&self, context: &KindContext<'_>, object: &mut Value) {
        if let Some(admit) = Kind::of(context.resource).admit {
            admit(context, object);
            shape::normalise(object);
        }
    }

    fn prepare_create(&self, context: &KindContext<'_>, object: &mut Value) {
        if let Some(prepare) = Kind::of(context.resource).prepare_create {
            prepare(context, object);
        }
        let (group, resource) = address(context);
        gated::remove(group, resource, object, None);
        complete(context, object);
        shape::forget_empty_lists(object);
    }

    fn prepare_update(&self, context: &KindContext<'_>, object: &mut Value, old: &Value) {
        if let Some(prepare) = Kind::of(context.resource).prepare_update {
            prepare(context, object, old);
        }
        let (group, resource) = address(context);
        gated::remove(group, resource, object, Some(old));
        complete(context, object);
        shape::forget_empty_lists(object);
    }

    fn validate_create(&self, context: &KindContext<'_>, object: &Value) -> Vec<FieldError> {
        rules::create(context, object)
    }

    fn validate_update(
        &self,
        context: &KindContext<'_>,
        object: &Value,
        old: &Value,
    ) -> Vec<FieldError> {
        rules::update(context, object, old)
    }

    fn early_warnings(&self, context: &KindContext<'_>, object: &Value) -> Vec<String> {
        match address(context) {
            ("", "pods") => app_armor::synchronise(&mut object.clone()),
            _ => Vec::new(),
        }
    }

    fn warnings(
        &self,
        context: &KindContext<'_>,
        object: &Value,
        old: Option<&Value>,
    ) -> Vec<String> {
        let (group, resource) = address(context);
        // Humans rarely update pods, so upstream does not warn them.
        let is_updated_pod = (group, resource) == ("", "pods") && old.is_some();
        if !context.subresource.is_empty() || is_updated_pod {
            return Vec::new();
        }
        // Updates that do not change the spec have already caused the warnings before.
        let generation = |object: &Value| object["metadata"]["generation"].as_i64();
        let has_generation = (group, resource) != ("", "secrets");
        if has_generation && old.is_some_and(|old| generation(old) == generation(object)) {
            return Vec::new();
        }
        let mut warnings = Vec::new();
        if old.is_none() {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            warnings.extend(rules::warnings::of_name(group, resource, name));
            warnings.extend(rules::warnings::of_new(group, resource, object));
        }
        warnings.extend(rules::warnings::of(group, resource, object));
        warnings
    }
}

fn address<'a>(context: &KindContext<'a>) -> (&'a str, &'a str) {
    (&context.resource.group, &context.resource.resource)
}

/// Lists for which empty and absent differ.
const EMPTY_LISTS: [&str; 2] =
    ["/spec/behavior/scaleUp/policies", "/spec/behavior/scaleDown/policies"];

/// Fills in defaults and normalises the shape, as reading an object from storage does.
fn complete(context: &KindContext<'_>, object: &mut Value) {
    let (group, resource) = address(context);
    defaults::apply(group, resource, object);
    let is_empty = |pointer: &&&str| {
        let list = object.pointer(pointer).and_then(Value::as_array);
        list.is_some_and(Vec::is_empty)
    };
    let empty: Vec<&str> = match group {
        "autoscaling" => EMPTY_LISTS.iter().filter(is_empty).copied().collect(),
        _ => Vec::new(),
    };
    shape::normalise(object);
    for pointer in empty {
        if let Some((owner, field)) = pointer.rsplit_once('/')
            && let Some(Value::Object(fields)) = object.pointer_mut(owner)
        {
            fields.insert(field.to_owned(), Value::Array(Vec::new()));
        }
    }
}
