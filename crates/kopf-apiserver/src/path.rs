//! Parses URL paths.
//!
//! Pure. Knows the structure of Kubernetes paths; uses the registry only to check which groups
//! exist.

use http::Method;

use crate::registry::Registry;
use crate::request::{RequestInfo, Verb};

/// The target of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route {
    /// `/`: the list of paths.
    Root,
    /// `/version`.
    Version,
    /// `/healthz`, `/livez`, `/readyz` and their parts.
    Health,
    /// `/metrics`.
    Metrics,
    /// `/openapi/...`.
    OpenApi,
    /// `/.well-known/openid-configuration` and `/openid/v1/jwks`.
    OpenId,
    /// `/api`.
    CoreVersions,
    /// `/apis`.
    Groups,
    /// `/apis/GROUP`.
    Group(String),
    /// `/api/v1` or `/apis/GROUP/VERSION`.
    Resources(String, String),
    /// A resource request.
    Objects(RequestInfo),
    /// A version of a built-in group that is not served.
    UnknownVersion,
    /// A group or version that is not served.
    Unknown,
}

impl Route {
    /// Whether the target is read-only; other methods are rejected.
    pub(crate) fn is_only_read(&self) -> bool {
        match self {
            Self::Version | Self::OpenId | Self::CoreVersions | Self::Resources(..) => true,
            // Upstream's aggregator answers these for every method.
            Self::Groups
            | Self::Group(_)
            | Self::Root
            | Self::Health
            | Self::Metrics
            | Self::OpenApi
            | Self::Objects(_)
            | Self::UnknownVersion
            | Self::Unknown => false,
        }
    }
}

/// Health checks that have their own paths.
pub(crate) const HEALTH_CHECKS: [&str; 6] =
    ["ping", "log", "etcd", "etcd-readiness", "informer-sync", "shutdown"];

/// The target of a path for a method; `watching` is whether `?watch` requests a stream.
pub(crate) fn route(method: &Method, path: &str, watching: bool, registry: &Registry) -> Route {
    if path.starts_with("/api") && path.contains("//") {
        return Route::UnknownVersion;
    }
    if path.starts_with("//") {
        return Route::Unknown;
    }
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    match segments.as_slice() {
        [] => Route::Root,
        ["version"] => Route::Version,
        ["healthz" | "livez" | "readyz"] => Route::Health,
        ["healthz" | "livez" | "readyz", check] if HEALTH_CHECKS.contains(check) => Route::Health,
        ["metrics"] => Route::Metrics,
        ["openapi", ..] | ["swagger-2.0.0.pb-v1"] => Route::OpenApi,
        [".well-known", "openid-configuration"] | ["openid", "v1", "jwks"] => Route::OpenId,
        ["api"] => Route::CoreVersions,
        ["api", version] if registry.has_version("", version) => {
            Route::Resources(String::new(), (*version).to_owned())
        }
        ["api", version, rest @ ..] if registry.has_version("", version) => {
            Route::Objects(objects(method, "", version, rest, watching))
        }
        ["apis"] => Route::Groups,
        ["apis", group] => {
            let known = registry.groups().iter().any(|known| known.name == *group);
            if known && !group.is_empty() {
                Route::Group((*group).to_owned())
            } else {
                Route::Unknown
            }
        }
        ["apis", group, version] if registry.has_version(group, version) => {
            Route::Resources((*group).to_owned(), (*version).to_owned())
        }
        ["apis", group, version, rest @ ..] if registry.has_version(group, version) => {
            Route::Objects(objects(method, group, version, rest, watching))
        }
        ["apis", group, ..]
            if Registry::builtin().groups().iter().any(|one| one.name == *group) =>
        {
            Route::UnknownVersion
        }
        ["api", ..] => Route::UnknownVersion,
        _ => Route::Unknown,
    }
}

fn objects(
    method: &Method,
    group: &str,
    version: &str,
    rest: &[&str],
    watching: bool,
) -> RequestInfo {
    let (rest, legacy_watch) = match rest {
        ["watch", rest @ ..] => (rest, true),
        rest => (rest, false),
    };
    let mut info = RequestInfo {
        verb: Verb::Get,
        group: group.to_owned(),
        version: version.to_owned(),
        resource: String::new(),
        subresource: String::new(),
        namespace: String::new(),
        name: String::new(),
    };
    let rest = match rest {
        // `/namespaces/NAME/status` and `/finalize` are subresources of the namespace itself.
        ["namespaces", _, "status" | "finalize"] => rest,
        ["namespaces", namespace, inner @ ..] if !inner.is_empty() => {
            info.namespace = (*namespace).to_owned();
            inner
        }
        rest => rest,
    };
    let mut segments = rest.iter();
    info.resource = segments.next().map(|text| (*text).to_owned()).unwrap_or_default();
    info.name = segments.next().map(|text| (*text).to_owned()).unwrap_or_default();
    info.subresource = segments.map(|text| (*text).to_owned()).collect::<Vec<String>>().join("/");
    if info.resource == "namespaces" && info.namespace.is_empty() && group.is_empty() {
        // Authorization and admission treat a namespace as being in itself.
        info.namespace.clone_from(&info.name);
    }
    info.verb = verb(method, &info, watching, legacy_watch);
    info
}

fn verb(method: &Method, info: &RequestInfo, watching: bool, legacy_watch: bool) -> Verb {
    let collection = info.name.is_empty();
    match method.as_str() {
        "GET" | "HEAD" if legacy_watch => Verb::Watch,
        "GET" | "HEAD" if collection && watching => Verb::Watch,
        "GET" | "HEAD" if collection => Verb::List,
        "GET" | "HEAD" => Verb::Get,
        "POST" => Verb::Create,
        "PUT" => Verb::Update,
        "PATCH" => Verb::Patch,
        _ if collection => Verb::DeleteCollection,
        _ => Verb::Delete,
    }
}

#[cfg(test)]
mod tests;
