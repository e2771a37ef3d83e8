//! The RBAC rule that would allow a forbidden request.
//!
//! Only for rejections by RBAC: webhooks, quotas and escalation checks also return 403.

use http::Method;

/// The requested access, in RBAC terms.
#[derive(Debug, PartialEq, Eq)]
struct Wanted<'a> {
    verb: &'static str,
    group: &'a str,
    resource: String,
    namespace: Option<&'a str>,
}

/// The rule to add, and where to add it; `None` if no rule would help.
pub(super) fn missing_rule(method: &Method, path: &str, message: &str) -> Option<String> {
    let Wanted { verb, group, resource, namespace } = wanted(method, path)?;
    if !message.contains(&format!(" cannot {verb} resource ")) {
        return None;
    }
    let verbs = match verb {
        // Neither is useful without the other.
        "list" | "watch" => "list, watch",
        verb => verb,
    };
    let place = match namespace {
        Some(namespace) => format!("a Role in the namespace {namespace}, or to a ClusterRole"),
        None => "a ClusterRole".to_owned(),
    };
    let group = if group.is_empty() { "''" } else { group };
    Some(format!(
        "to allow it, add this rule to {place} of the operator: \
         {{apiGroups: [{group}], resources: [{resource}], verbs: [{verbs}]}}"
    ))
}

fn wanted<'a>(method: &Method, path: &'a str) -> Option<Wanted<'a>> {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let mut parts = path.trim_start_matches('/').split('/');
    let group = match parts.next()? {
        "api" => "",
        "apis" => parts.next()?,
        _ => return None,
    };
    let _version = parts.next()?;
    let rest: Vec<&str> = parts.collect();
    let (namespace, rest) = match rest.as_slice() {
        // If only a name follows, the namespace is the object itself.
        ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (Some(*namespace), rest),
        rest => (None, rest),
    };
    let (plural, name, subresource) = match rest {
        [plural] => (*plural, None, None),
        [plural, name] => (*plural, Some(*name), None),
        [plural, name, subresource] => (*plural, Some(*name), Some(*subresource)),
        _ => return None,
    };
    let is_watch = query.split('&').any(|part| part == "watch=true");
    let verb = match (method.as_str(), name) {
        ("GET", None) if is_watch => "watch",
        ("GET", None) => "list",
        ("GET", Some(_)) => "get",
        ("POST", _) => "create",
        ("PUT", _) => "update",
        ("PATCH", _) => "patch",
        ("DELETE", Some(_)) => "delete",
        ("DELETE", None) => "deletecollection",
        _ => return None,
    };
    let resource = match subresource {
        Some(subresource) => format!("{plural}/{subresource}"),
        None => plural.to_owned(),
    };
    Some(Wanted { verb, group, resource, namespace })
}

#[cfg(test)]
mod tests;
