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

use crate::body::Body;
use crate::path::{Route, route};
use crate::query::Query;
use crate::rbac::{Attributes, Decision};
use crate::request::RequestInfo;
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
    match run(inner, fallback, &request).await {
        Ok(response) => response,
        Err(error) => error_response(&error),
    }
}

async fn run(
    inner: &Arc<Inner>,
    fallback: &User,
    request: &Request,
) -> Result<Response<Body>, StatusError> {
    let user = inner.authenticator.authenticate(&request.headers, fallback)?;
    let user = impersonate(inner, request, user)?;
    let registry = inner.registry();
    let path = crate::query::decode_path(&request.path);
    let route = route(&request.method, &path, request.query.flag("watch"), &registry);
    if let Route::Objects(info) = route {
        return objects::handle(inner, user, request, info).await;
    }
    authorize_path(inner, &user, request)?;
    static_answer(inner, request, &route)
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
pub(crate) fn authorize(inner: &Inner, user: &User, info: &RequestInfo) -> Result<(), StatusError> {
    if inner.allows_all {
        return Ok(());
    }
    check(
        inner,
        user,
        &Attributes {
            verb: info.verb.as_str().to_owned(),
            group: info.group.clone(),
            version: info.version.clone(),
            resource: info.resource.clone(),
            subresource: info.subresource.clone(),
            namespace: info.namespace.clone(),
            name: info.name.clone(),
            path: String::new(),
        },
    )
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
        Route::Health if request.query.get("verbose").is_some() => {
            let check = request.path.trim_matches('/');
            let text = format!("[+]ping ok\n{check} check passed\n");
            Ok(bytes_response(StatusCode::OK, "text/plain; charset=utf-8", text))
        }
        Route::Health => Ok(text_response(StatusCode::OK, "ok")),
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

fn not_found_page() -> Response<Body> {
    text_response(StatusCode::NOT_FOUND, "404 page not found\n")
}
