//! Rules for forbidden requests.

use http::Method;

use super::missing_rule;

fn rule(method: &Method, path: &str, verb: &str) -> Option<String> {
    let message = format!(
        "pods is forbidden: User \"system:serviceaccount:default:demo\" cannot {verb} resource \
         \"pods\" in API group \"\" in the namespace \"default\""
    );
    missing_rule(method, path, &message)
}

#[test]
fn a_forbidden_request_names_the_rule_that_would_allow_it() {
    let examples = "/apis/kopf.dev/v1/kopfexamples";
    let here = "a Role in the namespace default, or to a ClusterRole";
    for (method, path, verb, place, expected) in [
        (
            Method::GET,
            format!("{examples}?limit=500"),
            "list",
            "a ClusterRole",
            "apiGroups: [kopf.dev], resources: [kopfexamples], verbs: [list, watch]",
        ),
        (
            Method::GET,
            format!("{examples}?watch=true&resourceVersion=1"),
            "watch",
            "a ClusterRole",
            "apiGroups: [kopf.dev], resources: [kopfexamples], verbs: [list, watch]",
        ),
        (
            Method::PATCH,
            "/apis/kopf.dev/v1/namespaces/default/kopfexamples/a/status".to_owned(),
            "patch",
            here,
            "apiGroups: [kopf.dev], resources: [kopfexamples/status], verbs: [patch]",
        ),
        (
            Method::POST,
            "/api/v1/namespaces/default/events".to_owned(),
            "create",
            here,
            "apiGroups: [''], resources: [events], verbs: [create]",
        ),
        (
            Method::GET,
            "/api/v1/namespaces/default".to_owned(),
            "get",
            "a ClusterRole",
            "apiGroups: [''], resources: [namespaces], verbs: [get]",
        ),
    ] {
        let expected =
            format!("to allow it, add this rule to {place} of the operator: {{{expected}}}");
        assert_eq!(rule(&method, &path, verb), Some(expected), "{method} {path}");
    }
}

#[test]
fn rejections_by_others_than_rbac_name_no_rule() {
    let path = "/api/v1/namespaces/default/pods";
    for message in [
        "admission webhook \"check.demo\" denied the request: never",
        "pods \"a\" is forbidden: exceeded quota: small",
        "roles is forbidden: user \"x\" is attempting to grant RBAC permissions not currently held",
        "the server answered 403 Forbidden",
    ] {
        assert_eq!(missing_rule(&Method::POST, path, message), None, "{message}");
    }
    assert_eq!(rule(&Method::GET, "/version", "get"), None);
}
