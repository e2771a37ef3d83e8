//! Tests for paths.

use http::Method;

use super::{Route, route};
use crate::registry::Registry;
use crate::request::Verb;

fn parse(method: Method, path: &str) -> Route {
    route(&method, path, false, &Registry::builtin())
}

fn objects(method: Method, path: &str) -> crate::RequestInfo {
    match parse(method, path) {
        Route::Objects(info) => info,
        other => panic!("{path} is not about objects: {other:?}"),
    }
}

#[test]
fn trailing_slashes_do_not_matter() {
    assert_eq!(parse(Method::GET, "/version/"), Route::Version);
    assert_eq!(parse(Method::GET, "/api/"), Route::CoreVersions);
    assert_eq!(parse(Method::GET, "/apis/apps/v1/"), Route::Resources("apps".into(), "v1".into()));
}

#[test]
fn unserved_groups_are_unknown() {
    assert_eq!(parse(Method::GET, "/apis/none.io/v1/foos"), Route::Unknown);
    assert_eq!(parse(Method::GET, "/apis/none.io"), Route::Unknown);
    assert_eq!(parse(Method::GET, "/api/v2/pods"), Route::UnknownVersion);
    assert_eq!(parse(Method::GET, "/apis/apps/v9"), Route::UnknownVersion);
}

#[test]
fn namespaces_are_both_scope_and_object() {
    let inner = objects(Method::GET, "/api/v1/namespaces/ns/pods/p/log");
    assert_eq!((&*inner.namespace, &*inner.name, &*inner.subresource), ("ns", "p", "log"));
    let itself = objects(Method::PUT, "/api/v1/namespaces/ns/finalize");
    assert_eq!((&*itself.resource, &*itself.name), ("namespaces", "ns"));
    assert_eq!((&*itself.subresource, itself.verb), ("finalize", Verb::Update));
    assert_eq!(objects(Method::DELETE, "/api/v1/namespaces/ns").verb, Verb::Delete);
}

#[test]
fn collections_have_their_own_verbs() {
    assert_eq!(objects(Method::GET, "/api/v1/pods").verb, Verb::List);
    assert_eq!(objects(Method::DELETE, "/api/v1/pods").verb, Verb::DeleteCollection);
    assert_eq!(objects(Method::GET, "/api/v1/watch/pods").verb, Verb::Watch);
}
