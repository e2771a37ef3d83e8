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
fn objects_absent_from_a_list_are_missing() {
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
fn objects_without_a_uid_are_distinguished_by_name() {
    let mut store = Store::new();
    let named = |name: &str| Object::from_value(json!({"metadata": {"name": name}}));
    assert_eq!(store.uid(&named("a")), store.uid(&named("a")));
    assert_ne!(store.uid(&named("a")), store.uid(&named("b")));
}

#[test]
fn the_oldest_events_are_dropped() {
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
fn an_event_contradicts_a_list_but_not_a_deletion() {
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

fn record_at(version: &str) -> Record {
    let object = object("0193d1f4-0000-7000-8000-000000000001", version);
    Record { version: Version::of(&object), body: Some(object), ..Record::default() }
}

fn waiting(record: &Record) -> Option<Version> {
    record.inbox.as_ref().and_then(|inbox| inbox.object.as_ref()).map(Version::of)
}

#[test]
fn a_waiting_state_is_dropped_if_a_worker_has_covered_it() {
    let mut record = record_at("5");
    record.flags.busy = true;
    record.put(object("a", "6"), false);
    record.come_to(Version::parse("7"), None);
    assert_eq!((record.version, waiting(&record)), (Version::parse("7"), None));
    record.put(object("a", "8"), false);
    record.come_to(Version::parse("7"), None);
    assert_eq!(
        (record.version, waiting(&record)),
        (Version::parse("7"), Some(Version::parse("8")))
    );
}

#[test]
fn an_object_seen_while_considered_gone_is_handled_at_any_version() {
    let mut record = record_at("5");
    (record.flags.busy, record.flags.leaving) = (true, true);
    record.put(object("a", "5"), false);
    record.come_to(Version::parse("5"), None);
    assert_eq!(waiting(&record), Some(Version::parse("5")));
    assert!(!record.flags.leaving);
}

#[test]
fn a_worker_does_not_bring_back_states_from_before_a_restore() {
    let mut record = record_at("50");
    record.flags.busy = true;
    record.doubt_all();
    record.flags.busy = false;
    record.come_to(Version::parse("51"), None);
    assert_eq!(record.version, Version::parse("0"), "the server tells of lower versions now");
    // Nor does the next one, which gets the kept body.
    record.come_to(Version::parse("51"), None);
    assert_eq!(record.version, Version::parse("0"));
    record.put(object("a", "20"), false);
    record.inbox = None;
    record.come_to(Version::parse("21"), None);
    assert_eq!(record.version, Version::parse("21"));
}

#[test]
fn states_from_before_a_restore_are_replaced_by_later_ones() {
    let mut record = record_at("50");
    record.flags.busy = true;
    record.put(object("a", "51"), false);
    record.doubt_all();
    assert_eq!(waiting(&record), None);
    record.put(object("a", "20"), false);
    record.come_to(Version::parse("50"), None);
    assert_eq!(
        (record.version, waiting(&record)),
        (Version::parse("0"), Some(Version::parse("20")))
    );
    record.inbox = None;
    record.come_to(Version::parse("21"), None);
    assert_eq!(record.version, Version::parse("21"));
}

#[test]
fn daemons_accept_older_states_after_a_restore_even_if_a_worker_had_the_object() {
    let live = kopf_core::occasion::Live::new(object("a", "50"));
    let memory = || {
        let mut memory = Box::new(Memory::default());
        memory.background.live = Some(live.clone());
        Some(memory)
    };
    let mut record = Record { memory: memory(), ..record_at("50") };
    record.doubt_all();
    live.set(object("a", "20"));
    assert_eq!(live.get().resource_version(), "20");
    (record.flags.busy, record.memory) = (true, None);
    record.doubt_all();
    live.set(object("a", "51"));
    record.memory = memory();
    record.come_to(Version::parse("51"), None);
    live.set(object("a", "21"));
    assert_eq!(live.get().resource_version(), "21");
}

#[test]
fn uids_are_numbers_only_if_they_are_uuids() {
    for uid in ["0193d1f4-ABCD-7eFf-89ab-000000000001", "ffffffff-ffff-ffff-ffff-ffffffffffff"] {
        let expected = u128::from_str_radix(&uid.replace('-', ""), 16);
        assert_eq!(parse_uuid(uid), expected.ok());
    }
    for uid in [
        "",
        "0193d1f4abcd7eff89ab000000000001",
        "0193d1f4-abcd-7eff-89ab-00000000000",
        "0193d1f4-abcd-7eff-89ab-0000000000011",
        "0193d1f4-abcd-7eff-89ab+000000000001",
        "0193d1f4-abcd-7eff-89abc-00000000001",
        "0193d1f4-abcd-7eff-89ab-00000000000g",
        "0193d1f4-abcd-7eff-89ab-+00000000001",
    ] {
        assert_eq!(parse_uuid(uid), None, "{uid}");
    }
}
