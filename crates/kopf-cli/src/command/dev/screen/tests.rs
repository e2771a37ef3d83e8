//! Tests that the area is replaced exactly, even after the window has become narrower.

use super::{Area, Paint, visible_width};

#[test]
fn lines_appear_above_the_area() {
    let mut area = Area::default();
    assert_eq!(area.frame("", &["status".into()], 80), "status\n");
    let next = area.frame("said\n", &["status".into(), "row".into()], 80);
    assert_eq!(next, "\r\u{1b}[1A\u{1b}[Jsaid\nstatus\nrow\n");
    assert_eq!(area.frame("", &[], 80), "\r\u{1b}[2A\u{1b}[J");
    assert_eq!(area.frame("bye\n", &[], 80), "bye\n");
}

#[test]
fn lines_that_a_narrower_window_wrapped_are_erased_too() {
    let mut area = Area::default();
    area.frame("", &["x".repeat(70), String::new()], 80);
    assert!(area.frame("", &[], 30).starts_with("\r\u{1b}[4A"), "3 rows and an empty one");
}

#[test]
fn colours_take_no_room() {
    assert_eq!(visible_width(&Paint::Always.red("abc")), 3);
    assert_eq!(visible_width(&format!("a {} b", Paint::Always.dim("日本"))), 8);
    assert_eq!(visible_width(&Paint::Never.red("abc")), 3);
}
