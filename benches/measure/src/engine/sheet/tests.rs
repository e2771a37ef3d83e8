//! Tests that verdicts are derived from medians.

use super::{Contest, Row, Sheet, short};
use crate::engine::subject::Subject;

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

#[test]
fn the_package_has_bars_of_its_own() {
    let row = Row::BurstCpu("create".into(), 100);
    let values = [(Subject::Python, 10.0), (Subject::Uvloop, 100.0)];
    let mut sheet = sheet(&row, &values);
    sheet.contest = Contest::Packages;
    assert_eq!(sheet.verdict(&row).1, Some(true));
    assert_eq!(
        sheet.render().lines().last(),
        Some("| CPU per object, burst of 100, µs | 10.0 | 100 | 10.0 | ≥ 10× Kopf | met |")
    );
}
