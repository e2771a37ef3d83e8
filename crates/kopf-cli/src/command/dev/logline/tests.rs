//! Tests that JSON lines are shortened and other lines are unchanged.

use super::shorten;
use crate::command::dev::screen::Paint;

#[test]
fn json_lines_are_made_short() {
    let line = r#"{"message":"Handler 'greet' succeeded.","took":3,
        "timestamp":"2026-11-15T12:00:01.123456+00:00",
        "object":{"name":"example","namespace":"default"},"severity":"info"}"#;
    assert_eq!(
        shorten(line, Paint::Never),
        "12:00:01 INFO  default/example Handler 'greet' succeeded. took=3"
    );
    let error = r#"{"message":"it broke","exc_info":"caused by: x","severity":"error"}"#;
    assert_eq!(shorten(error, Paint::Never), "--:--:-- ERROR it broke\ncaused by: x");
    assert!(shorten(error, Paint::Always).contains("\u{1b}[31mERROR\u{1b}[0m"));
}

#[test]
fn other_lines_stay_as_they_are() {
    for line in ["Hello!", "{\"a\": 1}", "[1, 2]", ""] {
        assert_eq!(shorten(line, Paint::Always), line);
    }
}
