//! Durations as strings.

use super::parse;

#[test]
fn units_add_up() {
    assert_eq!(parse("1h30m"), Some(5400.0));
    assert_eq!(parse("1m 30s"), Some(90.0));
    assert_eq!(parse("500ms"), Some(0.5));
    assert_eq!(parse("1.5s"), Some(1.5));
}

#[test]
fn invalid_texts_are_not_durations() {
    for text in ["", "10", "s", "10 parsecs", "-1s", "1..2s"] {
        assert_eq!(parse(text), None, "{text:?}");
    }
}
