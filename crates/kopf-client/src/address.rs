//! Paths of collections and objects on the API server.

use kopf_model::Resource;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// The characters to escape in names and values: all except the unreserved ones of RFC 3986.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// The path of a collection: of one namespace, or of the whole cluster.
pub(crate) fn collection(resource: &Resource, namespace: Option<&str>) -> String {
    // Enough capacity for a name too.
    const ROOM: usize = 96;
    let known = [&resource.group, &resource.version, &resource.plural].map(|it| it.len());
    let length = known.iter().sum::<usize>() + namespace.map_or(0, str::len);
    let mut path = String::with_capacity(length + ROOM);
    match resource.group.is_empty() {
        true => path.push_str("/api/"),
        false => {
            path.push_str("/apis/");
            path.push_str(&resource.group);
            path.push('/');
        }
    }
    path.push_str(&resource.version);
    if let Some(namespace) = namespace.filter(|_| resource.namespaced) {
        path.push_str("/namespaces/");
        push_escaped(&mut path, namespace);
    }
    path.push('/');
    path.push_str(&resource.plural);
    path
}

/// The path of one object, or of a subresource of it.
pub(crate) fn object(
    resource: &Resource,
    namespace: Option<&str>,
    name: &str,
    subresource: Option<&str>,
) -> String {
    let mut path = collection(resource, namespace);
    path.push('/');
    push_escaped(&mut path, name);
    if let Some(subresource) = subresource {
        path.push('/');
        path.push_str(subresource);
    }
    path
}

/// Adds a query parameter, with `?` or `&` before it.
pub(crate) fn push_query(path: &mut String, name: &str, value: &str) {
    path.push(if path.contains('?') { '&' } else { '?' });
    path.push_str(name);
    path.push('=');
    push_escaped(path, value);
}

fn push_escaped(path: &mut String, text: &str) {
    path.extend(utf8_percent_encode(text, ESCAPED));
}

#[cfg(test)]
mod tests;
