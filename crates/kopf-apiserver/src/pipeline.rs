//! Processes a request from its headers to the response; the same for all transports.
//!
//! Order: authenticate, route, authorize, faults, options, decode, verb, encode. The verbs are in
//! `rest`.

mod objects;

use std::sync::Arc;

use bytes::Bytes;
use http::header::{ACCEPT, HOST, IF_NONE_MATCH};
use http::{Method, Response, StatusCode};
use serde_json::Value;

use crate::answer::{self, bytes_response, error_response, json_response, text_response};
use crate::audit::{self, Trail};
use crate::authorize::{attributes_of, authorize, authorize_path, check};
use crate::body::Body;
use crate::http_request::Request;
use crate::path::{HEALTH_CHECKS, Route, route};
use crate::query::Query;
use crate::request_log::LoggedRequest;
use crate::state::Inner;
use crate::{StatusError, User, authn, discovery, openapi};

/// Answers a request; `fallback` is the identity of a request without credentials.
pub(crate) async fn handle(
    inner: &Arc<Inner>,
    fallback: &Arc<User>,
    request: Request,
) -> Response<Body> {
    let started = std::time::Instant::now();
    let audit = inner.audit.as_ref().map(|log| (log, inner.clock.now()));
    let mut trail = Trail::default();
    let response = match run(inner, fallback, &request, &mut trail).await {
        Ok(response) => response,
        Err(error) => error_response(&error),
    };
    if let Some(info) = &trail.info {
        inner.metrics.count(info, response.status().as_u16(), started.elapsed());
    }
    if let Some((log, received)) = audit {
        let times = (received, inner.clock.now());
        log.write(&audit::event(&inner.ids.uid(), &request, &trail, &response, times));
    }
    response
}

/// Answers a request that was rejected before its body was read.
pub(crate) fn refuse(inner: &Inner, request: &Request, error: &StatusError) -> Response<Body> {
    let response = error_response(error);
    if let Some(log) = &inner.audit {
        let now = inner.clock.now();
        let trail = Trail::default();
        log.write(&audit::event(&inner.ids.uid(), request, &trail, &response, (now, now)));
    }
    response
}

/// Rejects a request that its sender may not make, before its body is read.
pub(crate) fn admit(
    inner: &Inner,
    fallback: &Arc<User>,
    parts: &http::request::Parts,
) -> Result<(), StatusError> {
    let user = inner.authenticator.authenticate(&parts.headers, fallback, inner.present())?;
    // Impersonated users are authorized after the body is read.
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
            info: Arc::new(info),
            user: user.name.clone(),
            path: parts.uri.path_and_query().map_or_else(String::new, ToString::to_string),
            content_type: String::new(),
            body: Bytes::new(),
            status: error.code,
        });
    })
}

async fn run(
    inner: &Arc<Inner>,
    fallback: &Arc<User>,
    request: &Request,
    trail: &mut Trail,
) -> Result<Response<Body>, StatusError> {
    let user = inner.authenticator.authenticate(&request.headers, fallback, inner.present())?;
    trail.user = Some(Arc::clone(&user));
    if let Some(wanted) = authn::impersonation_without_user(&request.headers) {
        let text = format!(
            "Internal Server Error: {:?}: requested [{wanted}] without impersonating a user\n",
            request.target
        );
        return Ok(bytes_response(StatusCode::INTERNAL_SERVER_ERROR, PLAIN_TEXT, text));
    }
    let user = impersonate(inner, request, user)?;
    if trail.user.as_ref() != Some(&user) {
        trail.impersonated = Some(Arc::clone(&user));
    }
    let registry = inner.registry();
    let path = crate::query::decode_path(&request.path);
    let route = route(&request.method, &path, request.query.flag("watch"), &registry);
    if let Route::Objects(info) = route {
        let info = Arc::new(info);
        trail.info = Some(Arc::clone(&info));
        if !has_verb(&request.method) {
            check(inner, &user, &attributes_of(&info, "", &request.query))?;
            return Err(method_not_allowed());
        }
        return objects::handle(inner, user, request, info).await;
    }
    authorize_path(inner, &user, request)?;
    let is_read = request.method == Method::GET;
    if request.method == Method::CONNECT || (route.is_only_read() && !is_read) {
        return Err(method_not_allowed());
    }
    static_answer(inner, request, &route)
}

const PLAIN_TEXT: &str = "text/plain; charset=utf-8";
const METRICS_TEXT: &str = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores";

/// Whether a method has a verb.
fn has_verb(method: &Method) -> bool {
    matches!(method.as_str(), "GET" | "POST" | "PUT" | "PATCH" | "DELETE")
}

fn method_not_allowed() -> StatusError {
    StatusError::method_not_supported("", "", "")
}

fn impersonate(
    inner: &Inner,
    request: &Request,
    user: Arc<User>,
) -> Result<Arc<User>, StatusError> {
    let Some(wanted) = authn::impersonation(&request.headers) else { return Ok(user) };
    for attributes in crate::rbac::impersonation_of(&wanted.user) {
        check(inner, &user, &attributes)?;
    }
    Ok(Arc::new(wanted.user))
}

fn static_answer(
    inner: &Inner,
    request: &Request,
    route: &Route,
) -> Result<Response<Body>, StatusError> {
    let registry = inner.registry();
    let json = |value: Value| Ok(json_response(StatusCode::OK, &value));
    let host = request.header(&HOST);
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
            if let Some(version) = discovery::aggregated_version(request.header(&ACCEPT)) {
                return Ok(answer::aggregated(
                    &discovery::aggregated(&registry, core, version),
                    request.header(&IF_NONE_MATCH),
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
                openapi::document(&request.path, request.header(&ACCEPT), registry.resources());
            let is_one = request.path.starts_with("/openapi/v3/");
            let missing =
                || if is_one { empty_page(StatusCode::NOT_FOUND) } else { not_found_page() };
            // The list of documents is the same for all formats.
            let has_formats = is_one || request.path.starts_with("/openapi/v2");
            if has_formats && document.is_some() && !accepts_document(request.header(&ACCEPT)) {
                return Ok(empty_page(StatusCode::NOT_ACCEPTABLE));
            }
            Ok(document.map_or_else(missing, |document| {
                answer::document(&document, request.header(&IF_NONE_MATCH))
            }))
        }
        // Tokens are signed with a shared secret, so there is no public key to publish.
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

/// Reports the health of the server; a failing disk makes it unhealthy, but not dead.
fn health(inner: &Inner, request: &Request) -> Response<Body> {
    let path = request.path.trim_matches('/');
    let (endpoint, only) = path.split_once('/').unwrap_or((path, ""));
    let disk = inner.store.disk_problem().filter(|_| endpoint != "livez");
    let excluded = request.query.all("exclude");
    let is_asked = |check: &&&str| {
        let is_ready_only = matches!(**check, "etcd-readiness" | "informer-sync" | "shutdown");
        let is_here = endpoint == "readyz" || !is_ready_only;
        is_here && (only.is_empty() || only == **check)
    };
    let mut text = String::new();
    let mut has_failed = false;
    for check in HEALTH_CHECKS.iter().filter(is_asked) {
        if excluded.contains(check) {
            text.push_str(&format!("[+]{check} excluded: ok\n"));
            continue;
        }
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

/// Whether a client accepts an existing format of an OpenAPI document.
fn accepts_document(accept: &str) -> bool {
    let forms =
        ["application/json", "application/com.github.proto-openapi", "*/*", "application/*"];
    accept.is_empty() || forms.iter().any(|form| accept.contains(form))
}

/// A response without a body.
fn empty_page(status: StatusCode) -> Response<Body> {
    let mut response = text_response(status, "");
    response.headers_mut().remove(http::header::CONTENT_TYPE);
    response
}

fn not_found_page() -> Response<Body> {
    text_response(StatusCode::NOT_FOUND, "404 page not found\n")
}
