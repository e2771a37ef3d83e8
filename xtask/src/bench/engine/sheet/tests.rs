//! Verdicts are derived from medians.

use super::{Row, Sheet, short};
use crate::bench::engine::subject::Subject;

fn sheet(row: &Row, values: &[(Subject, f64)]) -> Sheet {
    let mut sheet = Sheet::default();
    for (subject, value) in values {
        sheet.put(row.clone(), *subject, *value);
    }
    sheet
}

#[test]
fn the_faster_kopf_counts() {
    let row = Row::Cold(1000);
    let values = [(Subject::Ours, 10.0), (Subject::Kopf, 300.0), (Subject::Uvloop, 190.0)];
    assert_eq!(sheet(&row, &values).verdict(&row).1, Some(false));
    let values = [(Subject::Ours, 10.0), (Subject::Kopf, 300.0), (Subject::Uvloop, 200.0)];
    assert_eq!(sheet(&row, &values).verdict(&row).1, Some(true));
}

#[test]
fn a_faster_controller_misses_the_bar() {
    let row = Row::Noop;
    let values = [(Subject::Ours, 10.0), (Subject::Kopf, 900.0), (Subject::Controller, 9.0)];
    assert_eq!(sheet(&row, &values).verdict(&row).1, Some(false));
}

#[test]
fn writes_are_held_to_the_floor() {
    let row = Row::Writes("two".into(), false);
    assert_eq!(sheet(&row, &[(Subject::Ours, 1.0)]).verdict(&row).1, Some(true));
    assert_eq!(sheet(&row, &[(Subject::Ours, 2.0)]).verdict(&row).1, Some(false));
}

#[test]
fn medians_ignore_outliers() {
    let row = Row::Idle;
    let values = [(Subject::Ours, 5.0), (Subject::Ours, 50.0), (Subject::Ours, 6.0)];
    assert_eq!(sheet(&row, &values).median(&row, Subject::Ours), Some(6.0));
    assert_eq!(short(12.345), "12.3");
}
