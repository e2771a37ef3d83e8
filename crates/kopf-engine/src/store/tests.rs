use serde_json::json;

use super::*;

fn object(uid: &str, version: &str) -> Object {
    Object::from_value(json!({"metadata": {"uid": uid, "name": "n", "resourceVersion": version}}))
}

#[test]
fn records_stay_small() {
    let size = size_of::<(Uid, Record)>();
    assert!(size <= 80, "a record takes {size} bytes");
}

#[test]
fn versions_that_are_not_numbers_are_always_newer() {
    let number = |version| Version::of(&object("a", version));
    assert!(number("5").is_covered_by(number("5")));
    assert!(number("5").is_covered_by(number("6")));
    assert!(!number("7").is_covered_by(number("6")));
    assert!(!number("opaque").is_covered_by(number("6")));
}

#[test]
fn what_a_list_does_not_contain_is_missing() {
    let mut store = Store::new();
    let one = store.uid(&object("0193d1f4-0000-7000-8000-000000000001", "1"));
    let two = store.uid(&object("0193d1f4-0000-7000-8000-000000000002", "1"));
    store.begin_list();
    assert!(store.enter(one).1);
    store.enter(two);
    assert!(store.missing().is_empty());
    store.begin_list();
    assert!(!store.enter(one).1);
    assert_eq!(store.missing(), [two]);
}

#[test]
fn objects_without_a_uid_are_told_apart_by_name() {
    let store = Store::new();
    let named = |name: &str| Object::from_value(json!({"metadata": {"name": name}}));
    assert_eq!(store.uid(&named("a")), store.uid(&named("a")));
    assert_ne!(store.uid(&named("a")), store.uid(&named("b")));
}

#[test]
fn the_oldest_events_give_way() {
    let mut record = Record::default();
    let mut lost = 0;
    for index in 0..100 {
        let event = object("a", &index.to_string());
        lost += usize::from(record.put_event(Some(EventKind::Modified), event));
    }
    assert_eq!(lost, 100 - EVENTS_MAX);
    let inbox = record.inbox.expect("there are events");
    assert_eq!(inbox.events.len(), EVENTS_MAX);
    assert_eq!(inbox.events.last().expect("events").1.resource_version(), "99");
}

#[test]
fn a_list_is_doubted_when_the_object_is_heard_of_and_a_deletion_is_not() {
    let mut record = Record::default();
    record.put_missing(object("a", "5"));
    assert!(record.inbox.as_ref().is_some_and(|inbox| inbox.gone));
    record.doubt_list();
    assert!(record.inbox.as_ref().is_some_and(|inbox| !inbox.gone && inbox.object.is_some()));
    record.put(object("a", "6"), true);
    record.doubt_list();
    assert!(record.inbox.as_ref().is_some_and(|inbox| inbox.gone));
    record.put(object("a", "7"), false);
    assert!(record.inbox.is_some_and(|inbox| !inbox.gone), "a later state wins");
}
