//! Paths of collections and objects on the API server.

use kopf_model::Resource;

/// The path of a collection: of one namespace, or of the whole cluster.
pub(crate) fn collection(resource: &Resource, namespace: Option<&str>) -> String {
    let mut path = if resource.group.is_empty() {
        format!("/api/{}", resource.version)
    } else {
        format!("/apis/{}/{}", resource.group, resource.version)
    };
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
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                path.push(char::from(byte));
            }
            _ => path.push_str(&format!("%{byte:02X}")),
        }
    }
}

#[cfg(test)]
mod tests;
