//! The children of an object, as the engine has seen them, for Python.

use kopf_core::invoke::Call;

use crate::body::RawBody;

/// The children of the object that one selector of the handler names, ordered by name.
///
/// None while they could not be listed yet, or without such a selector.
pub(crate) fn children(call: &Call, number: usize) -> Option<Vec<RawBody>> {
    let selector = call.handler.children.get(number)?;
    let family = call.family.as_ref()?;
    let resources = family.resources(selector);
    let mut children = Vec::new();
    for resource in &resources {
        children.extend(family.children(resource)?.iter().map(RawBody::fixed));
    }
    (!resources.is_empty()).then_some(children)
}
