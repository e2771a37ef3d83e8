//! The fields that servers can select objects by, and the conditions that imply such a selection.
//!
//! Servers compare strings. A condition is translated only if every object that meets it has that
//! string, so that at most too many objects are sent. Only fields that all supported servers know
//! are used: for others, servers reject the request.

use kopf_model::Resource;
use serde_json::Value;

use super::Basis;
use crate::filter::{Filters, ValueFilter};

/// A condition that the server checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FieldCondition {
    /// The server's name for the field.
    pub(super) label: &'static str,
    /// The required value.
    pub(super) text: String,
    pub(super) basis: Basis,
}

/// A field that the server can select by.
struct Selectable {
    /// Its path in objects.
    path: &'static str,
    /// Its name in selectors.
    label: &'static str,
    form: Form,
    basis: Basis,
}

/// The type of the field before it is converted to a string.
#[derive(Clone, Copy)]
enum Form {
    /// A string; empty if absent.
    Text,
    /// A string; if absent, another field is used.
    Alternative,
    /// A flag; false if absent.
    Flag,
    /// A number; zero if absent.
    Count,
}

impl FieldCondition {
    /// The filters' condition on a field, if the server can check it.
    pub(super) fn of(filters: &Filters, resource: &Resource) -> Option<Self> {
        let path = filters.field.as_ref()?;
        let is_it = |field: &&Selectable| field.path.split('.').eq(path.keys());
        let mut known = METADATA.iter().chain(fields_of(resource));
        let Selectable { label, form, basis, .. } = known.find(is_it)?;
        if *label == "metadata.namespace" && !resource.namespaced {
            return None;
        }
        let text = form.text(filters.value.as_ref()?)?;
        Some(Self { label, text, basis: *basis })
    }
}

impl Form {
    /// The string of all fields that meet the condition, if it is unique.
    fn text(self, filter: &ValueFilter) -> Option<String> {
        match (self, filter) {
            (Self::Alternative, ValueFilter::Equals(Value::String(text))) if text.is_empty() => {
                None
            }
            (Self::Text | Self::Alternative, ValueFilter::Equals(Value::String(text))) => {
                Some(text.clone())
            }
            (Self::Flag, ValueFilter::Equals(Value::Bool(flag))) => Some(flag.to_string()),
            (Self::Count, ValueFilter::Equals(Value::Number(count))) => {
                (count.is_i64() || count.is_u64()).then(|| count.to_string())
            }
            (Self::Text, ValueFilter::Absent) => Some(String::new()),
            (Self::Flag, ValueFilter::Absent) => Some("false".to_owned()),
            (Self::Count, ValueFilter::Absent) => Some("0".to_owned()),
            _ => None,
        }
    }
}

const fn constant(path: &'static str) -> Selectable {
    Selectable { path, label: path, form: Form::Text, basis: Basis::Constant }
}

const fn variable(path: &'static str, form: Form) -> Selectable {
    Selectable { path, label: path, form, basis: Basis::Variable }
}

impl Selectable {
    const fn named(self, label: &'static str) -> Self {
        Self { label, ..self }
    }
}

const METADATA: &[Selectable] = &[constant("metadata.name"), constant("metadata.namespace")];

/// The fields of built-in kinds, without new ones such as `spec.hostNetwork` of pods.
fn fields_of(resource: &Resource) -> &'static [Selectable] {
    match (resource.group.as_str(), resource.version.as_str(), resource.plural.as_str()) {
        ("", "v1", "pods") => {
            const {
                &[
                    constant("spec.restartPolicy"),
                    constant("spec.schedulerName"),
                    constant("spec.serviceAccountName"),
                    variable("spec.nodeName", Form::Text),
                    variable("status.phase", Form::Text),
                    variable("status.podIP", Form::Text),
                    variable("status.nominatedNodeName", Form::Text),
                ]
            }
        }
        ("", "v1", "secrets") => const { &[constant("type")] },
        ("", "v1", "namespaces") => const { &[variable("status.phase", Form::Text)] },
        ("", "v1", "nodes") => const { &[variable("spec.unschedulable", Form::Flag)] },
        ("", "v1", "replicationcontrollers") => {
            const { &[variable("status.replicas", Form::Count)] }
        }
        ("", "v1", "events") => CORE_EVENTS,
        ("events.k8s.io", "v1", "events") => EVENTS,
        ("batch", "v1", "jobs") => {
            const { &[variable("status.succeeded", Form::Count).named("status.successful")] }
        }
        ("certificates.k8s.io", "v1", "certificatesigningrequests") => {
            const { &[constant("spec.signerName")] }
        }
        _ => &[],
    }
}

const CORE_EVENTS: &[Selectable] = &[
    variable("involvedObject.kind", Form::Text),
    variable("involvedObject.namespace", Form::Text),
    variable("involvedObject.name", Form::Text),
    variable("involvedObject.uid", Form::Text),
    variable("involvedObject.apiVersion", Form::Text),
    variable("involvedObject.resourceVersion", Form::Text),
    variable("involvedObject.fieldPath", Form::Text),
    variable("reason", Form::Text),
    variable("reportingComponent", Form::Text),
    variable("source.component", Form::Alternative).named("source"),
    variable("type", Form::Text),
];

const EVENTS: &[Selectable] = &[
    variable("regarding.kind", Form::Text),
    variable("regarding.namespace", Form::Text),
    variable("regarding.name", Form::Text),
    variable("regarding.uid", Form::Text),
    variable("regarding.apiVersion", Form::Text),
    variable("regarding.resourceVersion", Form::Text),
    variable("regarding.fieldPath", Form::Text),
    variable("reason", Form::Text),
    variable("reportingController", Form::Text),
    variable("type", Form::Text),
];
