use super::*;

fn answered(code: u16, headers: &[(&'static str, &'static str)], body: &str) -> RequestError {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.insert(*name, value.parse().expect("a header value"));
    }
    let code = StatusCode::from_u16(code).expect("a status code");
    RequestError::answered(&Method::PATCH, "/api/v1/pods", code, &map, body.as_bytes())
}

#[test]
fn codes_are_classified() {
    for (code, failure) in [
        (401, Failure::Unauthorized),
        (403, Failure::Forbidden),
        (404, Failure::NotFound),
        (409, Failure::Conflict),
        (410, Failure::Gone),
        (422, Failure::Invalid),
        (429, Failure::TooManyRequests),
        (400, Failure::Client(400)),
        (503, Failure::Server(503)),
    ] {
        assert_eq!(answered(code, &[], "").failure, failure);
        assert_eq!(failure.code(), Some(code));
    }
}

#[test]
fn rejections_are_distinguished_from_transient_failures() {
    let is_refusal = |code: &u16| Failure::of_code(*code).is_refusal();
    assert!([400, 403, 404, 405, 422].iter().all(is_refusal));
    assert!(![401, 409, 410, 429, 500, 503].iter().any(is_refusal));
    assert!(
        ![Failure::Connection, Failure::Timeout, Failure::Login].iter().any(|it| it.is_refusal())
    );
}

#[test]
fn retry_after_is_read_from_the_header_and_from_the_status() {
    assert_eq!(
        answered(429, &[("retry-after", "7")], "").retry_after,
        Some(Duration::from_secs(7))
    );
    let body = r#"{"kind":"Status","code":429,"details":{"retryAfterSeconds":3}}"#;
    assert_eq!(answered(429, &[], body).retry_after, Some(Duration::from_secs(3)));
    assert_eq!(answered(429, &[("retry-after", "soon")], "").retry_after, None);
}

#[test]
fn very_long_pauses_are_limited_and_invalid_ones_ignored() {
    for seconds in ["301", "86400", "1e20", "1e300"] {
        let error = answered(429, &[("retry-after", seconds)], "");
        assert_eq!(error.retry_after, Some(RETRY_AFTER_MAX), "{seconds}");
    }
    for seconds in ["inf", "-1", "NaN"] {
        assert_eq!(answered(429, &[("retry-after", seconds)], "").retry_after, None, "{seconds}");
    }
    let body =
        format!(r#"{{"kind":"Status","code":429,"details":{{"retryAfterSeconds":{}}}}}"#, u64::MAX);
    assert_eq!(answered(429, &[], &body).retry_after, Some(RETRY_AFTER_MAX));
    let streamed = RequestError::streamed("/x", body.as_bytes());
    assert_eq!(streamed.retry_after, Some(RETRY_AFTER_MAX));
}

#[test]
fn the_message_of_the_server_is_kept_and_long_pages_are_truncated() {
    let body = r#"{"kind":"Status","message":"pods is forbidden","reason":"Forbidden"}"#;
    let error = answered(403, &[], body);
    assert_eq!(error.to_string(), "PATCH /api/v1/pods failed: pods is forbidden");
    assert_eq!(error.reason.as_deref(), Some("Forbidden"));
    let page = answered(500, &[], &"x".repeat(10_000));
    assert!(page.message.len() < 400, "{}", page.message.len());
}

#[test]
fn an_expired_continue_token_is_known_by_its_reason() {
    let object = br#"{"kind":"Status","code":410,"reason":"Expired","message":"too old"}"#;
    assert!(RequestError::streamed("/x", object).is_expired());
}

#[test]
fn the_uid_of_another_object_is_distinguished_from_other_invalid_fields() {
    let refusal = |field: &str| {
        let causes = format!(r#"[{{"reason":"FieldValueInvalid","field":"{field}"}}]"#);
        let body = format!(r#"{{"kind":"Status","code":422,"details":{{"causes":{causes}}}}}"#);
        answered(422, &[], &body)
    };
    assert!(refusal("metadata.uid").is_misdirected);
    assert!(!refusal("metadata.labels").is_misdirected);
    assert!(!answered(422, &[], "").is_misdirected);
}

#[test]
fn missing_namespaces_are_distinguished_from_other_rejections() {
    let going = r#"{"kind": "Status", "reason": "Forbidden", "code": 403, "message": "events is
        forbidden: unable to create new content in namespace n because it is being terminated",
        "details": {"kind": "events", "causes": [{"reason": "NamespaceTerminating",
        "message": "namespace n is being terminated", "field": "metadata.namespace"}]}}"#;
    assert!(answered(403, &[], &going.replace('\n', " ")).lacks_namespace);
    let gone = r#"{"kind": "Status", "reason": "NotFound", "message": "namespaces \"n\" not found",
        "details": {"name": "n", "kind": "namespaces"}, "code": 404}"#;
    assert!(answered(404, &[], gone).lacks_namespace);
    for other in [
        r#"{"kind": "Status", "reason": "Forbidden", "code": 403, "message": "no right"}"#,
        r#"{"kind": "Status", "reason": "NotFound", "code": 404,
            "details": {"name": "n", "kind": "events"}}"#,
    ] {
        assert!(!answered(403, &[], other).lacks_namespace, "{other}");
    }
}
