//! Claims about bodies.

use super::body;

#[test]
fn broken_json_is_reported_like_upstream_does() {
    let error = body("application/json", b"", "ConfigMap").unwrap_err();
    assert_eq!(
        error.message,
        "the object provided is unrecognized (must be of type ConfigMap): couldn't get \
         version/kind; json parse error: unexpected end of JSON input (<empty>)"
    );
}

#[test]
fn unknown_media_types_are_refused() {
    assert_eq!(body("text/foo", b"{}", "ConfigMap").unwrap_err().code, 415);
}
