//! One request from head to answer: the same for both doors.
//!
//! Order: authenticate, route, authorize, faults, options, decode, verb, encode. The verbs
//! themselves live in `rest`.

mod answer;
mod objects;

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method, Response, StatusCode};
use serde_json::Value;

use crate::access::{Attributes, Decision};
use crate::audit::{self, Trail};
use crate::body::Body;
use crate::path::{HEALTH_CHECKS, Route, route};
use crate::query::Query;
use crate::request::{RequestInfo, Verb};
use crate::request_log::LoggedRequest;
use crate::server::Inner;
use crate::{StatusError, User, authn, discovery, openapi};

pub(crate) use answer::{bytes_response, error_response, json_response, text_response};

/// A request with its body read.
pub(crate) struct Request {
    /// The HTTP method.
    pub(crate) method: Method,
    /// The path, still percent-encoded.
    pub(crate) path: String,
    /// The path with its query, as sent.
    pub(crate) target: String,
    /// The decoded query.
    pub(crate) query: Query,
    /// The headers.
    pub(crate) headers: HeaderMap,
    /// The body.
    pub(crate) body: Bytes,
}

impl Request {
    /// A header as text, empty when absent.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

/// Answers a request; `fallback` is the identity of a request without credentials.
pub(crate) async fn handle(
    inner: &Arc<Inner>,
    fallback: &User,
    request: Request,
) -> Response<Body> {
    let (received, started) = (inner.clock.now(), std::time::Instant::now());
    let mut trail = Trail::default();
    let response = match run(inner, fallback, &request, &mut trail).await {
        Ok(response) => response,
        Err(error) => error_response(&error),
    };
    if let Some(info) = &trail.info {
        inner.metrics.count(info, response.status().as_u16(), started.elapsed());
    }
    if let Some(log) = &inner.audit {
        let times = (received, inner.clock.now());
        log.write(&audit::event(&inner.ids.uid(), &request, &trail, &response, times));
    }
    response
}

/// Answers a request that was refused before its body was read.
pub(crate) fn refuse(inner: &Inner, request: &Request, error: &StatusError) -> Response<Body> {
    let response = error_response(error);
    if let Some(log) = &inner.audit {
        let now = inner.clock.now();
        let trail = Trail::default();
        log.write(&audit::event(&inner.ids.uid(), request, &trail, &response, (now, now)));
    }
    response
}

/// Refuses a request that its sender may not make, before its body is read.
pub(crate) fn admit(
    inner: &Inner,
    fallback: &User,
    parts: &http::request::Parts,
) -> Result<(), StatusError> {
    let user = inner.authenticator.authenticate(&parts.headers, fallback, inner.present())?;
    // Impersonated users are judged once the body is read.
    if inner.allows_all
        || authn::impersonation(&parts.headers).is_some()
        || authn::impersonation_without_user(&parts.headers).is_some()
    {
        return Ok(());
    }
    let path = crate::query::decode_path(parts.uri.path());
    let Route::Objects(info) = route(&parts.method, &path, false, &inner.registry()) else {
        return Ok(());
    };
    let query = Query::parse(parts.uri.query().unwrap_or_default());
    authorize(inner, &user, &info, &query).inspect_err(|error| {
        inner.log.push(LoggedRequest {
            number: 0,
            info,
            user: user.name,
            path: parts.uri.path_and_query().map_or_else(String::new, ToString::to_string),
            content_type: String::new(),
            body: Bytes::new(),
            status: error.code,
        });
    })
}

async fn run(
    inner: &Arc<Inner>,
    fallback: &User,
    request: &Request,
    trail: &mut Trail,
) -> Result<Response<Body>, StatusError> {
    let user = inner.authenticator.authenticate(&request.headers, fallback, inner.present())?;
    trail.user = Some(user.clone());
    if let Some(wanted) = authn::impersonation_without_user(&request.headers) {
        let text = format!(
            "Internal Server Error: {:?}: requested [{wanted}] without impersonating a user\n",
            request.target
        );
        return Ok(bytes_response(StatusCode::INTERNAL_SERVER_ERROR, PLAIN_TEXT, text));
    }
    let user = impersonate(inner, request, user)?;
    trail.impersonated = Some(user.clone()).filter(|user| trail.user.as_ref() != Some(user));
    let registry = inner.registry();
    let path = crate::query::decode_path(&request.path);
    let route = route(&request.method, &path, request.query.flag("watch"), &registry);
    if let Route::Objects(info) = route {
        trail.info = Some(info.clone());
        if !has_verb(&request.method) {
            check(inner, &user, &attributes_of(&info, "", &request.query))?;
            return Err(method_not_allowed());
        }
        return objects::handle(inner, user, request, info).await;
    }
    authorize_path(inner, &user, request)?;
    let is_read = matches!(request.method, Method::GET | Method::HEAD);
    if request.method == Method::CONNECT || (route.is_only_read() && !is_read) {
        return Err(method_not_allowed());
    }
    static_answer(inner, request, &route)
}

const PLAIN_TEXT: &str = "text/plain; charset=utf-8";
const METRICS_TEXT: &str = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores";

/// Whether a method does anything to objects.
fn has_verb(method: &Method) -> bool {
    matches!(method.as_str(), "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE")
}

fn method_not_allowed() -> StatusError {
    StatusError::method_not_supported("", "", "")
}

fn impersonate(inner: &Inner, request: &Request, user: User) -> Result<User, StatusError> {
    let Some(wanted) = authn::impersonation(&request.headers) else { return Ok(user) };
    for attributes in crate::rbac::impersonation_of(&wanted.user) {
        check(inner, &user, &attributes)?;
    }
    Ok(wanted.user)
}

fn check(inner: &Inner, user: &User, attributes: &Attributes) -> Result<(), StatusError> {
    let snapshot = inner.store.snapshot();
    match inner.authorizer.authorize(&snapshot, user, attributes) {
        Decision::Allow(_) => Ok(()),
        Decision::Deny(reason) => Err(forbidden(user, attributes, &reason)),
    }
}

/// Refuses a request about objects that the user may not make.
pub(crate) fn authorize(
    inner: &Inner,
    user: &User,
    info: &RequestInfo,
    query: &Query,
) -> Result<(), StatusError> {
    if inner.allows_all {
        return Ok(());
    }
    check(inner, user, &attributes_of(info, info.verb.as_str(), query))
}

fn attributes_of(info: &RequestInfo, verb: &str, query: &Query) -> Attributes {
    Attributes {
        verb: verb.to_owned(),
        group: info.group.clone(),
        version: info.version.clone(),
        resource: info.resource.clone(),
        subresource: info.subresource.clone(),
        namespace: info.namespace.clone(),
        name: authorized_name(info, query),
        path: String::new(),
    }
}

/// The only object that a request can be about. A collection that is narrowed down to one name is
/// authorized as that object, as upstream does.
fn authorized_name(info: &RequestInfo, query: &Query) -> String {
    let is_collection = matches!(info.verb, Verb::List | Verb::Watch | Verb::DeleteCollection);
    if !info.name.is_empty() || !is_collection {
        return info.name.clone();
    }
    let exact = |term: &str| {
        let value = term.trim().strip_prefix("metadata.name=")?;
        let name = value.strip_prefix('=').unwrap_or(value);
        let is_segment = !matches!(name, "." | "..") && !name.contains(['/', '%']);
        is_segment.then(|| name.to_owned())
    };
    query.text("fieldSelector").split(',').find_map(exact).unwrap_or_default()
}

fn authorize_path(inner: &Inner, user: &User, request: &Request) -> Result<(), StatusError> {
    if inner.allows_all {
        return Ok(());
    }
    let attributes = Attributes {
        verb: request.method.as_str().to_lowercase(),
        path: request.path.clone(),
        ..Attributes::default()
    };
    check(inner, user, &attributes)
}

/// Upstream's sentence for a refusal.
pub(crate) fn forbidden(user: &User, attributes: &Attributes, reason: &str) -> StatusError {
    let Attributes { verb, group, resource, subresource, namespace, name, path, .. } = attributes;
    let tail = if reason.is_empty() { String::new() } else { format!(": {reason}") };
    if resource.is_empty() {
        let message = format!("forbidden: User {:?} cannot {verb} path {path:?}{tail}", user.name);
        return StatusError::new(403, "Forbidden", message).about("", "", "");
    }
    let full =
        if subresource.is_empty() { resource.clone() } else { format!("{resource}/{subresource}") };
    let scope = if namespace.is_empty() {
        " at the cluster scope".to_owned()
    } else {
        format!(" in the namespace {namespace:?}")
    };
    let problem = format!(
        "User {:?} cannot {verb} resource {full:?} in API group {group:?}{scope}{tail}",
        user.name
    );
    StatusError::forbidden(group, resource, name, &problem)
}

fn static_answer(
    inner: &Inner,
    request: &Request,
    route: &Route,
) -> Result<Response<Body>, StatusError> {
    let registry = inner.registry();
    let json = |value: Value| Ok(json_response(StatusCode::OK, &value));
    let host = request.header("host");
    let address = if host.is_empty() { "kubernetes.default.svc" } else { host };
    match route {
        Route::Root => json(discovery::paths(&registry)),
        Route::Version => json(discovery::version()),
        Route::Health => Ok(health(inner, request)),
        Route::Metrics => {
            let page = inner.metrics.page(&inner.store.snapshot());
            Ok(bytes_response(StatusCode::OK, METRICS_TEXT, page))
        }
        Route::CoreVersions | Route::Groups => {
            let core = *route == Route::CoreVersions;
            if let Some(version) = discovery::aggregated_version(request.header("accept")) {
                return Ok(answer::aggregated(
                    &discovery::aggregated(&registry, core, version),
                    request.header("if-none-match"),
                ));
            }
            if core {
                json(discovery::core_versions(address))
            } else {
                json(discovery::groups(&registry))
            }
        }
        Route::Group(group) => {
            discovery::group(&registry, group).map_or_else(|| Ok(not_found_page()), json)
        }
        Route::Resources(group, version) => json(discovery::resources(&registry, group, version)),
        Route::OpenApi => {
            let document =
                openapi::document(&request.path, request.header("accept"), registry.resources());
            Ok(document.map_or_else(not_found_page, |document| {
                answer::document(&document, request.header("if-none-match"))
            }))
        }
        // Tokens are signed with a secret, so there is no public key to publish.
        Route::OpenId if request.path.contains("jwks") => json(serde_json::json!({"keys": []})),
        Route::OpenId => json(discovery::openid_configuration(address)),
        Route::UnknownVersion => Err(StatusError::new(
            404,
            "NotFound",
            "the server could not find the requested resource",
        )
        .about("", "", "")),
        Route::Unknown | Route::Objects(_) => Ok(not_found_page()),
    }
}

/// Whether the server works; a disk that fails makes it unhealthy, but not dead.
fn health(inner: &Inner, request: &Request) -> Response<Body> {
    let path = request.path.trim_matches('/');
    let (endpoint, only) = path.split_once('/').unwrap_or((path, ""));
    let disk = inner.store.disk_problem().filter(|_| endpoint != "livez");
    let excluded = request.query.all("exclude");
    let is_asked = |check: &&&str| {
        let is_ready_only = matches!(**check, "etcd-readiness" | "informer-sync" | "shutdown");
        let is_here = endpoint == "readyz" || !is_ready_only;
        is_here && !excluded.contains(*check) && (only.is_empty() || only == **check)
    };
    let mut text = String::new();
    let mut has_failed = false;
    for check in HEALTH_CHECKS.iter().filter(is_asked) {
        match disk.as_ref().filter(|_| check.starts_with("etcd")) {
            Some(problem) => {
                has_failed = true;
                text.push_str(&format!("[-]{check} failed: {problem}\n"));
            }
            None => text.push_str(&format!("[+]{check} ok\n")),
        }
    }
    if has_failed {
        text.push_str(&format!("{path} check failed\n"));
        return bytes_response(StatusCode::INTERNAL_SERVER_ERROR, PLAIN_TEXT, text);
    }
    if request.query.get("verbose").is_some() {
        text.push_str(&format!("{path} check passed\n"));
        return bytes_response(StatusCode::OK, PLAIN_TEXT, text);
    }
    text_response(StatusCode::OK, "ok")
}

fn not_found_page() -> Response<Body> {
    text_response(StatusCode::NOT_FOUND, "404 page not found\n")
}
