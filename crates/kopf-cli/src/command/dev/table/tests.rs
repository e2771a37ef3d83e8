//! Tests of the table in windows of all sizes.

use expect_test::{Expect, expect};
use kopf_engine::journal::Chronicle;
use serde_json::{Value, json};

use super::{Room, fit, render};
use crate::command::dev::screen::Paint;

fn object(name: &str, sequence: u64, entries: Value, situation: Value) -> Chronicle {
    let mut whole = json!({
        "wake_at": null, "error": null, "gone": false, "deleting": false, "held": false,
        "filtered": [], "background": [], "children": [], "desired_failures": {},
    });
    whole.as_object_mut().unwrap().extend(situation.as_object().unwrap().clone());
    serde_json::from_value(json!({
        "resource": "greetings.example.com", "kind": "Greeting", "namespace": "default",
        "name": name, "uid": name, "sequence": sequence, "entries": entries, "situation": whole,
    }))
    .unwrap()
}

fn attempt(ending: &str, number: u32, error: Option<&str>) -> Value {
    json!([{
        "at": "2026-11-15T11:59:50Z", "what": "attempt", "handler": "greet", "number": number,
        "milliseconds": 2, "ending": ending, "error": error, "next_at": "2026-11-15T12:00:42Z",
    }])
}

fn objects() -> Vec<Chronicle> {
    vec![
        object("example", 1, attempt("success", 1, None), json!({})),
        object("slow", 2, attempt("retry", 3, Some("the cloud\nis not ready")), json!({})),
        object("broken", 3, attempt("failure", 1, Some("no such plan")), json!({})),
        object("past", 4, json!([]), json!({"gone": true})),
    ]
}

fn check(width: usize, rows_max: usize, expected: Expect) {
    let now = "2026-11-15T12:00:00Z".parse().unwrap();
    let lines = render(objects().iter(), Room { width, rows_max }, now, Paint::Never);
    assert!(lines.iter().all(|line| line.chars().count() <= width), "{lines:#?}");
    expected.assert_eq(&(lines.join("\n") + "\n"));
}

#[test]
fn a_wide_window_shows_everything_with_trouble_first() {
    check(
        100,
        10,
        expect![[r#"
            KIND      OBJECT           STATE          AGE   LAST
            Greeting  default/broken   failed         10 s  greet: no such plan
            Greeting  default/slow     retry in 42 s  10 s  greet (attempt 3): the cloud is not ready
            Greeting  default/example  ok             10 s  greet succeeded in 2 ms
            Greeting  default/past     gone
        "#]],
    );
}

#[test]
fn a_narrow_window_loses_columns_not_objects() {
    check(
        60,
        10,
        expect![[r#"
            KIND      OBJECT           STATE          LAST
            Greeting  default/broken   failed         greet: no such pl…
            Greeting  default/slow     retry in 42 s  greet (attempt 3)…
            Greeting  default/example  ok             greet succeeded i…
            Greeting  default/past     gone
        "#]],
    );
    check(
        30,
        10,
        expect![[r#"
            OBJECT           STATE
            default/broken   failed
            default/slow     retry in 42 s
            default/example  ok
            default/past     gone
        "#]],
    );
}

#[test]
fn a_low_window_counts_what_it_does_not_show() {
    check(
        40,
        3,
        expect![[r#"
            OBJECT          STATE          LAST
            default/broken  failed         greet: n…
            default/slow    retry in 42 s  greet (a…
            … and 2 more
        "#]],
    );
}

#[test]
fn colours_appear_only_when_wanted() {
    let now = "2026-11-15T12:00:00Z".parse().unwrap();
    let room = Room { width: 100, rows_max: 10 };
    let plain = render(objects().iter(), room, now, Paint::Never).concat();
    assert!(!plain.contains('\u{1b}'));
    let painted = render(objects().iter(), room, now, Paint::Always).concat();
    assert!(painted.contains("\u{1b}[31mfailed"));
}

#[test]
fn wide_characters_count_twice() {
    assert_eq!(fit("日本語", 6), "日本語");
    assert_eq!(fit("日本語", 5), "日本…");
    assert_eq!(fit("日本語", 4), "日…");
    assert_eq!(fit("abc", 0), "");
}
