//! Progress records as text.

use serde_json::json;

use super::{Absent, ProgressRecord, format_time, parse_time};
use crate::json::text::to_ascii;

fn failed_once() -> ProgressRecord {
    ProgressRecord {
        started: parse_time("2026-11-15T18:53:43.155912+00:00"),
        delayed: parse_time("2026-11-15T18:53:43.855912Z"),
        purpose: Some("create".into()),
        retries: 1,
        message: Some("not ready ü".into()),
        ..ProgressRecord::default()
    }
}

#[test]
fn records_are_written_as_kopf_writes_them() {
    let text = to_ascii(&failed_once().to_value(Absent::Omitted));
    assert_eq!(
        text,
        concat!(
            r#"{"started":"2026-11-15T18:53:43.155912+00:00","#,
            r#""delayed":"2026-11-15T18:53:43.855912+00:00","purpose":"create","retries":1,"#,
            r#""success":false,"failure":false,"message":"not ready \u00fc"}"#
        )
    );
}

#[test]
fn nulls_are_written_if_the_storage_requires_them() {
    let value = ProgressRecord::default().to_value(Absent::Null);
    assert_eq!(
        value.to_string(),
        concat!(
            r#"{"started":null,"stopped":null,"delayed":null,"purpose":null,"retries":0,"#,
            r#""success":false,"failure":false,"message":null,"subrefs":null}"#
        )
    );
}

#[test]
fn reading_restores_what_was_written() {
    let mut record = failed_once();
    record.subrefs = vec!["a/b".into(), "a/c".into()];
    for absent in [Absent::Omitted, Absent::Null] {
        assert_eq!(ProgressRecord::from_value(&record.to_value(absent)), record);
    }
}

#[test]
fn missing_and_unknown_fields_do_not_matter() {
    let record = ProgressRecord::from_value(&json!({"purpose": "", "future": [1]}));
    assert_eq!(record, ProgressRecord::default());
}

#[test]
fn times_have_six_digits_and_an_offset() {
    let whole = parse_time("2026-11-15T18:53:43Z").unwrap();
    assert_eq!(format_time(whole), "2026-11-15T18:53:43.000000+00:00");
    let naive = parse_time("2026-11-15T18:53:43.5").unwrap();
    assert_eq!(format_time(naive), "2026-11-15T18:53:43.500000+00:00");
    let elsewhere = parse_time("2026-11-15T20:53:43+02:00").unwrap();
    assert_eq!(elsewhere, whole);
    assert_eq!(parse_time("yesterday"), None);
}
