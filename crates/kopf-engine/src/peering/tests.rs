use super::*;

fn object(records: Value) -> Object {
    Object::from_value(json!({"metadata": {"name": "default"}, "status": records}))
}

fn now() -> Timestamp {
    "2026-01-01T00:01:00Z".parse().expect("a time")
}

#[test]
fn a_higher_or_equal_priority_pauses_us_until_its_record_is_over() {
    let seen = "2026-01-01T00:00:50.000000+00:00";
    let records = json!({
        "me": {"priority": 10, "lifetime": 60, "lastseen": seen},
        "higher": {"priority": 100, "lifetime": 60, "lastseen": seen},
        "equal": {"priority": 10, "lifetime": 30, "lastseen": seen},
        "lower": {"priority": 0, "lifetime": 60, "lastseen": seen},
    });
    let judgement = judge(&object(records), "me", 10, now());
    assert_eq!(judgement.higher, ["higher"]);
    assert_eq!(judgement.equal, ["equal"]);
    assert!(judgement.dead.is_empty());
    assert_eq!(judgement.until, "2026-01-01T00:01:20Z".parse().ok());
}

#[test]
fn the_dead_are_cleaned_up_and_do_not_count() {
    let records = json!({
        "me": {"priority": 0, "lifetime": 1, "lastseen": "2026-01-01T00:00:00Z"},
        "dead": {"priority": 100, "lifetime": 10, "lastseen": "2026-01-01T00:00:00"},
    });
    let judgement = judge(&object(records), "me", 0, now());
    assert_eq!(judgement.dead, ["dead"]);
    assert!(judgement.higher.is_empty() && judgement.until.is_none());
}

#[test]
fn records_without_details_have_kopfs_defaults() {
    let judgement = judge(&object(json!({"other": {}, "odd": 1})), "me", 0, now());
    assert_eq!(judgement.equal, ["other"]);
    assert_eq!(judgement.until, "2026-01-01T00:02:00Z".parse().ok());
}
