//! Tests for decoding bodies.

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

#[test]
fn media_types_have_parameters_or_are_refused() {
    let code = |kind: &str| body(kind, b"{}", "ConfigMap").map(drop).map_err(|error| error.code);
    assert_eq!(code("application/json; charset=utf-8"), Ok(()));
    assert_eq!(code("application/json;"), Ok(()));
    assert_eq!(code("application/json;;"), Err(415));
    assert_eq!(code("application/json; charset"), Err(415));
}

#[test]
fn errors_show_the_start_of_a_body() {
    let text = |sent: &str| {
        let error = body("application/json", sent.as_bytes(), "ConfigMap").unwrap_err();
        error.message.rsplit_once("json parse error: ").unwrap().1.to_owned()
    };
    let two = text("{\"metadata\":{\"name\":\"two\"}}{\"metadata\":{}}");
    assert_eq!(
        two,
        "invalid character '{' after top-level value ({\"metadata\":{\"name\":\"two\"}}{\"m ...)"
    );
    assert_eq!(text("no"), "invalid character 'o' in literal null (expecting 'u') (6e6f)");
}
