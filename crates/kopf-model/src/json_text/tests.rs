//! Escapes in stored text.

use super::to_ascii;

#[test]
fn non_ascii_is_escaped_with_surrogates_and_the_rest_is_not() {
    let text = to_ascii(&serde_json::json!({"k ü": "a\n\"\u{7f}😀~"}));
    assert_eq!(text, r#"{"k \u00fc":"a\n\"\u007f\ud83d\ude00~"}"#);
}
