//! The strategy of all built-in kinds: dispatches to the files beside it.

use serde_json::{Value, json};

use super::fields::{list, object_mut};
use super::{
    KindContext, KindStrategy, certificates, defaults, jobs, pods, rules, services, shape,
};
use crate::FieldError;

/// Every kind that no CRD declares.
pub(super) struct BuiltIn;

impl KindStrategy for BuiltIn {
    fn default(&self, context: &KindContext<'_>, object: &mut Value) {
        complete(context, object);
    }

    fn admit(&self, context: &KindContext<'_>, object: &mut Value) {
        match address(context) {
            ("", "pods") => pods::admit(context, object),
            ("", "persistentvolumes") => add_finalizer(object, "kubernetes.io/pv-protection"),
            ("", "persistentvolumeclaims") => {
                add_finalizer(object, "kubernetes.io/pvc-protection");
            }
            _ => return,
        }
        shape::normalise(object);
    }

    fn prepare_create(&self, context: &KindContext<'_>, object: &mut Value) {
        match address(context) {
            ("", "pods") => pods::prepare_create(context, object),
            ("", "persistentvolumes") => {
                let now = format!("{:.0}", context.clock.now());
                object["status"] = json!({"phase": "Pending", "lastPhaseTransitionTime": now});
            }
            ("", "services") => services::prepare_create(context, object),
            ("batch", "jobs") => jobs::prepare_create(object),
            ("", "namespaces") => {
                if let Some(spec) = object_mut(object, "spec")
                    && !list(spec, "finalizers").iter().any(|each| each == "kubernetes")
                {
                    let mut held = list(spec, "finalizers").to_vec();
                    held.push("kubernetes".into());
                    spec["finalizers"] = Value::Array(held);
                }
                object["status"] = json!({"phase": "Active"});
            }
            _ => {}
        }
        complete(context, object);
        shape::forget_empty_lists(object);
    }

    fn prepare_update(&self, context: &KindContext<'_>, object: &mut Value, old: &Value) {
        match address(context) {
            ("", "services") if context.subresource.is_empty() => {
                services::prepare_update(context, object, old);
            }
            ("", "pods") if context.subresource.is_empty() => pods::admit_update(object),
            ("apps", "daemonsets") => count_template(object, old),
            ("certificates.k8s.io", "certificatesigningrequests") => {
                certificates::prepare_update(object, old);
            }
            _ => {}
        }
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

    fn warnings(&self, context: &KindContext<'_>, object: &Value) -> Vec<String> {
        if !context.subresource.is_empty() {
            return Vec::new();
        }
        let (group, resource) = address(context);
        // Updates that leave the spec alone were warned about before.
        let metadata = &object["metadata"];
        let stored = context.store.get(
            &context.resource.table,
            metadata["namespace"].as_str().unwrap_or_default(),
            metadata["name"].as_str().unwrap_or_default(),
        );
        let generation = |object: &Value| object["metadata"]["generation"].as_i64();
        if stored.is_some_and(|stored| generation(stored.content()) == generation(object)) {
            return Vec::new();
        }
        rules::warnings::of(group, resource, object)
    }
}

fn address<'a>(context: &KindContext<'a>) -> (&'a str, &'a str) {
    (&context.resource.group, &context.resource.resource)
}

/// Defaults and shape: what reading an object back from storage does to it.
fn complete(context: &KindContext<'_>, object: &mut Value) {
    let (group, resource) = address(context);
    defaults::apply(group, resource, object);
    shape::normalise(object);
}

/// DaemonSets count the changes of their template in an annotation.
fn count_template(object: &mut Value, old: &Value) {
    const COUNTER: &str = "/metadata/annotations/deprecated.daemonset.template.generation";
    let before = old.pointer(COUNTER).and_then(Value::as_str).and_then(|text| text.parse().ok());
    let before: u64 = before.unwrap_or(1);
    let is_changed = object["spec"]["template"] != old["spec"]["template"];
    if let Some(counter) = object.pointer_mut(COUNTER) {
        *counter = (before + u64::from(is_changed)).to_string().into();
    }
}

fn add_finalizer(object: &mut Value, finalizer: &str) {
    let Some(metadata) = object_mut(object, "metadata") else { return };
    if list(metadata, "finalizers").iter().any(|present| present == finalizer) {
        return;
    }
    super::fields::fill(metadata, "finalizers", json!([]));
    if let Some(finalizers) = metadata["finalizers"].as_array_mut() {
        finalizers.push(finalizer.into());
    }
}
