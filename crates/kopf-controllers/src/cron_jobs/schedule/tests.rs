//! Tests for schedules.

use jiff::Timestamp;

use super::Schedule;

fn next(schedule: &str, zone: &str, after: &str) -> String {
    let after: Timestamp = after.parse().unwrap();
    Schedule::parse(schedule, zone).unwrap().next_after(after).unwrap().to_string()
}

#[test]
fn the_next_start_is_the_first_minute_that_fits() {
    for (schedule, after, expected) in [
        ("* * * * *", "2026-01-01T00:00:30Z", "2026-01-01T00:01:00Z"),
        ("*/15 * * * *", "2026-01-01T00:15:00Z", "2026-01-01T00:30:00Z"),
        ("5 4 * * *", "2026-01-01T04:05:00Z", "2026-01-02T04:05:00Z"),
        ("0 0 29 2 *", "2026-01-01T00:00:00Z", "2028-02-29T00:00:00Z"),
        ("0 12 * * mon-fri", "2026-01-02T13:00:00Z", "2026-01-05T12:00:00Z"),
        ("0 0 1 jan,jul *", "2026-01-01T00:00:00Z", "2026-07-01T00:00:00Z"),
        ("0 0 * * 7", "2026-01-01T00:00:00Z", "2026-01-04T00:00:00Z"),
        ("0 0 13 * 5", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"),
        ("10/20 3 * * *", "2026-01-01T03:10:00Z", "2026-01-01T03:30:00Z"),
        ("@hourly", "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"),
        ("TZ=UTC 0 6 * * *", "2026-01-01T00:00:00Z", "2026-01-01T06:00:00Z"),
    ] {
        assert_eq!(next(schedule, "", after), expected, "{schedule}");
    }
}

#[test]
fn what_means_nothing_is_no_schedule() {
    for schedule in
        ["", "* * * *", "60 * * * *", "* * 0 * *", "5-1 * * * *", "*/0 * * * *", "x y z"]
    {
        assert!(Schedule::parse(schedule, "").is_none(), "{schedule}");
    }
    assert!(Schedule::parse("* * * * *", "Nowhere/Never").is_none());
    let never = Schedule::parse("0 0 31 2 *", "").unwrap();
    assert!(never.next_after(Timestamp::UNIX_EPOCH).is_none());
}

#[test]
fn only_the_latest_of_missed_starts_counts() {
    let schedule = Schedule::parse("*/10 * * * *", "").unwrap();
    let at = |text: &str| text.parse::<Timestamp>().unwrap();
    let found = schedule.latest_between(at("2026-01-01T00:00:00Z"), at("2026-01-01T01:05:00Z"));
    assert_eq!(found, Some(at("2026-01-01T01:00:00Z")));
    let none = schedule.latest_between(at("2026-01-01T00:00:00Z"), at("2026-01-01T00:09:00Z"));
    assert_eq!(none, None);
}
