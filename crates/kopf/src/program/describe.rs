//! `describe`: what the operator reacts to, for users and for other programs.

use std::fmt::Write as _;

use kopf_core::{Handler, HandlerKind, definition};
use kopf_model::Selector;
use kopf_model::resource::SelectorName;
use serde_json::{Value, json};

use crate::Operator;

/// The description as JSON, for programs.
pub(super) fn document(operator: &Operator) -> Value {
    json!({
        "name": operator.name(),
        "handlers": operator.handlers().map(describe).collect::<Vec<_>>(),
        "definitions": definition::typed(operator.handlers()),
    })
}

/// The description as text, for users.
pub(super) fn text(operator: &Operator) -> String {
    let handlers: Vec<Value> = operator.handlers().map(describe).collect();
    let column = |key: &str| {
        let lengths = handlers.iter().map(|handler| word(handler, key).chars().count());
        lengths.max().unwrap_or_default()
    };
    let (kinds, ids) = (column("kind"), column("id"));
    let count = kopf_core::logtext::counted(handlers.len(), "handler");
    let mut text = format!("The operator `{}` has {count}:\n\n", operator.name());
    for handler in &handlers {
        let (kind, id) = (word(handler, "kind"), word(handler, "id"));
        let resources = word(handler, "resources");
        let line = format!("  {kind:<kinds$}  {id:<ids$}  {resources}");
        let _infallible = writeln!(text, "{}", line.trim_end());
        for line in word(handler, "description").lines().take(1) {
            let _infallible = writeln!(text, "  {:<kinds$}  {line}", "");
        }
    }
    text
}

fn word<'a>(handler: &'a Value, key: &str) -> &'a str {
    handler[key].as_str().unwrap_or_default()
}

fn describe(handler: &Handler) -> Value {
    let needs =
        handler.access.needs.iter().map(
            |need| json!({"group": need.group, "resource": need.resource, "verbs": need.verbs}),
        );
    let to = match &handler.kind {
        HandlerKind::Convert(options) => options.to.version.as_deref(),
        _ => None,
    };
    let resources = |from: &Selector| match to {
        Some(to) => format!("{from} to {to}"),
        None => from.to_string(),
    };
    json!({
        "id": &*handler.id,
        "kind": handler.kind.name(),
        "resources": handler.selector.as_ref().map(resources),
        "resource": handler.selector.as_ref().map(resource),
        "to": to,
        "children": handler.children.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "field": handler.filters.field.as_ref().map(ToString::to_string),
        "description": handler.docs.description,
        "signature": handler.docs.signature,
        "retries": handler.retrying.retries,
        "needs": needs.collect::<Vec<_>>(),
    })
}

/// The parts of the resource that the selector names, for programs that add the missing parts.
fn resource(selector: &Selector) -> Value {
    let plural = match &selector.name {
        SelectorName::Any(name) | SelectorName::Plural(name) => Some(name),
        _ => None,
    };
    json!({"group": selector.group, "version": selector.version, "plural": plural})
}

#[cfg(test)]
mod tests;
